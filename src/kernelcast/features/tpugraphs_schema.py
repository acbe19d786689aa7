"""The feature schema ``tpugraphs-140``: the columns of the published TpuGraphs files, as data.

140 columns per node and 24 per tile, raw values, in the published order. They are a second schema beside
``kernelcast-1``: a checkpoint is bound to one of the two by its digest.
"""

from __future__ import annotations

from kernelcast.features.opcodes import OPCODE_NAMES
from kernelcast.features.schema import Block, Column, FeatureSchema, Transform

NODE_WIDTH, CONFIG_WIDTH = 140, 24
SLOTS = 6  # values of a sequence that have columns of their own, the first ones
TILE_LEVELS = ("kernel", "output", "input")
# One column each; types that came later (f8, s4, …) have none.
ELEMENT_TYPES = (
    "invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bf16",
    "c64", "c128", "tuple", "opaque", "token",
)  # fmt: skip
# The published list ends here; later opcodes count as unknown.
OPCODE_COUNT = 121


def _column(name: str, unit: str, transform: Transform = Transform.LOG, block: Block = Block.PAPER) -> Column:
    return Column(name=name, block=block, unit=unit, transform=transform)


def _slots(name: str, unit: str, count: int, transform: Transform = Transform.LOG) -> list[Column]:
    return [_column(f"{name}_{number}", unit, transform) for number in range(count)]


def _totalled(name: str, unit: str, count: int = SLOTS, block: Block = Block.PAPER) -> list[Column]:
    """The first values of a sequence, and the sum and product of all."""
    names = (*(f"{name}_{number}" for number in range(count)), f"{name}_sum", f"{name}_product")
    return [_column(n, unit, block=block) for n in names]


def _number(name: str) -> Column:
    return _column(name, "dimension number", Transform.RAW)


def _numbers(name: str, count: int) -> list[Column]:
    return _slots(name, "dimension number", count, Transform.RAW)


NODE_COLUMNS: tuple[Column, ...] = (
    _column("is_root", "flag", Transform.FLAG),
    _column("element_size_in_bits", "bits"),  # 0 in all published files
    *(_column(f"type_{name}", "flag", Transform.FLAG) for name in ELEMENT_TYPES),
    *_totalled("extent", "elements"),
    _column("tuple_size", "shapes"),
    _column("parameter_number", "number"),
    *_numbers("dimensions", SLOTS),
    *_totalled("window_size", "elements"),
    *_totalled("window_stride", "elements"),
    *_totalled("window_padding_low", "elements"),
    *_totalled("window_padding_high", "elements"),
    *_totalled("window_dilation", "elements"),
    *_totalled("base_dilation", "elements"),
    *_slots("window_reversal", "flag", SLOTS, Transform.FLAG),
    _column("window_reversed", "dimensions", Transform.RAW),
    _column("window_not_reversed", "dimensions", Transform.RAW),
    _number("convolution_input_batch"),
    _number("convolution_input_feature"),
    *_numbers("convolution_input_spatial", 4),
    _number("convolution_kernel_input_feature"),
    _number("convolution_kernel_output_feature"),
    *_numbers("convolution_kernel_spatial", 4),
    _number("convolution_output_batch"),
    _number("convolution_output_feature"),
    _column("feature_group_count", "groups"),
    _column("batch_group_count", "groups"),
    *_totalled("slice_start", "elements", 2),
    *_totalled("slice_stride", "elements", 2),
    *_totalled("slice_limit", "elements", 2),
    *_totalled("dynamic_slice_size", "elements", 2),
    *_totalled("pad_low", "elements", 2),
    *_totalled("pad_high", "elements", 2),
    _column("is_stable", "flag", Transform.FLAG),
    *_numbers("minor_to_major", SLOTS),
)

TILE_COLUMNS: tuple[Column, ...] = tuple(
    column
    for level in TILE_LEVELS
    for column in _totalled(f"{level}_bound", "hardware tiles", block=Block.TILE)
)

# The tile's columns follow the node's: as in ``kernelcast-1`` a candidate's tile stands on every node.
TPUGRAPHS_140 = FeatureSchema(
    name="tpugraphs-140", node=NODE_COLUMNS + TILE_COLUMNS, kernel=(), opcodes=OPCODE_NAMES[:OPCODE_COUNT]
)
