"""Reads HLO text: both printing dialects, and whatever else XLA's own parser takes."""

from __future__ import annotations

import re

from kernelcast.errors import HloError
from kernelcast.hlo.body_text import read_body, read_lone_instruction
from kernelcast.hlo.cursor import Cursor
from kernelcast.hlo.lexical import NAME, SHAPE, STRING, balanced_end, without_comments
from kernelcast.hlo.module_parts import ModuleParts
from kernelcast.hlo.order import dependency_order
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import array_shape

_HEADER = re.compile(rf"\s*HloModule\s+%?({NAME})")
_TABLE = re.compile(
    r"\s*(?:(?:FileNames|FunctionNames|FileLocations|StackFrames)\b(?!\s*[({])|[A-Z]\w*(?=\s+\d+\s+[\"{]))"
    rf"(?:\s+\d+\s+(?:{STRING}|\{{[^{{}}]*\}}))*+"
)
_COMPUTATION = re.compile(rf"\s*(ENTRY\s+)?%?({NAME})\s*(?=[({{])")
_RESULT = re.compile(rf"\s*->\s*{SHAPE}")


def parse(text: str) -> Program:
    """The program that a text describes.

    Operands precede users in the result: an unscheduled computation that lists them otherwise is sorted,
    with as little change as possible, and so are computations called before they are defined. Comments,
    signatures and the types of operands are dropped; attributes are kept verbatim, known or not.
    Instructions and computations written in place of a name become instructions and computations of their
    own, and a shape that XLA's parser would infer is filled in.

    Raises:
        HloError: with the line and, inside a computation, the instruction.

    >>> program = parse("HloModule m  ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }")
    >>> program.entry_computation.root_instruction.opcode
    'negate'
    """
    return _read(text)[0]


def instruction_line(text: str, computation: str, instruction: str) -> int | None:
    """The 1-based line on which a text writes an instruction; None where it does not.

    For errors found after reading: a ``Program`` does not know where it came from.

    Raises:
        HloError: the text cannot be read.
    """
    _, cursor, parts = _read(text)
    place = parts.places.get(computation, {}).get(instruction)
    return cursor.line(place) if place is not None else None


def _read(text: str) -> tuple[Program, Cursor, ModuleParts]:
    if "\0" in text:
        raise HloError("expected HLO text, got binary data")
    cursor = Cursor(text=without_comments(text))
    header = _HEADER.match(cursor.text)
    if header is None and _COMPUTATION.match(cursor.text) is None:
        return _lone_instruction(cursor)
    attributes: tuple[tuple[str, str], ...] = ()
    if header is not None:
        cursor.position = header.end()
        attributes = tuple(cursor.attributes())
    preamble = _tables(cursor)
    parts = ModuleParts(is_scheduled=("is_scheduled", "true") in attributes)
    entry = _computations(cursor, parts)
    program = Program(
        name=header[1] if header is not None else f"module_{entry}",
        computations=_callees_first(cursor, parts),
        entry=entry,
        attributes=attributes,
        preamble=preamble,
    )
    return program, cursor, parts


def _lone_instruction(cursor: Cursor) -> tuple[Program, Cursor, ModuleParts]:
    parts = ModuleParts()
    if not read_lone_instruction(cursor, parts):
        raise cursor.error(f"expected 'HloModule name', got {cursor.next()}")
    if not cursor.is_at_end():
        raise cursor.error(f"expected one instruction or 'HloModule name', got {cursor.next()} after it")
    # XLA's parser names and marks it so.
    program = Program(
        name="_",
        computations=tuple(parts.computations.values()),
        entry="_",
        attributes=(("is_scheduled", "true"),),
    )
    return program, cursor, parts


def _tables(cursor: Cursor) -> str:
    """Reads the tables of names and stack frames that metadata refers to; verbatim."""
    start = cursor.position
    while match := _TABLE.match(cursor.text, cursor.position):
        cursor.position = match.end()
    return cursor.text[start : cursor.position].strip()


def _computations(cursor: Cursor, parts: ModuleParts) -> str:
    """Reads all computations and gives the name of the entry: the marked one, or the last."""
    entry = last = ""
    while not cursor.is_at_end():
        start = cursor.position
        match = _COMPUTATION.match(cursor.text, start)
        if match is None:
            raise cursor.error(f"expected a computation such as 'name {{', got {cursor.next()}")
        last = match[2]
        if last in parts.computations:
            raise cursor.error(f"two computations are called {last}")
        if match[1] is not None:
            if entry:
                raise cursor.error(f"expected one ENTRY computation, got {entry} and {last}")
            entry = last
        cursor.position = match.end()
        _skip_signature(cursor, last)
        cursor.expect("{", f"to open computation {last}")
        read_body(cursor, last, parts)
    if not last:
        raise cursor.error(f"expected a computation such as 'ENTRY main {{', got {cursor.next()}")
    return entry or last


def _skip_signature(cursor: Cursor, computation: str) -> None:
    """Steps over ``(parameters) -> shape``: the parameters and the root say the same."""
    if cursor.text[cursor.position] != "(":
        return
    end = balanced_end(cursor.text, cursor.position)
    has_string = any(cursor.text.find(quote, cursor.position, end) >= 0 for quote in "\"'")
    result = _RESULT.match(cursor.text, end) if end > 0 and not has_string else None
    if result is None:
        raise cursor.error(f"expected the signature '(parameters) -> shape' of computation {computation}")
    cursor.position = result.end()


def _callees_first(cursor: Cursor, parts: ModuleParts) -> tuple[Computation, ...]:
    """The computations with callees before callers, otherwise as they stand."""
    numbers = {name: number for number, name in enumerate(parts.computations)}
    in_order = True
    for call in parts.calls:
        if call.callee not in numbers:
            defined = ", ".join(list(numbers)[:8])
            message = f"computation {call.callee} is not defined; defined are {defined}"
            raise cursor.error(message, call.instruction, at=call.position)
        in_order = in_order and numbers[call.callee] < numbers[call.caller]
    if in_order:
        return tuple(parts.computations.values())
    # A computation waits for what it calls as an instruction waits for its operands: one order serves both.
    callees: dict[str, list[str]] = {name: [] for name in numbers}
    for call in parts.calls:
        callees[call.caller].append(call.callee)
    token = array_shape("token", ())
    stand_ins = [
        Instruction(name=name, opcode="call", shape=token, operands=tuple(called))
        for name, called in callees.items()
    ]
    try:
        return tuple(parts.computations[stand_in.name] for stand_in in dependency_order(stand_ins))
    except HloError as error:
        call = next(call for call in parts.calls if call.caller == error.instruction)
        message = f"computation {call.caller} calls itself, directly or through others"
        raise cursor.error(message, call.instruction, at=call.position) from None
