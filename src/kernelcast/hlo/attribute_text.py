"""Numbers, flags and strings out of verbatim attribute text."""

from __future__ import annotations

import re

from kernelcast.errors import HloError
from kernelcast.hlo.program import Instruction

_INTEGER = re.compile(r"-?\d{1,19}")
_INTEGERS = re.compile(r"\{\s*(?:-?\d{1,19}\s*(?:,\s*-?\d{1,19}\s*)*)?\}")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def required(instruction: Instruction, key: str) -> str:
    """The verbatim value of an attribute that the opcode cannot do without.

    Raises:
        HloError: the instruction does not have it.
    """
    value = instruction.attribute(key)
    if value is None:
        raise HloError(f"expected {instruction.opcode} to have attribute {key}", instruction=instruction.name)
    return value


def integers(
    instruction: Instruction, key: str, *, default: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """The numbers of an attribute such as ``dimensions={0,2}``.

    Args:
        default: for an absent attribute; None makes its absence an error.

    Raises:
        HloError: the attribute is missing, or not a list of integers in braces.
    """
    value = instruction.attribute(key)
    if value is None and default is not None:
        return default
    value = required(instruction, key)
    if not _INTEGERS.fullmatch(value):
        raise HloError(
            f"expected {key} to be integers in braces, got {value!r}", instruction=instruction.name
        )
    return tuple(map(int, _INTEGER.findall(value)))


def integer(instruction: Instruction, key: str, *, default: int | None = None) -> int:
    """The number of an attribute such as ``index=1``.

    Args:
        default: for an absent attribute; None makes its absence an error.

    Raises:
        HloError: the attribute is missing, or not an integer.
    """
    value = instruction.attribute(key)
    if value is None and default is not None:
        return default
    value = required(instruction, key)
    if not _INTEGER.fullmatch(value):
        raise HloError(f"expected {key} to be an integer, got {value!r}", instruction=instruction.name)
    return int(value)


def flag(instruction: Instruction, key: str) -> bool:
    """Whether an attribute is ``true``; an absent one is not.

    Raises:
        HloError: the value is neither ``true`` nor ``false``.
    """
    value = instruction.attribute(key)
    if value not in (None, "true", "false"):
        raise HloError(f"expected {key} to be true or false, got {value!r}", instruction=instruction.name)
    return value == "true"


def unquoted(value: str) -> str:
    """The string that a quoted attribute value stands for; a value without quotes is its own.

    >>> unquoted(r'"say \\"hi\\""')
    'say "hi"'
    """
    if len(value) < 2 or value[0] not in "\"'" or value[-1] != value[0]:
        return value
    return _ESCAPE.sub(_unescaped, value[1:-1]) if "\\" in value else value[1:-1]


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, octal, character = match.groups()
    if hexadecimal is not None:
        return chr(int(hexadecimal, 16))
    if octal is not None:
        return chr(int(octal, 8))
    return _ESCAPED.get(character, character)
