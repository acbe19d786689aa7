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
# Neighbouring columns are read and written as one slice: a search featurises thousands of kernels a second.
_WALK = slice(_NODE["evaluations"], _NODE["touched_lines"] + 1)
_EVALUATIONS, _HOISTED, _PER_ELEMENT = (
    _NODE[f"evaluations{suffix}"] for suffix in ("", "_hoisted", "_per_element")
)
_ELEMENTS, _ELEMENT_BYTES, _BYTES = _NODE["extent_product"], _NODE["element_bytes"], _NODE["bytes"]
_OPERATIONS, _OPERATIONS_EACH = _NODE["operations"], _NODE["operations_per_element"]
_TOUCHED_BYTES, _TOUCHED_LINES = _NODE["touched_bytes"], _NODE["touched_lines"]
_SHARES = slice(_NODE["share_contiguous"], _NODE["share_irregular"] + 1)
_CODES = slice(_NODE[f"code_{CODE_CLASSES[0]}"], _NODE["code_is_narrow_conversion"] + 1)
_CYCLES = np.array([*(NOMINAL_CYCLES[c] for c in CODE_CLASSES), 0.0, 0.0], dtype=np.float32)
_CALL = CODE_CLASSES.index("call")
_WORK = tuple(f"evaluations_{name}" for name in (*CODE_CLASSES, "integer_division", "narrow_conversion"))
# A chain of dependent operations runs at their latency, about four times the time of a vector step.
_SEQUENTIAL_COST = 4.0
_SEQUENTIAL = _NODE["share_sequential"]
_LOADS = tuple(f"loads_{walk}" for walk in ("contiguous", "invariant", "strided", "irregular"))


def write_kernel_columns(rows: np.ndarray, kernel: FlatKernel, sites: Sequence[Sites]) -> None:
    """Fills the columns of the nodes' rows that depend on the kernel: marks, users, evaluations, walks.

    Args:
        rows: (node, feature) raw values, written in place.
        kernel: the nodes.
        sites: per node, from ``evaluation_sites``.
    """
    elements, element_bytes = rows[:, _ELEMENTS].tolist(), rows[:, _ELEMENT_BYTES].tolist()
    rows[:, _WALK] = [
        _walk(instruction.shape, elements[node], element_bytes[node], sites[node])
        for node, instruction in enumerate(kernel.instructions)
    ]
    readers = [operand for operands in kernel.operands for operand in set(operands)]
    rows[:, _NODE["users"]] = np.bincount(readers, minlength=len(kernel)) if readers else 0
    rows[list(kernel.outputs), _NODE["is_output"]] = 1
    rows[list(kernel.aliased), _NODE["is_aliased"]] = 1
    rows[:, _OPERATIONS] = rows[:, _EVALUATIONS] * rows[:, _OPERATIONS_EACH]


def _walk(shape: Shape, elements: float, element_bytes: float, sites: Sites) -> list[float]:
    """Values of the columns ``evaluations`` … ``touched_lines``, in the schema's order."""
    total = hoisted = lines = 0.0
    contiguous = invariant = strided = irregular = sequential = 0.0
    largest_stride = 0.0
    extent = 1.0
    for site in sites.values():
        count = site.count
        total += count
        if site.extent > extent:
            extent = site.extent
        if site.sequential:
            sequential += count
        if site.dimension == INVARIANT:
            invariant += count
            once = count / max(1.0, site.extent)
            hoisted += once
            lines += once
            continue
        hoisted += count
        if site.dimension == IRREGULAR:
            irregular += count
            lines += count
            continue
        stride = site.step * physical_stride(array_of(shape), site.dimension)
        if stride == 1:
            contiguous += count
        else:
            strided += count
        largest_stride = max(largest_stride, stride * element_bytes)
        lines += count * min(1.0, stride * element_bytes / LINE_BYTES)
    scale = 1.0 / total if total else 0.0
    return [
        total, hoisted, total / elements if elements else 0.0, float(len(sites)),
        contiguous * scale, invariant * scale, strided * scale, irregular * scale,
        sequential * scale, largest_stride, extent, *(float(extent % divisor == 0) for divisor in DIVISORS),
        min(elements, total) * element_bytes, lines,
    ]  # fmt: skip


def kernel_vector(rows: np.ndarray, kernel: FlatKernel) -> np.ndarray:
    """(kernel feature,) float32 raw values of one kernel, from its finished rows."""
    is_parameter = np.array([i.opcode == "parameter" for i in kernel.instructions], dtype=np.float32)
    values: dict[str, float] = {f"kind_{kernel.kind.value}": 1.0}
    _write_sizes(values, rows, kernel, is_parameter)
    _write_output(values, kernel)
    _write_work(values, rows, is_parameter)
    _write_heavy(values, rows, kernel)
    vector = np.zeros(len(_KERNEL), dtype=np.float32)
    vector[[_KERNEL[name] for name in values]] = list(values.values())
    return vector


def _write_sizes(
    values: dict[str, float], rows: np.ndarray, kernel: FlatKernel, is_parameter: np.ndarray
) -> None:
    # What is written in place is a parameter, too, but is not read.
    sizes = is_parameter * rows[:, _BYTES] * (rows[:, _EVALUATIONS] > 0)
    written = float(sum(_written(kernel, output).byte_size for output in kernel.outputs))
    touched = float(is_parameter @ rows[:, _TOUCHED_BYTES]) + written
    values |= {
        "nodes": len(kernel),
        "parameters": float(is_parameter.sum()),
        "outputs": len(kernel.outputs),
        "is_fusion": kernel.is_fusion,
        "is_in_place": bool(kernel.aliased),
        "bytes_in": float(sizes.sum()),
        "bytes_out": written,
        "bytes_touched": touched,
        "lines_touched": float(is_parameter @ rows[:, _TOUCHED_LINES]) + written / LINE_BYTES,
        "parameter_bytes_largest": float(sizes.max(initial=0)),
    }
    for level, size in enumerate(CACHE_BYTES):
        values[f"kernel_beyond_cache_{level + 1}"] = touched > size


def _written(kernel: FlatKernel, output: int) -> Shape:
    """What an output writes: of an in-place update only the update."""
    writer = kernel.writer(output)
    update = kernel.update_of(writer)
    return kernel.instructions[writer if update is None else update].shape


def _write_output(values: dict[str, float], kernel: FlatKernel) -> None:
    shape = array_of(_written(kernel, kernel.outputs[0]))
    minor = minor_extent(shape)
    elements = shape.element_count
    values |= {
        "output_elements": elements,
        "output_minor_extent": minor,
        "output_second_extent": shape.dimensions[shape.minor_to_major[1]] if shape.rank > 1 else 1,
        "output_rank": shape.rank,
        "output_element_bytes": shape.byte_size / elements if elements else 0,
    }
    for divisor in DIVISORS:
        values[f"output_minor_extent_divisible_by_{divisor}"] = minor % divisor == 0


def _write_work(values: dict[str, float], rows: np.ndarray, is_parameter: np.ndarray) -> None:
    evaluations = rows[:, _EVALUATIONS]
    total = float(evaluations.sum())
    sequential = rows[:, _SEQUENTIAL]
    by_class = rows[:, _HOISTED] @ rows[:, _CODES]
    stretched = (rows[:, _HOISTED] * (1 + (_SEQUENTIAL_COST - 1) * sequential)) @ rows[:, _CODES]
    loads = (evaluations * is_parameter) @ rows[:, _SHARES]
    extents = rows[:, _NODE["inner_extent"]]
    values |= {
        "operations": float(rows[:, _OPERATIONS].sum()),
        "evaluations": total,
        "evaluations_per_output": total / max(1.0, values["output_elements"]),
        "evaluations_largest_per_element": float(rows[:, _PER_ELEMENT].max(initial=0)),
        "weighted_work": float(stretched @ _CYCLES),
        "evaluations_sequential": float(evaluations @ sequential),
        # Calls, data-dependent and strided reads keep the compiler from using vectors.
        "is_vectorised": not (by_class[_CALL] or loads[2] or loads[3]),
        "inner_extent": float(np.where(is_parameter, extents, np.inf).min()) if is_parameter.any() else 1.0,
    }
    values |= zip(_WORK, by_class.tolist(), strict=True)
    values |= zip(_LOADS, loads.tolist(), strict=True)


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
