"""Shapes: element type, dimensions and layout of an HLO value, or a tuple of shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

# Bits of one element. Types narrower than a byte take one byte each in host memory (ml_dtypes does the same).
ELEMENT_BITS: dict[str, int] = {
    "pred": 8, "s1": 1, "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64,
    "u1": 1, "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "f4e2m1fn": 4, "f8e3m4": 8, "f8e4m3": 8, "f8e4m3b11fnuz": 8, "f8e4m3fn": 8, "f8e4m3fnuz": 8,
    "f8e5m2": 8, "f8e5m2fnuz": 8, "f8e8m0fnu": 8,
    "bf16": 16, "f16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
    "token": 0, "opaque": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The order of dimensions in memory.

    Attributes:
        minor_to_major: dimension numbers, the fastest varying first.
        suffix: what stands after the colon, verbatim: tiles ``T(8,128)(2,1)``, element size ``E(4)``,
            memory space ``S(1)`` and whatever a later compiler adds.
    """

    minor_to_major: tuple[int, ...]
    suffix: str = ""

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """Tile dimensions, outermost tiling first; ``T(8,128)(2,1)`` gives ((8, 128), (2, 1))."""
        text = self.suffix
        start = text.find("T(")
        tiles: list[tuple[int, ...]] = []
        position = start + 1
        while start >= 0 and position < len(text) and text[position] == "(":
            end = text.index(")", position)
            # '*' (a combined dimension) is kept as -1.
            extents = [part.strip() for part in text[position + 1 : end].split(",")]
            tiles.append(tuple(-1 if extent == "*" else int(extent) for extent in extents if extent))
            position = end + 1
        return tuple(tiles)

    @property
    def memory_space(self) -> int:
        """The number in ``S(n)``; 0, the default memory, where it is absent."""
        start = self.suffix.find("S(")
        return int(self.suffix[start + 2 : self.suffix.index(")", start)]) if start >= 0 else 0

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}:{self.suffix}}}" if self.suffix else f"{{{order}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a value: an array, a tuple, a token or an opaque value.

    Attributes:
        element_type: HLO's name (``f32``, ``pred``, ``token``), ``tuple``, or ``buffer`` for the
            ``b(f32[4])`` of a value that is changed in place.
        dimensions: extents, major first as written; a dynamic or unbounded one holds its bound (−1: none).
        dynamic: dimension numbers printed with ``<=``.
        layout: None where the text gives none.
        elements: the shapes of a tuple's elements, or of what a buffer holds; empty for arrays.

    >>> shape = array_shape("f32", (4, 8))
    >>> str(shape), shape.element_count, shape.byte_size
    ('f32[4,8]', 32, 128)
    """

    element_type: str
    dimensions: tuple[int, ...] = ()
    dynamic: tuple[int, ...] = ()
    layout: Layout | None = None
    elements: tuple[Shape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        return self.element_type == "tuple"

    @property
    def is_array(self) -> bool:
        return self.element_type not in ("tuple", "buffer", "token", "opaque")

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def element_count(self) -> int:
        """Number of elements of an array; of all arrays of a tuple or buffer.

        Dynamic dimensions count with their bound, and those without a bound as 1.
        """
        if self.elements:
            return sum(element.element_count for element in self.elements)
        return math.prod(map(abs, self.dimensions)) if self.is_array else 0

    @property
    def byte_size(self) -> int:
        """Bytes without padding by tiling; sub-byte elements count one byte each, as on the host."""
        if self.elements:
            return sum(element.byte_size for element in self.elements)
        return (
            self.element_count * max(1, ELEMENT_BITS.get(self.element_type, 32) // 8) if self.is_array else 0
        )

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """The layout's order; row-major where no layout is given."""
        if self.layout is not None:
            return self.layout.minor_to_major
        return tuple(reversed(range(self.rank)))

    def leaves(self) -> Iterator[Shape]:
        """Arrays, buffers, tokens and opaque values, depth first."""
        for _, leaf in self.indexed_leaves():
            yield leaf

    def indexed_leaves(self, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Shape]]:
        """Each leaf with its place in the tuple, depth first; ``()`` is the place of an array itself."""
        if not self.is_tuple:
            yield index, self
            return
        for i, element in enumerate(self.elements):
            yield from element.indexed_leaves((*index, i))

    def at(self, index: tuple[int, ...]) -> Shape:
        """The part at a place of the tuple.

        Raises:
            IndexError: where the shape has no such place.
        """
        shape = self
        for i in index:
            shape = shape.elements[i]
        return shape

    def without_layout(self) -> Shape:
        """The same shape with no layout anywhere."""
        return Shape(
            element_type=self.element_type,
            dimensions=self.dimensions,
            dynamic=self.dynamic,
            elements=tuple(element.without_layout() for element in self.elements),
        )

    def __str__(self) -> str:
        if self.is_tuple:
            # XLA marks every fifth element of a long tuple with its index; its parser ignores the comment.
            parts = [
                f"/*index={i}*/{element}" if i and i % 5 == 0 else str(element)
                for i, element in enumerate(self.elements)
            ]
            return f"({', '.join(parts)})"
        if self.element_type == "buffer":
            return f"b({self.elements[0]})"
        extents = ",".join(
            ("?" if d < 0 else f"<={d}") if i in self.dynamic else str(d)
            for i, d in enumerate(self.dimensions)
        )
        return f"{self.element_type}[{extents}]{self.layout or ''}"


def array_shape(
    element_type: str, dimensions: tuple[int, ...], minor_to_major: tuple[int, ...] | None = None
) -> Shape:
    """An array shape, with a layout where an order is given."""
    layout = Layout(minor_to_major=minor_to_major) if minor_to_major is not None else None
    return Shape(element_type=element_type, dimensions=dimensions, layout=layout)


def tuple_shape(*elements: Shape) -> Shape:
    """The tuple of the given shapes."""
    return Shape(element_type="tuple", elements=elements)
