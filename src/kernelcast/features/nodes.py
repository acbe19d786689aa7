"""The part of a node's row that the instruction and its operands' shapes decide, whatever kernel it is in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from kernelcast.features.access import array_of, dimensions_of, physical_stride
from kernelcast.features.code import code_class, is_integer_division, is_narrow_conversion
from kernelcast.features.schema import (
    CACHE_BYTES,
    CONVOLUTION_NUMBERS,
    DIVISORS,
    ELEMENT_TYPES,
    KERNELCAST_1,
    REDUCERS,
    SLOTS,
)
from kernelcast.hlo import attributes
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import Shape

_INDEX = KERNELCAST_1.node_index
WIDTH = len(KERNELCAST_1.node)
# Attributes that a row depends on; of two instructions equal in these, opcode and shapes one row is computed.
_READ = frozenset({
    "dimensions", "iota_dimension", "slice", "window", "padding", "dim_labels", "feature_group_count",
    "batch_group_count", "lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims",
    "offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes",
    "operand_batching_dims", "start_indices_batching_dims", "update_window_dims", "inserted_window_dims",
    "scatter_dims_to_operand_dims", "dynamic_slice_sizes", "fft_length",
})  # fmt: skip


class NodeRows:
    """Rows by value: one computed row for all nodes that are alike.

    Kernels of one program share most of their instructions, so in a search nearly every node is a look-up.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], np.ndarray] = {}

    def row(self, instruction: Instruction, operands: Sequence[Shape], reducer: str) -> np.ndarray:
        """(feature,) float32 raw values; do not write into it.

        Args:
            instruction: the node.
            operands: the operands' shapes.
            reducer: root opcode of the computation applied per element, or "".
        """
        read = tuple(pair for pair in instruction.attributes if pair[0] in _READ)
        key = (instruction.opcode, instruction.shape, tuple(operands), reducer, read)
        row = self._rows.get(key)
        if row is None:
            row = node_row(instruction, operands, reducer)
            row.setflags(write=False)
            self._rows[key] = row
        return row


def node_row(instruction: Instruction, operands: Sequence[Shape], reducer: str) -> np.ndarray:
    """(feature,) float32 raw values of the columns that do not depend on the kernel; the others are 0."""
    row = _Row()
    _write_shape(row, instruction)
    _write_reducer(row, reducer)
    _write_attributes(row, instruction, [array_of(s) for s in operands])
    _write_static(row, instruction, [array_of(s) for s in operands])
    return row.values


class _Row:
    """One row, written by column name."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = np.zeros(WIDTH, dtype=np.float32)

    def put(self, name: str, value: float) -> None:
        self.values[_INDEX[name]] = value

    def slots(self, name: str, values: Iterable[int], *, totals: bool = True) -> None:
        """Six slots and, with totals, sum and product of all values (of none: 0 and 1)."""
        held = list(values)
        start = _INDEX[f"{name}_0"]
        self.values[start : start + min(SLOTS, len(held))] = held[:SLOTS]
        if totals:
            self.values[start + SLOTS : start + SLOTS + 2] = (sum(held), math.prod(held))

    def divisors(self, name: str, extent: int) -> None:
        for divisor in DIVISORS:
            self.put(f"{name}_divisible_by_{divisor}", extent % divisor == 0)


def _write_shape(row: _Row, instruction: Instruction) -> None:
    shape = array_of(instruction.shape)
    kind = shape.element_type
    kind = "f8" if kind.startswith(("f8", "f4")) else kind
    row.put(f"type_{kind if kind in ELEMENT_TYPES else 'other'}", 1)
    row.put("rank", shape.rank)
    row.slots("extent", (shape.dimensions[d] for d in shape.minor_to_major))
    row.slots("minor_to_major", shape.minor_to_major, totals=False)
    row.put("memory_space", shape.layout.memory_space if shape.layout else 0)
    row.put("tuple_size", len(instruction.shape.elements))
    row.put("has_extents", shape.rank > 0)


def _write_reducer(row: _Row, reducer: str) -> None:
    if reducer:
        row.put(f"reducer_{reducer if reducer in REDUCERS else 'other'}", 1)
        row.put("has_reducer", 1)


def _write_attributes(row: _Row, i: Instruction, operands: list[Shape]) -> None:
    dimensions = dimensions_of(i)
    if i.attribute("dimensions") is not None:
        row.slots("dimensions", dimensions, totals=False)
        row.put("dimensions_count", len(dimensions))
        row.put("has_dimensions", 1)
    if i.attribute("window") is not None:
        _write_window(row, i)
    if i.opcode == "convolution":
        _write_convolution(row, i)
    elif i.opcode == "dot":
        _write_dot(row, i)
    elif i.opcode == "gather":
        numbers = attributes.gather_numbers(i)
        row.slots("slice_size", numbers.slice_sizes)
        _write_indexing(row, numbers.index_vector_dim, numbers.offset_dims, numbers.start_index_map)
        row.put("has_slice_size", 1)
    elif i.opcode == "scatter":
        numbers = attributes.scatter_numbers(i)
        _write_indexing(
            row, numbers.index_vector_dim, numbers.update_window_dims, numbers.scatter_dims_to_operand_dims
        )
    elif i.opcode == "slice":
        ranges = attributes.slice_ranges(i)
        row.slots("slice_start", (r.start for r in ranges))
        row.slots("slice_limit", (r.limit for r in ranges))
        row.slots("slice_stride", (r.stride for r in ranges))
        row.put("has_slice", 1)
    elif i.opcode in ("dynamic-slice", "dynamic-update-slice"):
        sizes = array_of(i.shape).dimensions if i.opcode == "dynamic-slice" else operands[1].dimensions
        row.slots("slice_size", sizes)
        row.put("has_slice_size", 1)
    elif i.opcode == "pad":
        padding = attributes.padding_config(i)
        row.slots("pad_low", (p.low for p in padding))
        row.slots("pad_high", (p.high for p in padding))
        row.slots("pad_interior", (p.interior for p in padding))
        row.put("has_pad", 1)


def _write_window(row: _Row, i: Instruction) -> None:
    window = attributes.window(i).dimensions
    row.slots("window_size", (d.size for d in window))
    row.slots("window_stride", (d.stride for d in window))
    row.slots("window_padding_low", (d.padding_low for d in window))
    row.slots("window_padding_high", (d.padding_high for d in window))
    row.slots("window_dilation", (d.window_dilation for d in window))
    row.slots("base_dilation", (d.base_dilation for d in window))
    row.put("window_reversed", sum(d.is_reversed for d in window))
    row.put("has_window", 1)


def _write_convolution(row: _Row, i: Instruction) -> None:
    numbers = attributes.convolution_numbers(i)
    values: dict[str, int] = {
        "input_batch": numbers.input_batch,
        "input_feature": numbers.input_feature,
        "kernel_input_feature": numbers.kernel_input_feature,
        "kernel_output_feature": numbers.kernel_output_feature,
        "output_batch": numbers.output_batch,
        "output_feature": numbers.output_feature,
    }
    for name in ("input_spatial", "kernel_spatial", "output_spatial"):
        values.update({f"{name}_{n}": v for n, v in enumerate(getattr(numbers, name))})
    for name in CONVOLUTION_NUMBERS:
        row.put(f"convolution_{name}", values.get(name, 0))
    row.put("feature_group_count", attributes.feature_group_count(i))
    row.put("batch_group_count", attributes.batch_group_count(i))
    row.put("has_convolution", 1)


def _write_dot(row: _Row, i: Instruction) -> None:
    numbers = attributes.dot_numbers(i)
    for side, contracting, batch in (
        ("left", numbers.lhs_contracting, numbers.lhs_batch),
        ("right", numbers.rhs_contracting, numbers.rhs_batch),
    ):
        for n in range(2):
            row.put(f"dot_{side}_contracting_{n}", contracting[n] if n < len(contracting) else 0)
            row.put(f"dot_{side}_batch_{n}", batch[n] if n < len(batch) else 0)
    row.put("dot_contracting_count", len(numbers.lhs_contracting))
    row.put("dot_batch_count", len(numbers.lhs_batch))
    row.put("has_dot", 1)


def _write_indexing(row: _Row, vector: int, offset: tuple[int, ...], indexed: tuple[int, ...]) -> None:
    row.put("index_vector_dimension", vector)
    row.put("offset_dimensions_count", len(offset))
    row.put("indexed_dimensions_count", len(indexed))
    row.put("has_indexing", 1)


def _write_static(row: _Row, i: Instruction, operands: list[Shape]) -> None:
    shape = array_of(i.shape)
    operand_type = operands[0].element_type if operands else ""
    row.put(f"code_{code_class(i.opcode, shape.element_type)}", 1)
    row.put("code_is_integer_division", is_integer_division(i.opcode, shape.element_type))
    row.put("code_is_narrow_conversion", is_narrow_conversion(i.opcode, shape.element_type, operand_type))
    row.put("operations_per_element", operations_per_element(i, operands))
    row.put("bytes", i.shape.byte_size)
    row.put("element_bytes", shape.byte_size / shape.element_count if shape.element_count else 0)
    for level, size in enumerate(CACHE_BYTES):
        row.put(f"value_beyond_cache_{level + 1}", i.shape.byte_size > size)
    minor = minor_extent(shape)
    row.divisors("minor_extent", minor)
    row.put("minor_extent_modulo_16", minor % 16)
    row.put("operands", len(operands))
    if operands:
        first = operands[0]
        row.put("operand_elements", first.element_count)
        row.put("operand_minor_extent", minor_extent(first))
        row.put("keeps_minor_extent", minor_extent(first) == minor)
        row.put("keeps_minor_dimension", _keeps_minor_dimension(i, shape, first))
    if i.opcode == "reduce":
        reduced = dimensions_of(i)
        order = operands[0].minor_to_major
        row.put("reduced_extent", math.prod(operands[0].dimensions[d] for d in reduced))
        row.put("reduces_minor_dimension", bool(order) and order[0] in reduced)
        row.put("reduces_major_dimension", bool(order) and order[-1] in reduced)
    elif i.opcode == "dot":
        _write_static_dot(row, i, operands)
    elif i.opcode == "convolution":
        _write_static_convolution(row, i, shape, operands)


def minor_extent(shape: Shape) -> int:
    """Extent of the dimension that is contiguous in memory; 1 of a scalar."""
    return shape.dimensions[shape.minor_to_major[0]] if shape.rank else 1


def _keeps_minor_dimension(i: Instruction, shape: Shape, operand: Shape) -> bool:
    """Whether neighbours in the result are neighbours in the first operand."""
    if not shape.rank or not operand.rank:
        return False
    minor, operand_minor = shape.minor_to_major[0], operand.minor_to_major[0]
    dimensions = dimensions_of(i)
    if i.opcode == "transpose":
        return dimensions[minor] == operand_minor
    if i.opcode == "broadcast":
        return minor in dimensions and dimensions.index(minor) == operand_minor
    if i.opcode == "reduce":
        kept = [d for d in range(operand.rank) if d not in dimensions]
        return minor < len(kept) and kept[minor] == operand_minor
    if shape.rank == operand.rank:
        return minor == operand_minor
    return minor_extent(shape) == minor_extent(operand)


def operations_per_element(i: Instruction, operands: Sequence[Shape]) -> float:
    """Arithmetic operations for one element of the result; a multiply-add counts two."""
    shape = array_of(i.shape)
    if i.opcode == "dot":
        contracted = attributes.dot_numbers(i).lhs_contracting
        return 2.0 * math.prod(operands[0].dimensions[d] for d in contracted)
    if i.opcode == "convolution":
        numbers = attributes.convolution_numbers(i)
        channels = operands[1].dimensions[numbers.kernel_input_feature]
        return 2.0 * channels * attributes.window(i).element_count
    if i.opcode == "reduce":
        return float(math.prod(operands[0].dimensions[d] for d in dimensions_of(i)))
    if i.opcode in ("reduce-window", "select-and-scatter"):
        return float(attributes.window(i).element_count)
    if i.opcode in ("sort", "topk", "fft"):
        return math.log2(max(2, max(shape.dimensions, default=1)))
    return 0.0 if code_class(i.opcode, shape.element_type) == "move" else 1.0


def _write_static_dot(row: _Row, i: Instruction, operands: list[Shape]) -> None:
    left, right = operands[0], operands[1]
    numbers = attributes.dot_numbers(i)
    k = math.prod(left.dimensions[d] for d in numbers.lhs_contracting)
    batch = math.prod(left.dimensions[d] for d in numbers.lhs_batch)
    row.put("dot_k", k)
    row.put("dot_batch", batch)
    row.put("dot_m", left.element_count // max(1, k * batch))
    row.put("dot_n", right.element_count // max(1, k * batch))
    for side, shape, contracting in (
        ("left", left, numbers.lhs_contracting),
        ("right", right, numbers.rhs_contracting),
    ):
        row.put(f"dot_contracts_minor_{side}", any(physical_stride(shape, d) == 1 for d in contracting))


def _write_static_convolution(row: _Row, i: Instruction, shape: Shape, operands: list[Shape]) -> None:
    numbers = attributes.convolution_numbers(i)
    kernel = operands[1]
    row.put("convolution_input_channels", kernel.dimensions[numbers.kernel_input_feature])
    row.put("convolution_output_channels", kernel.dimensions[numbers.kernel_output_feature])
    row.put("convolution_output_pixels", math.prod(shape.dimensions[d] for d in numbers.output_spatial))
    row.put("convolution_taps", attributes.window(i).element_count)
    last = physical_stride(operands[0], numbers.input_feature) == 1
    row.put("convolution_channels_last", last and physical_stride(shape, numbers.output_feature) == 1)
