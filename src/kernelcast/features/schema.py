"""The feature schema ``kernelcast-1``: every column of the network's input, as data.

A row holds *raw* values (extents, counts, flags, physical units). What is done to a column before the network
sees it is part of the schema (``Transform``); by how much it is scaled is part of a checkpoint. Absent values
are 0 with the mask column of their group at 0. The names, their order, their transforms and the opcode table
make the digest that binds a checkpoint to the schema.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from kernelcast.core.kernel import Kind
from kernelcast.core.tile import MAX_BOUNDS, MAX_LEVELS
from kernelcast.features.opcodes import OPCODE_NAMES

SLOTS = 6  # dimensions that have columns of their own; of more, the six most minor are kept


class Block(StrEnum):
    """Which part of the input a column belongs to; a model names the blocks that it reads."""

    PAPER = "paper"  # read off the program text, as in the paper's section 4
    MASK = "mask"  # whether a group of the paper's block is present
    TILE = "tile"  # the tile of a candidate, on every node
    STATIC = "static"  # worked out from the program; off in the paper-faithful model


class Transform(StrEnum):
    """What happens to a raw value before scaling."""

    RAW = "raw"
    LOG = "log"  # sign(x) · log(1 + |x|): extents and counts span nine decades
    FLAG = "flag"  # 0 or 1, neither transformed nor scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the input.

    Attributes:
        name: unique within nodes or kernels.
        block: the part of the input it belongs to.
        unit: of the raw value.
        transform: applied before scaling.
    """

    name: str
    block: Block
    unit: str
    transform: Transform


ELEMENT_TYPES = (
    "pred", "s4", "s8", "s16", "s32", "s64", "u4", "u8", "u16", "u32", "u64", "f8", "bf16", "f16", "f32",
    "f64", "c64", "c128", "other",
)  # fmt: skip
REDUCERS = ("add", "multiply", "maximum", "minimum", "and", "or", "other")
CONVOLUTION_NUMBERS = (
    "input_batch", "input_feature", *(f"input_spatial_{i}" for i in range(4)),
    "kernel_input_feature", "kernel_output_feature", *(f"kernel_spatial_{i}" for i in range(4)),
    "output_batch", "output_feature", *(f"output_spatial_{i}" for i in range(4)),
)  # fmt: skip
# How the generated code computes one element: by one vector instruction, by a vector instruction of long
# latency, by an inlined polynomial, by a scalar library call per element, or by no arithmetic at all.
CODE_CLASSES = ("move", "vector", "division", "polynomial", "call")
# Bytes up to which a footprint fits; nominal sizes of the three cache levels of a server core.
CACHE_BYTES = (32 << 10, 1 << 20, 32 << 20)
DIVISORS = (4, 8, 16)

_P, _M, _T, _S = Block.PAPER, Block.MASK, Block.TILE, Block.STATIC


def _column(name: str, block: Block, unit: str, transform: Transform = Transform.LOG) -> list[Column]:
    return [Column(name=name, block=block, unit=unit, transform=transform)]


def _slots(
    name: str, unit: str, *, totals: bool = True, transform: Transform = Transform.LOG
) -> list[Column]:
    """Six slots minor → major and, as in the paper, their sum and product."""
    names = [f"{name}_{i}" for i in range(SLOTS)] + ([f"{name}_sum", f"{name}_product"] if totals else [])
    return [Column(name=n, block=_P, unit=unit, transform=transform) for n in names]


def _flags(prefix: str, names: tuple[str, ...], block: Block) -> list[Column]:
    return [Column(name=f"{prefix}_{n}", block=block, unit="flag", transform=Transform.FLAG) for n in names]


def _footprint(prefix: str) -> list[Column]:
    return _flags(f"{prefix}_beyond_cache", tuple(str(level + 1) for level in range(len(CACHE_BYTES))), _S)


def _divisible(prefix: str) -> list[Column]:
    return _flags(f"{prefix}_divisible_by", tuple(map(str, DIVISORS)), _S)


NODE_COLUMNS: tuple[Column, ...] = (
    *_flags("is", ("output", "aliased"), _P),
    *_flags("type", ELEMENT_TYPES, _P),
    *_column("rank", _P, "dimensions", Transform.RAW),
    *_slots("extent", "elements"),
    *_slots("minor_to_major", "dimension number", totals=False, transform=Transform.RAW),
    *_column("memory_space", _P, "number", Transform.RAW),
    *_column("tuple_size", _P, "shapes"),
    *_flags("reducer", REDUCERS, _P),
    *_slots("dimensions", "dimension number", totals=False, transform=Transform.RAW),
    *_column("dimensions_count", _P, "dimensions", Transform.RAW),
    *_slots("window_size", "elements"),
    *_slots("window_stride", "elements"),
    *_slots("window_padding_low", "elements"),
    *_slots("window_padding_high", "elements"),
    *_slots("window_dilation", "elements"),
    *_slots("base_dilation", "elements"),
    *_column("window_reversed", _P, "dimensions", Transform.RAW),
    *(
        c for n in CONVOLUTION_NUMBERS
        for c in _column(f"convolution_{n}", _P, "dimension number", Transform.RAW)
    ),
    *_column("feature_group_count", _P, "groups"),
    *_column("batch_group_count", _P, "groups"),
    *(
        c for side in ("left", "right") for role in ("contracting", "batch") for i in range(2)
        for c in _column(f"dot_{side}_{role}_{i}", _P, "dimension number", Transform.RAW)
    ),
    *_column("dot_contracting_count", _P, "dimensions", Transform.RAW),
    *_column("dot_batch_count", _P, "dimensions", Transform.RAW),
    *_column("index_vector_dimension", _P, "dimension number", Transform.RAW),
    *_column("offset_dimensions_count", _P, "dimensions", Transform.RAW),
    *_column("indexed_dimensions_count", _P, "dimensions", Transform.RAW),
    *_slots("slice_size", "elements"),
    *_slots("slice_start", "elements"),
    *_slots("slice_limit", "elements"),
    *_slots("slice_stride", "elements"),
    *_slots("pad_low", "elements"),
    *_slots("pad_high", "elements"),
    *_slots("pad_interior", "elements"),
    *_flags("has", ("extents", "dimensions", "window", "convolution", "dot", "indexing", "slice_size",
                    "slice", "pad", "reducer"), _M),
    *(
        c for level in range(MAX_LEVELS)
        for name in (*(f"bound_{i}" for i in range(MAX_BOUNDS)), "sum", "product")
        for c in _column(f"tile_{level}_{name}", _T, "tile unit")
    ),
    *_flags("has_tile", tuple(map(str, range(MAX_LEVELS))), _T),
    *_flags("tile_counts", ("hardware_tiles",), _T),
    # How often the node is computed, and how its value is walked through in memory.
    *_column("evaluations", _S, "elements computed"),
    *_column("evaluations_hoisted", _S, "elements computed, invariant ones once per inner loop"),
    *_column("evaluations_per_element", _S, "ratio"),
    *_column("evaluation_sites", _S, "distinct index expressions"),
    *(c for w in ("contiguous", "invariant", "strided", "irregular")
      for c in _column(f"share_{w}", _S, "fraction of evaluations", Transform.RAW)),
    *_column("share_sequential", _S, "fraction of evaluations", Transform.RAW),
    *_column("stride_bytes", _S, "bytes between inner iterations, largest"),
    *_column("inner_extent", _S, "iterations of the innermost loop"),
    *_divisible("inner_extent"),
    *_column("touched_bytes", _S, "bytes"),
    *_column("touched_lines", _S, "cache lines"),
    # The cost of one evaluation and of all.
    *_flags("code", CODE_CLASSES, _S),
    *_flags("code_is", ("integer_division", "narrow_conversion"), _S),
    *_column("operations_per_element", _S, "operations"),
    *_column("operations", _S, "operations"),
    *_column("bytes", _S, "bytes"),
    *_column("element_bytes", _S, "bytes", Transform.RAW),
    *_footprint("value"),
    *_divisible("minor_extent"),
    *_column("minor_extent_modulo_16", _S, "elements", Transform.RAW),
    *_column("users", _S, "nodes"),
    *_column("operands", _S, "nodes"),
    # What the first operand tells.
    *_column("operand_elements", _S, "elements"),
    *_column("operand_minor_extent", _S, "elements"),
    *_flags("keeps", ("minor_dimension", "minor_extent"), _S),
    *_column("reduced_extent", _S, "elements"),
    *_flags("reduces", ("minor_dimension", "major_dimension"), _S),
    *(c for n in ("m", "n", "k", "batch") for c in _column(f"dot_{n}", _S, "elements")),
    *_flags("dot_contracts_minor", ("left", "right"), _S),
    *(c for n in ("input_channels", "output_channels", "output_pixels", "taps")
      for c in _column(f"convolution_{n}", _S, "elements")),
    *_flags("convolution", ("channels_last",), _S),
)  # fmt: skip

KERNEL_COLUMNS: tuple[Column, ...] = (
    *_flags("kind", tuple(k.value for k in Kind), _S),
    *_column("nodes", _S, "nodes"),
    *_column("parameters", _S, "nodes"),
    *_column("outputs", _S, "nodes"),
    *_flags("is", ("fusion", "in_place"), _S),
    *_column("bytes_in", _S, "bytes"),
    *_column("bytes_out", _S, "bytes"),
    *_column("bytes_touched", _S, "bytes"),
    *_column("lines_touched", _S, "cache lines"),
    *_column("parameter_bytes_largest", _S, "bytes"),
    *_footprint("kernel"),
    *_column("output_elements", _S, "elements"),
    *_column("output_minor_extent", _S, "elements"),
    *_divisible("output_minor_extent"),
    *_column("output_second_extent", _S, "elements"),
    *_column("output_rank", _S, "dimensions", Transform.RAW),
    *_column("output_element_bytes", _S, "bytes", Transform.RAW),
    *_column("operations", _S, "operations"),
    *_column("evaluations", _S, "elements computed"),
    *_column("evaluations_per_output", _S, "ratio"),
    *_column("evaluations_largest_per_element", _S, "ratio"),
    *(c for n in CODE_CLASSES for c in _column(f"evaluations_{n}", _S, "elements computed")),
    *(c for n in ("integer_division", "narrow_conversion")
      for c in _column(f"evaluations_{n}", _S, "elements computed")),
    *(c for n in ("contiguous", "invariant", "strided", "irregular")
      for c in _column(f"loads_{n}", _S, "elements read")),
    *_column("weighted_work", _S, "nominal cycles of the evaluations"),
    *_column("evaluations_sequential", _S, "elements computed inside reductions"),
    *_flags("is", ("vectorised",), _S),
    *_column("inner_extent", _S, "iterations of the innermost loop, smallest over reads"),
    *_column("reduced_extent", _S, "elements, largest over reductions"),
    *_column("reduce_evaluations", _S, "elements reduced"),
    *_flags("reduces", ("minor_dimension",), _S),
    *_column("dot_operations", _S, "operations"),
    *(c for n in ("m", "n", "k", "batch") for c in _column(f"dot_{n}", _S, "elements")),
    *_column("convolution_operations", _S, "operations"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FeatureSchema:
    """The columns of nodes and kernels, and the opcode table.

    Attributes:
        name: of the schema, with its version.
        node: columns of one row per node.
        kernel: columns of one row per kernel; all static.
        opcodes: names by embedding row.
    """

    name: str
    node: tuple[Column, ...]
    kernel: tuple[Column, ...]
    opcodes: tuple[str, ...]

    def __post_init__(self) -> None:
        for columns in (self.node, self.kernel):
            names = [c.name for c in columns]
            if len(set(names)) != len(names):
                raise ValueError(f"two columns of schema {self.name} share a name")

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits; equal only for the same columns, transforms and opcodes."""
        lines = [self.name, *self.opcodes]
        for level, columns in (("node", self.node), ("kernel", self.kernel)):
            lines.extend(f"{level} {c.name} {c.block} {c.transform}" for c in columns)
        return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Column number by name, of nodes."""
        return {c.name: i for i, c in enumerate(self.node)}

    @cached_property
    def kernel_index(self) -> dict[str, int]:
        """Column number by name, of kernels."""
        return {c.name: i for i, c in enumerate(self.kernel)}

    @cached_property
    def tile_columns(self) -> np.ndarray:
        """(tile column,) numbers of the node columns that hold a candidate's tile, ascending."""
        return np.array([i for i, c in enumerate(self.node) if c.block is Block.TILE], dtype=np.int64)


def logarithmic(columns: tuple[Column, ...]) -> np.ndarray:
    """(column,) whether each column is log-transformed."""
    return np.array([c.transform is Transform.LOG for c in columns], dtype=np.bool_)


KERNELCAST_1 = FeatureSchema(
    name="kernelcast-1", node=NODE_COLUMNS, kernel=KERNEL_COLUMNS, opcodes=OPCODE_NAMES
)
