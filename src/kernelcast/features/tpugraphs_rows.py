"""One node's row under schema ``tpugraphs-140``: what the instruction itself says, as raw values.

What an instruction lacks is 0, also where 0 is a value of its own (a dimension number). A sequence without
values has sum 0 and product 1 on a node, but product 0 in a tile: so are the published files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from kernelcast.features.tpugraphs_schema import ELEMENT_TYPES, NODE_WIDTH, SLOTS, TPUGRAPHS_140
from kernelcast.hlo import attributes
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import Shape

_INTEGER = re.compile(r"\d{1,19}")
_INDEX = TPUGRAPHS_140.node_index
_INT64 = np.iinfo(np.int64)
# Sequences with a sum and a product, and how many of their values have columns.
_TOTALLED = {
    name.removesuffix("_product"): _INDEX[name] - 1 - _INDEX[name.replace("_product", "_0")]
    for name in _INDEX
    if name.endswith("_product") and _INDEX[name] < NODE_WIDTH
}
# These state their groups in the compiler's own form even where it is one, and the text leaves one out.
_GROUPED = ("convolution", "custom-call")


def node_row(instruction: Instruction, *, is_root: bool) -> np.ndarray:
    """(140,) float32 raw values of one instruction.

    Args:
        instruction: the node.
        is_root: whether its value is the result of its computation.

    Raises:
        HloError: an attribute cannot be read.
    """
    row = _Row()
    row.put("is_root", is_root)
    _write_shape(row, instruction.shape)
    row.put("parameter_number", instruction.parameter_number or 0)
    row.slots("dimensions", _dimensions(instruction))
    if instruction.attribute("window") is not None:
        _write_window(row, attributes.window(instruction).dimensions)
    if instruction.attribute("dim_labels") is not None:
        _write_convolution(row, attributes.convolution_numbers(instruction))
    if instruction.opcode in _GROUPED:
        row.put("feature_group_count", attributes.feature_group_count(instruction))
        row.put("batch_group_count", attributes.batch_group_count(instruction))
    _write_slices(row, instruction)
    row.put("is_stable", attributes.flag(instruction, "is_stable"))
    return row.float32()


class _Row:
    """One row, written by column name."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        # 64-bit integers until the end: they are rounded to float32 once, as in the published files.
        self.values = _EMPTY.copy()

    def put(self, name: str, value: int) -> None:
        self.values[_INDEX[name]] = _limited(value)

    def slots(self, name: str, values: Sequence[int], count: int = SLOTS) -> None:
        """The first values."""
        start = _INDEX[f"{name}_0"]
        self.values[start : start + min(count, len(values))] = [_limited(v) for v in values[:count]]

    def totalled(self, name: str, values: Iterable[int]) -> None:
        """The first values, and sum and product of all."""
        held = list(values)
        count = _TOTALLED[name]
        self.slots(name, held, count)
        start = _INDEX[f"{name}_0"] + count
        self.values[start : start + 2] = (_limited(sum(held)), _limited(math.prod(held)))

    def float32(self) -> np.ndarray:
        return self.values.astype(np.float32)


def _empty_row() -> np.ndarray:
    values = np.zeros(NODE_WIDTH, dtype=np.int64)
    values[[_INDEX[f"{name}_product"] for name in _TOTALLED]] = 1
    return values


_EMPTY = _empty_row()


def _limited(value: int) -> int:
    """The value, or the nearest one of 64 bits; absurd extents and their products are beyond."""
    return max(_INT64.min, min(_INT64.max, value))


def _write_shape(row: _Row, shape: Shape) -> None:
    if shape.element_type in ELEMENT_TYPES:
        row.put(f"type_{shape.element_type}", 1)
    row.totalled("extent", shape.dimensions)
    row.put("tuple_size", len(shape.elements) if shape.is_tuple else 0)
    if shape.is_array:
        row.slots("minor_to_major", shape.minor_to_major)


def _dimensions(instruction: Instruction) -> tuple[int, ...]:
    """The dimensions that a broadcast, reduce, transpose, concatenate, sort … works on."""
    if instruction.opcode == "iota":
        return (attributes.integer(instruction, "iota_dimension", default=0),)
    return attributes.integers(instruction, "dimensions", default=())


def _write_window(row: _Row, window: Sequence[attributes.WindowDimension]) -> None:
    row.totalled("window_size", (d.size for d in window))
    row.totalled("window_stride", (d.stride for d in window))
    row.totalled("window_padding_low", (d.padding_low for d in window))
    row.totalled("window_padding_high", (d.padding_high for d in window))
    row.totalled("window_dilation", (d.window_dilation for d in window))
    row.totalled("base_dilation", (d.base_dilation for d in window))
    row.slots("window_reversal", [int(d.is_reversed) for d in window])
    row.put("window_reversed", sum(d.is_reversed for d in window))
    row.put("window_not_reversed", sum(not d.is_reversed for d in window))


def _write_convolution(row: _Row, numbers: attributes.ConvolutionNumbers) -> None:
    row.put("convolution_input_batch", numbers.input_batch)
    row.put("convolution_input_feature", numbers.input_feature)
    row.slots("convolution_input_spatial", numbers.input_spatial, 4)
    row.put("convolution_kernel_input_feature", numbers.kernel_input_feature)
    row.put("convolution_kernel_output_feature", numbers.kernel_output_feature)
    row.slots("convolution_kernel_spatial", numbers.kernel_spatial, 4)
    row.put("convolution_output_batch", numbers.output_batch)
    row.put("convolution_output_feature", numbers.output_feature)


def _write_slices(row: _Row, instruction: Instruction) -> None:
    if instruction.opcode == "slice":
        ranges = attributes.slice_ranges(instruction)
        row.totalled("slice_start", (r.start for r in ranges))
        row.totalled("slice_stride", (r.stride for r in ranges))
        row.totalled("slice_limit", (r.limit for r in ranges))
    elif instruction.opcode == "dynamic-slice":
        row.totalled("dynamic_slice_size", attributes.integers(instruction, "dynamic_slice_sizes"))
    elif instruction.opcode in ("collective-permute", "collective-permute-start"):
        # The compiler's own form keeps the slices of a permute, {{8,128},{8,128}}, in the same field.
        sizes = _INTEGER.findall(instruction.attribute("slice_sizes") or "")
        row.totalled("dynamic_slice_size", map(int, sizes))
    elif instruction.opcode == "pad":
        padding = attributes.padding_config(instruction)
        row.totalled("pad_low", (p.low for p in padding))
        row.totalled("pad_high", (p.high for p in padding))
