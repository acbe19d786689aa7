"""What only the whole kernel decides: evaluation counts per node, and one vector for the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelcast.features.access import INVARIANT, IRREGULAR, Sites, array_of, physical_stride
from kernelcast.features.code import NOMINAL_CYCLES
from kernelcast.features.flat import FlatKernel
from kernelcast.features.nodes import minor_extent
from kernelcast.features.schema import CACHE_BYTES, CODE_CLASSES, DIVISORS, KERNELCAST_1
from kernelcast.hlo.shape import Shape

LINE_BYTES = 64
_NODE = KERNELCAST_1.node_index
_KERNEL = KERNELCAST_1.kernel_index
_WALKS = ("contiguous", "invariant", "strided", "irregular")
# Columns of one run of names are adjacent in the schema, so a node's values are written as one slice.
_EVALUATION = slice(_NODE["evaluations"], _NODE["touched_lines"] + 1)
_OPERATIONS = _NODE["operations"]
_OPERATIONS_EACH = _NODE["operations_per_element"]
_USERS = _NODE["users"]
_OUTPUT, _ALIASED = _NODE["is_output"], _NODE["is_aliased"]
_CODES = slice(_NODE[f"code_{CODE_CLASSES[0]}"], _NODE[f"code_{CODE_CLASSES[-1]}"] + 1)
_CYCLES = np.array([NOMINAL_CYCLES[c] for c in CODE_CLASSES], dtype=np.float32)


def write_kernel_columns(rows: np.ndarray, kernel: FlatKernel, sites: Sequence[Sites]) -> None:
    """Fills the columns of the nodes' rows that depend on the kernel: marks, users, evaluations, walks.

    Args:
        rows: (node, feature) raw values, written in place.
        kernel: the nodes.
        sites: per node, from ``evaluation_sites``.
    """
    for node, instruction in enumerate(kernel.instructions):
        rows[node, _EVALUATION] = _walk(array_of(instruction.shape), sites[node])
    for operands in kernel.operands:
        for operand in set(operands):
            rows[operand, _USERS] += 1
    for output in kernel.outputs:
        rows[output, _OUTPUT] = 1
    for node in kernel.aliased:
        rows[node, _ALIASED] = 1
    rows[:, _OPERATIONS] = rows[:, _NODE["evaluations"]] * rows[:, _OPERATIONS_EACH]


def _walk(shape: Shape, sites: Sites) -> list[float]:
    """Values of the columns ``evaluations`` … ``touched_lines``, in the schema's order."""
    elements = shape.element_count
    size = shape.byte_size / elements if elements else 0.0
    total = hoisted = lines = 0.0
    shares = [0.0, 0.0, 0.0, 0.0]
    largest_stride = 0.0
    extent = 1.0
    for site in sites.values():
        count = site.count
        total += count
        extent = max(extent, site.extent)
        if site.dimension == INVARIANT:
            shares[1] += count
            once = count / max(1.0, site.extent)
            hoisted += once
            lines += once
        elif site.dimension == IRREGULAR:
            shares[3] += count
            hoisted += count
            lines += count
        else:
            stride = site.step * physical_stride(shape, site.dimension)
            shares[0 if stride == 1 else 2] += count
            hoisted += count
            largest_stride = max(largest_stride, stride * size)
            lines += count * min(1.0, stride * size / LINE_BYTES)
    scale = 1.0 / total if total else 0.0
    per_element = total / elements if elements else 0.0
    divisible = [float(extent % d == 0) for d in DIVISORS]
    touched = min(float(shape.byte_size), total * size)
    return [
        total, hoisted, per_element, float(len(sites)), *(s * scale for s in shares), largest_stride, extent,
        *divisible, touched, lines,
    ]  # fmt: skip


def kernel_vector(rows: np.ndarray, kernel: FlatKernel) -> np.ndarray:
    """(kernel feature,) float32 raw values of one kernel, from its finished rows."""
    values: dict[str, float] = {f"kind_{kernel.kind.value}": 1.0}
    _write_sizes(values, rows, kernel)
    _write_output(values, kernel)
    _write_work(values, rows, kernel)
    _write_heavy(values, rows, kernel)
    vector = np.zeros(len(_KERNEL), dtype=np.float32)
    for name, value in values.items():
        vector[_KERNEL[name]] = value
    return vector


def _write_sizes(values: dict[str, float], rows: np.ndarray, kernel: FlatKernel) -> None:
    parameters = [n for n, i in enumerate(kernel.instructions) if i.opcode == "parameter"]
    sizes = rows[parameters, _NODE["bytes"]]
    written = float(sum(_written_bytes(kernel, n) for n in kernel.outputs))
    touched = float(rows[parameters, _NODE["touched_bytes"]].sum()) + written
    values |= {
        "nodes": len(kernel),
        "parameters": len(parameters),
        "outputs": len(kernel.outputs),
        "is_fusion": kernel.is_fusion,
        "is_in_place": bool(kernel.aliased),
        "bytes_in": float(sizes.sum()),
        "bytes_out": written,
        "bytes_touched": touched,
        "lines_touched": float(rows[parameters, _NODE["touched_lines"]].sum()) + written / LINE_BYTES,
        "parameter_bytes_largest": float(sizes.max(initial=0)),
    }
    for level, size in enumerate(CACHE_BYTES):
        values[f"kernel_beyond_cache_{level + 1}"] = touched > size


def _written_bytes(kernel: FlatKernel, output: int) -> int:
    """Bytes that an output writes: of an in-place update only the update."""
    while kernel.instructions[output].opcode == "bitcast":
        output = kernel.operands[output][0]
    instruction = kernel.instructions[output]
    if output in kernel.aliased and instruction.opcode in ("dynamic-update-slice", "scatter"):
        updates = kernel.operands[output][-1 if instruction.opcode == "scatter" else 1]
        return array_of(kernel.instructions[updates].shape).byte_size
    return instruction.shape.byte_size


def _write_output(values: dict[str, float], kernel: FlatKernel) -> None:
    shape = array_of(kernel.instructions[kernel.outputs[0]].shape)
    minor = minor_extent(shape)
    values |= {
        "output_elements": shape.element_count,
        "output_minor_extent": minor,
        "output_second_extent": shape.dimensions[shape.minor_to_major[1]] if shape.rank > 1 else 1,
        "output_rank": shape.rank,
        "output_element_bytes": shape.byte_size / shape.element_count if shape.element_count else 0,
    }
    for divisor in DIVISORS:
        values[f"output_minor_extent_divisible_by_{divisor}"] = minor % divisor == 0


def _write_work(values: dict[str, float], rows: np.ndarray, kernel: FlatKernel) -> None:
    evaluations = rows[:, _NODE["evaluations"]]
    hoisted = rows[:, _NODE["evaluations_hoisted"]]
    by_class = hoisted @ rows[:, _CODES]
    outputs = max(1.0, values["output_elements"])
    values |= {
        "operations": float(rows[:, _OPERATIONS].sum()),
        "evaluations": float(evaluations.sum()),
        "evaluations_per_output": float(evaluations.sum()) / outputs,
        "evaluations_largest_per_element": float(rows[:, _NODE["evaluations_per_element"]].max(initial=0)),
        "weighted_work": float(by_class @ _CYCLES),
        **{f"evaluations_{c}": float(by_class[n]) for n, c in enumerate(CODE_CLASSES)},
    }
    for name in ("integer_division", "narrow_conversion"):
        values[f"evaluations_{name}"] = float(hoisted @ rows[:, _NODE[f"code_is_{name}"]])
    loads = [n for n, i in enumerate(kernel.instructions) if i.opcode == "parameter"]
    for walk in _WALKS:
        values[f"loads_{walk}"] = float(evaluations[loads] @ rows[loads, _NODE[f"share_{walk}"]])
    values["inner_extent"] = float(rows[loads, _NODE["inner_extent"]].min()) if loads else 1.0


def _write_heavy(values: dict[str, float], rows: np.ndarray, kernel: FlatKernel) -> None:
    """Reductions, dots and convolutions, which outweigh the rest where they occur."""
    opcodes = [instruction.opcode for instruction in kernel.instructions]
    for opcode in ("reduce", "dot", "convolution"):
        nodes = [n for n, o in enumerate(opcodes) if o == opcode]
        if not nodes:
            continue
        held = rows[nodes]
        operations = float(held[:, _OPERATIONS].sum())
        if opcode == "reduce":
            values["reduced_extent"] = float(held[:, _NODE["reduced_extent"]].max())
            values["reduce_evaluations"] = operations
            values["reduces_minor_dimension"] = float(held[:, _NODE["reduces_minor_dimension"]].max())
        elif opcode == "dot":
            heaviest = held[int(held[:, _OPERATIONS].argmax())]
            values["dot_operations"] = operations
            values |= {f"dot_{n}": float(heaviest[_NODE[f"dot_{n}"]]) for n in ("m", "n", "k", "batch")}
        else:
            values["convolution_operations"] = operations
