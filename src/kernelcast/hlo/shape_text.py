"""Reads the text of a shape."""

from __future__ import annotations

import re
from functools import lru_cache

from kernelcast.errors import HloError
from kernelcast.hlo.lexical import balanced_end, without_comments
from kernelcast.hlo.shape import ELEMENT_BITS, Layout, Shape

_ARRAY = re.compile(r"\s*(\w+)\s*\[([^\]]*)\]\s*(?:\{([^{}:]*)(?::([^{}]*))?\})?\s*")
_DIMENSION = re.compile(r"\s*(<=)?\s*(\d{1,18}|\?)\s*")
# Of what follows the colon of a layout only these parts have a meaning here; the rest is kept verbatim.
_EXTENTS = r"\(\s*(?:(?:\d{1,18}|\*)\s*(?:,\s*(?:\d{1,18}|\*)\s*)*)?\)"
_SUFFIX_PARTS = (
    ("T(", re.compile(f"T(?:{_EXTENTS})+"), "tiles such as T(8,128)(2,1)"),
    ("S(", re.compile(r"S\(\d{1,9}\)"), "a memory space such as S(1)"),
)


@lru_cache(maxsize=16_384)
def parse_shape(text: str) -> Shape:
    """The shape that a text denotes.

    Raises:
        HloError: the text is not a shape; without a line, since only the caller knows it.

    >>> parse_shape("(f32[8,128]{1,0:T(8,128)}, s32[])").elements[0].layout.tiles
    ((8, 128),)
    """
    text = without_comments(text)
    shape, end = _read(text, 0)
    if text[end:].strip():
        raise HloError(f"expected the end of the shape, got {text[end:].strip()[:40]!r} in {text[:80]!r}")
    return shape


def _read(text: str, position: int) -> tuple[Shape, int]:
    while position < len(text) and text[position].isspace():
        position += 1
    if text.startswith("(", position):
        return _read_tuple(text, position)
    if text.startswith("b(", position):
        held, end = _read_tuple(text, position + 1)
        if len(held.elements) != 1:
            raise HloError(f"expected one shape in a buffer b(…), got {len(held.elements)}")
        return Shape(element_type="buffer", elements=held.elements), end
    match = _ARRAY.match(text, position)
    if match is None:
        got = text[position : position + 40]
        raise HloError(f"expected a shape such as f32[2,3]{{1,0}} or (f32[], s32[4]), got {got!r}")
    return _array(match), match.end()


def _read_tuple(text: str, position: int) -> tuple[Shape, int]:
    if balanced_end(text, position) < 0:
        raise HloError(f"expected ')' at the end of the tuple shape {text[position : position + 40]!r}")
    elements: list[Shape] = []
    position += 1
    while True:
        while text[position].isspace():
            position += 1
        if text[position] == ")":
            break
        element, position = _read(text, position)
        elements.append(element)
        if text[position] == ",":
            position += 1
        elif text[position] != ")":
            raise HloError(f"expected ',' or ')' in a tuple shape, got {text[position : position + 40]!r}")
    position += 1
    while position < len(text) and text[position].isspace():
        position += 1
    return Shape(element_type="tuple", elements=tuple(elements)), position


def _array(match: re.Match[str]) -> Shape:
    element_type, extents, order, suffix = match.groups()
    if element_type not in ELEMENT_BITS:
        raise HloError(f"unknown element type {element_type!r}; known are {', '.join(ELEMENT_BITS)}")
    dimensions: list[int] = []
    dynamic: list[int] = []
    for number, extent in enumerate(extents.split(",") if extents.strip() else ()):
        found = _DIMENSION.fullmatch(extent)
        if found is None:
            raise HloError(
                f"expected a dimension such as 8, <=8 or ?, got {extent!r} in {match.group().strip()!r}"
            )
        if found[1] or found[2] == "?":
            dynamic.append(number)
        dimensions.append(-1 if found[2] == "?" else int(found[2]))
    layout = None
    if order is not None:
        minor_to_major = tuple(_dimension_number(part, match) for part in order.split(",") if part.strip())
        layout = Layout(minor_to_major=minor_to_major, suffix=_checked_suffix(suffix or "", match))
    return Shape(
        element_type=element_type, dimensions=tuple(dimensions), dynamic=tuple(dynamic), layout=layout
    )


def _checked_suffix(text: str, match: re.Match[str]) -> str:
    for mark, pattern, expected in _SUFFIX_PARTS:
        start = text.find(mark)
        if start >= 0 and pattern.match(text, start) is None:
            got = text[start : start + 40]
            raise HloError(f"expected {expected} in a layout, got {got!r} in {match.group().strip()!r}")
    return text.strip()


def _dimension_number(text: str, match: re.Match[str]) -> int:
    if not text.strip().isdecimal() or len(text) > 18:
        raise HloError(f"expected a dimension number in a layout, got {text!r} in {match.group().strip()!r}")
    return int(text)
