"""What scalar operations compute: on 32-bit words, and on truth values of which some are unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from kernelcast.targets.tpu.schedule.value import UNKNOWN, WORD, Truth, Unknown, signed

_LOW_24 = (1 << 24) - 1

BINARY: Mapping[str, Callable[[int, int], int]] = {
    "sadd.s32": lambda a, b: (a + b) & WORD,
    "ssub.s32": lambda a, b: (a - b) & WORD,
    "smul.u32": lambda a, b: (a * b) & WORD,
    "smul.u24": lambda a, b: ((a & _LOW_24) * (b & _LOW_24)) & WORD,  # v2 has no wider one
    "sand.u32": operator.and_,
    "sor.u32": operator.or_,
    "sxor.u32": operator.xor,
    "sshll.u32": lambda a, b: (a << b) & WORD if b < 32 else 0,
    "sshrl.u32": lambda a, b: a >> b if b < 32 else 0,
    "sshra.s32": lambda a, b: (signed(a) >> min(b, 31)) & WORD,
    "smin.s32": lambda a, b: min(signed(a), signed(b)) & WORD,
    "smax.s32": lambda a, b: max(signed(a), signed(b)) & WORD,
    "smin.u32": min,
    "smax.u32": max,
    "scalar_lea": operator.add,
}
COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge,
}  # fmt: skip


def _or(a: Truth, b: Truth) -> Truth:
    if a is True or b is True:
        return True
    return UNKNOWN if isinstance(a, Unknown) or isinstance(b, Unknown) else False


def _not(a: Truth) -> Truth:
    return a if isinstance(a, Unknown) else not a


def _and(a: Truth, b: Truth) -> Truth:
    return _not(_or(_not(a), _not(b)))


LOGIC: Mapping[str, Callable[[Truth, Truth], Truth]] = {
    "por": _or,
    "pand": _and,
    "pnor": lambda a, b: _not(_or(a, b)),
    "pnand": lambda a, b: _not(_and(a, b)),
    "pxor": lambda a, b: UNKNOWN if isinstance(a, Unknown) or isinstance(b, Unknown) else a != b,
}
