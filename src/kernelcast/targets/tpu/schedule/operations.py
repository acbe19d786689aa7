"""Scalar slots as functions on a core's state: what each reads, computes and writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kernelcast.targets.tpu.schedule.arithmetic import BINARY, COMPARE, LOGIC
from kernelcast.targets.tpu.schedule.listing import ListingError, Slot
from kernelcast.targets.tpu.schedule.operands import (
    Machine,
    ReadTruth,
    ReadValue,
    memory_address,
    predicate,
    scalar,
)
from kernelcast.targets.tpu.schedule.value import UNKNOWN, WORD, Truth, Unknown, Value, signed

Write = Callable[[Machine], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign:
    """Writes a register.

    Attributes:
        is_predicate: whether it is a predicate register. number: of the register.
        read: the value, computed from the state before the bundle.
    """

    is_predicate: bool
    number: int
    read: Callable[[Machine], Value | Truth]

    def write(self, machine: Machine, value: Value | Truth) -> None:
        """Stores what ``read`` gave."""
        if self.is_predicate:
            machine.predicates[self.number] = value  # pyright: ignore[reportArgumentType, reportCallIssue]
        else:
            machine.scalars[self.number] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Goes to a region after the delay slots, if the condition holds.

    Attributes:
        condition: None for always.
        region: number of the target.
    """

    condition: ReadTruth | None
    region: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Stores to scalar memory, or talks to the DMA engine.

    Attributes:
        run: what it does; ``condition`` has been asked.
        condition: None for always.
    """

    run: Write
    condition: ReadTruth | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Ends the kernel, if the condition holds."""

    condition: ReadTruth | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Issues nothing for some cycles."""

    cycles: int


Operation = Assign | Branch | Act | Halt | Delay


class Unfollowable(Exception):
    """The execution depends on a value that the schedule alone does not give, or on an unknown operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A slot taken apart.

    Attributes:
        destination: register name without ``%``, or a number that only names the operation; "" for none.
        opcode: with its dots.
        condition: of a predicated operation. otherwise: what a predicated move has where it does not hold.
        arguments: the rest.
    """

    destination: str
    opcode: str
    condition: ReadTruth | None
    otherwise: ReadValue | None
    arguments: str


_SLOT = re.compile(r"(?:%(\w+) = )?([a-z]\w*(?:\.\w+)*)(.*)", re.DOTALL)
_CONDITION = re.compile(r"\((!?%p\d+_p\d+)(?:, ([^()]*))?\),?")
_REGISTER = re.compile(r"[sp]\d+_([sp])(\d+)$")


def take_apart(slot: Slot) -> Parts:
    """The parts of a slot's text.

    Raises:
        ListingError: the text is of another form.
    """
    match = _SLOT.match(slot.text)
    if match is None:
        raise ListingError("a slot is '%name = opcode arguments'", line=slot.line, text=slot.text)
    destination, opcode, arguments = match[1] or "", match[2], match[3]
    condition = otherwise = None
    if found := _CONDITION.search(arguments):
        condition = predicate(found[1])
        otherwise = scalar(found[2]) if found[2] else None
        arguments = arguments[: found.start()] + arguments[found.end() :]
    return Parts(
        destination=destination,
        opcode=opcode,
        condition=condition,
        otherwise=otherwise,
        arguments=arguments.strip(),
    )


def assignment(slot: Slot, parts: Parts) -> Assign | None:
    """The write of a scalar or predicate register; None where the slot writes neither.

    An operation that is not in the tables gives an unknown value.
    """
    match = _REGISTER.match(parts.destination)
    if match is None:
        return None
    is_predicate, number = match[1] == "p", int(match[2])
    read: Callable[[Machine], Value | Truth]
    if is_predicate:
        read = _truth(parts.opcode, parts.arguments) or _unknown
    else:
        read = _value(parts, slot) or _unknown
    if parts.condition is not None:
        keep = parts.otherwise or _held(is_predicate, number)
        read = _chosen(parts.condition, read, keep)
    return Assign(is_predicate=is_predicate, number=number, read=read)


def _value(parts: Parts, slot: Slot) -> ReadValue | None:
    name = parts.opcode.split(".")[0]
    if parts.opcode == "sld":
        # One core of one chip runs: its numbers are 0.
        if {"logical chip id", "core id"} & set(slot.notes):
            return lambda _: 0
        address = memory_address(parts.arguments)
        return None if address is None else _load(address)
    if name == "spop":
        return _pop
    if name == "scalar_select":
        return _select(parts.arguments)
    operands = [scalar(_first_word(text)) for text in parts.arguments.split(",")]
    if name in ("smov", "int_to_ptr") and operands[-1] is not None:
        return operands[-1]
    compute = BINARY.get(".".join(parts.opcode.split(".")[:2])) or BINARY.get(name)
    if compute is None or len(operands) != 2 or operands[0] is None or operands[1] is None:
        return None
    return _binary(compute, operands[0], operands[1])


def _first_word(text: str) -> str:
    """The operand without the allocation that is printed behind it."""
    text = text.strip()
    return text if text.startswith("[") else text.partition(" ")[0]


def _truth(opcode: str, arguments: str) -> ReadTruth | None:
    name, _, rest = opcode.partition(".")
    texts = arguments.split(",")
    if name in LOGIC:
        reads = [predicate(text) for text in texts]
        if len(reads) != 2 or reads[0] is None or reads[1] is None:
            return None
        return _logic(LOGIC[name], reads[0], reads[1])
    if name in ("pmov", "pneg"):
        held = predicate(texts[0])
        if held is None or name == "pmov":
            return held
        return _logic(LOGIC["pnand"], held, held)
    if name != "scmp":
        return None
    relation, _, kind = rest.partition(".")
    left, right = scalar(_first_word(texts[0])), scalar(_first_word(texts[-1]))
    if relation not in COMPARE or left is None or right is None:
        return None
    if kind.startswith("s32"):
        return _comparison(COMPARE[relation], left, right, is_signed=True)
    return _comparison(COMPARE[relation], left, right, is_signed=False) if kind.startswith("u32") else None


def _unknown(_: Machine) -> Unknown:
    return UNKNOWN


def _binary(compute: Callable[[int, int], int], left: ReadValue, right: ReadValue) -> ReadValue:
    def read(machine: Machine) -> Value:
        a, b = left(machine), right(machine)
        return compute(a, b) if isinstance(a, int) and isinstance(b, int) else UNKNOWN

    return read


def _comparison(
    compare: Callable[[int, int], bool], left: ReadValue, right: ReadValue, *, is_signed: bool
) -> ReadTruth:
    def read(machine: Machine) -> Truth:
        a, b = left(machine), right(machine)
        if not (isinstance(a, int) and isinstance(b, int)):
            return UNKNOWN
        return compare(signed(a), signed(b)) if is_signed else compare(a, b)

    return read


def _logic(combine: Callable[[Truth, Truth], Truth], left: ReadTruth, right: ReadTruth) -> ReadTruth:
    return lambda machine: combine(left(machine), right(machine))


def _select(arguments: str) -> ReadValue | None:
    texts = [text.rpartition("=")[2] for text in arguments.split(",")]
    if len(texts) != 3:
        return None
    condition, yes, no = predicate(texts[0]), scalar(texts[1]), scalar(texts[2])
    if condition is None or yes is None or no is None:
        return None
    return _chosen(condition, yes, no)  # pyright: ignore[reportReturnType]


def _chosen(
    condition: ReadTruth, yes: Callable[[Machine], Value | Truth], no: Callable[[Machine], Value | Truth]
) -> Callable[[Machine], Value | Truth]:
    def read(machine: Machine) -> Value | Truth:
        holds = condition(machine)
        if isinstance(holds, Unknown):
            return UNKNOWN
        return yes(machine) if holds else no(machine)

    return read


def _held(is_predicate: bool, number: int) -> Callable[[Machine], Value | Truth]:
    if is_predicate:
        return lambda machine: machine.predicates[number]
    return lambda machine: machine.scalars[number]


def _load(address: ReadValue) -> ReadValue:
    def read(machine: Machine) -> Value:
        place = address(machine)
        return machine.memory.get(place, UNKNOWN) if isinstance(place, int) else UNKNOWN

    return read


def _pop(machine: Machine) -> Value:
    return machine.results.pop(0) if machine.results else UNKNOWN


def store(slot: Slot, parts: Parts) -> Write:
    """What an ``sst`` slot does: a word into scalar memory."""
    place, _, text = parts.arguments.rpartition(" ")
    address, value = memory_address(place), scalar(text)
    if address is None or value is None:
        raise ListingError("a store is 'sst [smem:…] word'", line=slot.line, text=slot.text)

    def write(machine: Machine) -> None:
        where = address(machine)
        if not isinstance(where, int):
            raise Unfollowable("where a word is stored depends on data")
        machine.memory[where] = value(machine)

    return write


def divide(slot: Slot, parts: Parts) -> Write:
    """What an ``sdivrem`` slot does: quotient, remainder or both, to be popped later."""
    operands = [scalar(text) for text in parts.arguments.split(",")]
    kind = " ".join(slot.notes)
    if len(operands) != 2 or operands[0] is None or operands[1] is None:
        raise ListingError("a division has two operands", line=slot.line, text=slot.text)
    compute = _binary(lambda a, b: (a // b << 32 | a % b) if b else 0, operands[0], operands[1])

    def push(machine: Machine) -> None:
        both = compute(machine)
        if "Div" in kind:
            machine.results.append(both >> 32 if isinstance(both, int) else both)
        if "Rem" in kind:
            machine.results.append(both & WORD if isinstance(both, int) else both)

    return push
