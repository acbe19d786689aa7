"""Values of scalar registers: 32-bit integers, truth values, and what a schedule alone cannot know."""

from __future__ import annotations

from typing import Final

WORD: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000


class Unknown:
    """A value that only a run on real data would give, e.g. an operand's address or a loaded element.

    It may be moved about and stored; a branch, a transfer or a wait that depends on it ends the execution.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = Unknown()
Value = int | Unknown
Truth = bool | Unknown


def signed(word: int) -> int:
    """The two's complement reading of 32 bits.

    >>> signed(0xFFFFFFFE)
    -2
    """
    return word - (1 << 32) if word & _SIGN else word
