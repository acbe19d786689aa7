"""The number of runs of a counted loop, worked out from its induction variable."""

from __future__ import annotations

from dataclasses import dataclass

from kernelcast.hlo.attributes import loop_computations, tuple_index
from kernelcast.hlo.program import Computation, Instruction, Program

_INTEGER = frozenset({"s4", "s8", "s16", "s32", "s64", "u4", "u8", "u16", "u32", "u64"})
_SAME_VALUE = frozenset({"copy", "bitcast", "reshape", "opt-barrier"})
_FLIPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


@dataclass(frozen=True, slots=True)
class _Affine:
    """``leaf + offset``; ``leaf`` is a (parameter number, tuple index), or None for a constant."""

    leaf: tuple[int, tuple[int, ...]] | None
    offset: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """A computation, and where it was entered from while looking through fusions and calls."""

    computation: Computation
    caller: _Frame | None = None
    call: Instruction | None = None

    def enter(self, program: Program, call: Instruction) -> _Frame:
        return _Frame(program[call.called[0]], self, call)


def induction(program: Program, while_instruction: Instruction, computation: Computation) -> int | None:
    """Runs of the loop's body, or None where the loop is not a counted one with constant bounds.

    Handled: a condition that is one comparison of (a state element + constant) with a constant or with
    a state element that the body leaves alone, and a body that adds a constant. Looks through tuples, copies,
    fusions and calls. A loop that would only end when the counter wraps around is not counted.
    """
    body, condition = loop_computations(while_instruction)
    compared = _comparison(program, _Frame(program[condition]))
    if compared is None:
        return None
    direction, left, right = compared
    loop = _Loop(program, while_instruction, computation, _Frame(program[body]))
    bound = loop.constant(right)
    if bound is None:
        bound, left, direction = loop.constant(left), right, _FLIPPED[direction]
    if bound is None or left.leaf is None:
        return None
    start, step = loop.start(left.leaf), loop.step(left.leaf)
    if start is None or step is None:
        return None
    runs = _count(direction, start + left.offset, bound, step)
    counter = program[condition].parameters[0].shape.at(left.leaf[1])
    return runs if runs is not None and _holds(counter.element_type, start + runs * step) else None


def _count(direction: str, start: int, bound: int, step: int) -> int | None:
    """Steps until ``start + n·step <direction> bound`` is false."""
    if direction in ("GT", "GE"):
        start, bound, step = -start, -bound, -step
    if direction in ("LE", "GE"):
        bound += 1
    if direction == "EQ":
        return 0 if start != bound else (1 if step else None)
    if direction == "NE":
        if start == bound:
            return 0
        return (
            (bound - start) // step
            if step and (bound - start) % step == 0 and (bound - start) // step > 0
            else None
        )
    if start >= bound:
        return 0
    return -((start - bound) // step) if step > 0 else None


def _holds(integer_type: str, value: int) -> bool:
    """Whether an integer type has the value; one that it has not would have wrapped around."""
    bits = int(integer_type[1:])
    low = 0 if integer_type[0] == "u" else -(1 << bits - 1)
    return low <= value < low + (1 << bits)


@dataclass(frozen=True, slots=True)
class _Loop:
    program: Program
    instruction: Instruction
    caller: Computation
    body: _Frame

    def step(self, leaf: tuple[int, tuple[int, ...]]) -> int | None:
        """What one run of the body adds to a state element."""
        new = _affine(self.program, self.body, self.body.computation.root, leaf[1])
        return new.offset if new is not None and new.leaf == leaf else None

    def start(self, leaf: tuple[int, tuple[int, ...]]) -> int | None:
        """The state element's first value."""
        return _constant_at(self.program, self.caller, self.instruction.operands[0], leaf[1])

    def constant(self, value: _Affine) -> int | None:
        """The value where every run of the condition sees the same one."""
        if value.leaf is None:
            return value.offset
        start = self.start(value.leaf) if self.step(value.leaf) == 0 else None
        return None if start is None else start + value.offset


def _constant_at(program: Program, computation: Computation, name: str, index: tuple[int, ...]) -> int | None:
    """A constant integer, looked for in the caller too where there is a single call."""
    value = _affine(program, _Frame(computation), name, index)
    if value is None or value.leaf is None:
        return None if value is None else value.offset
    callers = [(c, i) for c in program.computations for i in c if computation.name in i.called]
    if len(callers) != 1 or callers[0][1].opcode != "call":
        return None
    caller, call = callers[0]
    number, inner = value.leaf
    outer = _constant_at(program, caller, call.operands[number], inner)
    return None if outer is None else outer + value.offset


def _comparison(program: Program, frame: _Frame) -> tuple[str, _Affine, _Affine] | None:
    """(direction, left, right) of the comparison that a condition returns, in the condition's parameter."""
    instruction = frame.computation.root_instruction
    while True:
        if instruction.opcode in _SAME_VALUE:
            instruction = frame.computation[instruction.operands[0]]
        elif instruction.opcode in ("fusion", "call"):
            frame = frame.enter(program, instruction)
            instruction = frame.computation.root_instruction
        else:
            break
    direction = instruction.attribute("direction")
    if instruction.opcode != "compare" or direction not in _FLIPPED:
        return None
    left, right = (_affine(program, frame, operand, ()) for operand in instruction.operands)
    return None if left is None or right is None else (direction, left, right)


def _affine(program: Program, frame: _Frame, name: str, index: tuple[int, ...]) -> _Affine | None:
    """The value at a place as (parameter leaf of the outermost frame) + constant; None for anything else."""
    while True:
        instruction = frame.computation[name]
        match instruction.opcode:
            case "parameter":
                number = instruction.parameter_number or 0
                if frame.caller is None or frame.call is None:
                    return _Affine((number, index), 0)
                name, frame = frame.call.operands[number], frame.caller
            case "constant" if instruction.shape.element_type in _INTEGER and not index:
                return _scalar(instruction)
            case "get-tuple-element":
                index = (tuple_index(instruction), *index)
                name = instruction.operands[0]
            case "tuple" if index:
                name, index = instruction.operands[index[0]], index[1:]
            case "add" | "subtract" if instruction.shape.element_type in _INTEGER:
                a, b = (_affine(program, frame, operand, ()) for operand in instruction.operands)
                return _sum(a, b, 1 if instruction.opcode == "add" else -1)
            case "fusion" | "call":
                frame = frame.enter(program, instruction)
                name = frame.computation.root
            case opcode if opcode in _SAME_VALUE:
                name = instruction.operands[0]
            case _:
                return None


def _sum(a: _Affine | None, b: _Affine | None, sign: int) -> _Affine | None:
    if a is None or b is None or (b.leaf is not None and (a.leaf is not None or sign < 0)):
        return None
    return _Affine(a.leaf if a.leaf is not None else b.leaf, a.offset + sign * b.offset)


def _scalar(constant: Instruction) -> _Affine | None:
    try:
        return _Affine(None, int((constant.literal or "").strip("{} ")))
    except ValueError:
        return None  # elided, or an array
