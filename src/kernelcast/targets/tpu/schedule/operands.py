"""Operands of scalar slots: constants, registers, predicates and places in scalar memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelcast.targets.tpu.schedule.trace import Event
from kernelcast.targets.tpu.schedule.value import UNKNOWN, WORD, Truth, Value

SCALAR_REGISTERS, PREDICATE_REGISTERS = 64, 32
# Allocations are told apart by their number; an offset within one stays far below this.
_ALLOCATION_SHIFT = 24
_SPILL_SPACE = 1 << 60

_SCALAR = re.compile(r"%s\d+_s(\d+)$")
_PREDICATE = re.compile(r"(!?)%p\d+_p(\d+)$")
_ALLOCATION = re.compile(r"\[#allocation(\d+)(_spill)?(?: \+ \$(0x[0-9a-f]+))?\]$")
_MEMORY_AT_REGISTER = re.compile(r"\[smem:\[%s\d+_s(\d+)(?: \+ \$(0x[0-9a-f]+))?\]\]?$")


@dataclass(slots=True)
class Machine:
    """Scalar state of one core.

    Attributes:
        scalars, predicates: the registers.
        memory: scalar memory by address; what was never stored is unknown.
        results: of divisions, popped in the order pushed.
        events: the trace so far.
    """

    scalars: list[Value] = field(default_factory=lambda: [UNKNOWN] * SCALAR_REGISTERS)
    predicates: list[Truth] = field(default_factory=lambda: [UNKNOWN] * PREDICATE_REGISTERS)
    memory: dict[int, Value] = field(default_factory=dict[int, Value])
    results: list[Value] = field(default_factory=list[Value])
    events: list[Event] = field(default_factory=list[Event])


ReadValue = Callable[[Machine], Value]
ReadTruth = Callable[[Machine], Truth]


def scalar(text: str) -> ReadValue | None:
    """How to read a scalar operand; None where it is not one."""
    text = text.strip()
    if match := _SCALAR.match(text):
        return _register(int(match[1]))
    word = constant(text)
    return None if word is None else lambda _: word


def constant(text: str) -> Value | None:
    """The value of a literal or an allocation's address; a floating-point literal is unknown."""
    if match := _ALLOCATION.match(text):
        number, spill, offset = match.groups()
        return (
            (int(number) << _ALLOCATION_SHIFT)
            + (int(offset, 16) if offset else 0)
            + (_SPILL_SPACE if spill else 0)
        )
    try:
        return int(text, 0) & WORD
    except ValueError:
        pass
    try:
        float(text)
    except ValueError:
        return None
    return UNKNOWN


def predicate(text: str) -> ReadTruth | None:
    """How to read a predicate operand, ``!`` for its negation; None where it is not one."""
    match = _PREDICATE.match(text.strip())
    if match is None:
        return None
    number = int(match[2])
    if not match[1]:
        return lambda machine: machine.predicates[number]

    def negated(machine: Machine) -> Truth:
        held = machine.predicates[number]
        return held if held is UNKNOWN else not held

    return negated


def memory_address(text: str) -> ReadValue | None:
    """How to find the address of ``[smem:[…]]``; None where it is another operand."""
    text = text.strip()
    if match := _MEMORY_AT_REGISTER.match(text):
        number, offset = int(match[1]), int(match[2], 16) if match[2] else 0

        def address(machine: Machine) -> Value:
            base = machine.scalars[number]
            return base + offset if isinstance(base, int) else base

        return address
    if text.startswith("[smem:"):
        word = constant(text.removeprefix("[smem:").removesuffix("]"))
        return None if word is None else lambda _: word
    return None


def _register(number: int) -> ReadValue:
    return lambda machine: machine.scalars[number]
