"""Serialised ``HloModuleProto`` messages, made comparable by their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kernelcast.errors import HloError

# Field numbers of xla/service/hlo.proto and xla_data.proto.
_MODULE_ID = 5
_Maps = Mapping[
    int, "_Maps | None"
]  # by field: the maps inside that message; None: it holds one map's entries
_MODULE: _Maps = {
    3: {2: {68: None}},  # computations → instructions → frontend_attributes
    19: None,  # frontend_attributes
}
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


class _Field(NamedTuple):
    """One field of a message: its number, the bytes of tag and length, and those of its value."""

    number: int
    prefix: bytes
    value: bytes


def canonical_proto(proto: bytes) -> bytes:
    """The same module without its id, which counts modules in a process, and with maps in sorted order.

    Two parses of one text differ in exactly these.

    Raises:
        HloError: the bytes are no serialised message.
    """
    try:
        fields = [field for field in _fields(proto) if field.number != _MODULE_ID]
        return b"".join(_canonical(field, _MODULE) for field in fields)
    except (IndexError, ValueError) as error:
        raise HloError(
            f"expected a serialised HloModuleProto, got {len(proto)} other bytes: {error}"
        ) from None


def _canonical(field: _Field, maps: _Maps) -> bytes:
    if field.number not in maps:
        return field.prefix + field.value
    inner = maps[field.number]
    if inner is None:
        return field.prefix + b"".join(sorted(entry.prefix + entry.value for entry in _fields(field.value)))
    return field.prefix + b"".join(_canonical(part, inner) for part in _fields(field.value))


def _fields(message: bytes) -> Iterator[_Field]:
    position = 0
    while position < len(message):
        start = position
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            _, end = _varint(message, position)
        elif kind == _LENGTH:
            length, position = _varint(message, position)
            end = position + length
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            end = position + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError(f"wire type {kind} at byte {start}")
        if end > len(message):
            raise ValueError(f"a field at byte {start} runs over the end")
        yield _Field(tag >> 3, message[start:position], message[position:end])
        position = end


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    number = shift = 0
    while True:
        byte = message[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, position
