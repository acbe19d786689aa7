"""Serialised ``HloModuleProto`` messages, made comparable by their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelcast.errors import HloError


@dataclass(slots=True)
class _Message:
    """What has to change in one type of message: fields by number.

    Attributes:
        inner: messages with changes of their own.
        dropped: fields left out.
        is_map: its entries stand in no order.
    """

    inner: dict[int, _Message] = field(default_factory=dict[int, "_Message"])
    dropped: int | None = None
    is_map: bool = False


# xla/service/hlo.proto. The module's id (5) counts modules in a process.
_MAP = _Message(is_map=True)
_INSTRUCTION = _Message(inner={68: _MAP})  # frontend_attributes
_MODULE = _Message(
    inner={3: _Message(inner={2: _INSTRUCTION}), 19: _MAP}, dropped=5
)  # computations, attributes
# original_value_recovery_table: its entries hold modules.
_MODULE.inner[20] = _Message(inner={1: _Message(inner={3: _MODULE})})

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


class Field(NamedTuple):
    """One field of a message: its number, the bytes of its tag, and those of its value.

    The length before a value of variable length belongs to neither.
    """

    number: int
    tag: bytes
    value: bytes
    has_length: bool


def canonical_proto(proto: bytes) -> bytes:
    """The same module without its id, which counts modules in a process, and with maps in sorted order.

    Two parses of one text differ in exactly these.

    Raises:
        HloError: the bytes are no serialised message.
    """
    try:
        return _canonical(proto, _MODULE)
    except (IndexError, ValueError) as error:
        raise HloError(
            f"expected a serialised HloModuleProto, got {len(proto)} other bytes: {error}"
        ) from None


def _canonical(proto: bytes, message: _Message) -> bytes:
    parts: list[bytes] = []
    for part in fields(proto):
        if part.number == message.dropped:
            continue
        inner = message.inner.get(part.number)
        value = part.value if inner is None else _canonical(part.value, inner)
        parts.append(part.tag + (encode_varint(len(value)) if part.has_length else b"") + value)
    return b"".join(sorted(parts) if message.is_map else parts)


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a serialised message, in order.

    Raises:
        ValueError: the bytes are no message.
        IndexError: they end inside a number.
    """
    position = 0
    while position < len(message):
        start = position
        tag, position = decode_varint(message, position)
        tag_end, kind = position, tag & 7
        if kind == _VARINT:
            _, end = decode_varint(message, position)
        elif kind == _LENGTH:
            length, position = decode_varint(message, position)
            end = position + length
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            end = position + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError(f"wire type {kind} at byte {start}")
        if end > len(message):
            raise ValueError(f"the field at byte {start} runs over the end")
        yield Field(tag >> 3, message[start:tag_end], message[position:end], kind == _LENGTH)
        position = end


def decode_varint(message: bytes, position: int) -> tuple[int, int]:
    """The variable-length number at a position, and the position after it.

    Raises:
        IndexError: the message ends inside the number.
        ValueError: the number has more than the ten bytes that 64 bits take.
    """
    number = 0
    for shift in range(0, 70, 7):
        byte = message[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ValueError(f"a number of more than ten bytes before byte {position}")


def encode_varint(number: int) -> bytes:
    """The variable-length form of a number of at least 0."""
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
