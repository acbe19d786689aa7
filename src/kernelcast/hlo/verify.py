"""Checks a program before XLA sees it, whose own checks may abort the process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelcast.errors import HloError
from kernelcast.hlo.infer import disagreement
from kernelcast.hlo.lexical import STRING, error_at, without_comments
from kernelcast.hlo.program import Computation, Program
from kernelcast.hlo.rules import broken_rules, has_place
from kernelcast.hlo.shape import Shape
from kernelcast.hlo.shape_text import parse_shape
from kernelcast.hlo.text import instruction_line, parse

_DEADLY_SHAPE = re.compile(r"\b(?:token|opaque)\[[^\]]*[^\]\s][^\]]*\]|:T\([^)]*-\d[^)]*\)|\)L\(0\)")
_STRING = re.compile(STRING)


def parse_verified(text: str) -> Program:
    """The valid program that a text describes.

    Raises:
        HloError: with line and instruction, for a text that cannot be read and for a program that breaks
            a rule.

    >>> parse_verified('''HloModule m
    ... ENTRY e { a = f32[4,8] parameter(0)
    ... ROOT r = f32[31] reshape(a) }''')
    Traceback (most recent call last):
    kernelcast.errors.HloError: line 3, %r: reshape from 32 to 31 elements
    """
    program = parse(text)
    _check_unread_shapes(text)
    verify(program, text=text)
    return program


def _check_unread_shapes(text: str) -> None:
    """Refuses shapes in signatures and before operands, which no program holds, that XLA's parser dies of."""
    if _DEADLY_SHAPE.search(text) is None:
        return
    bare = _STRING.sub(lambda match: " " * len(match[0]), without_comments(text))
    found = _DEADLY_SHAPE.search(bare)
    if found is not None:
        raise error_at(
            bare, found.start(), f"expected a token without dimensions and tiles >= 0, got {found[0]}"
        )


def verify(program: Program, *, text: str | None = None) -> None:
    """Returns for a valid program.

    Args:
        text: what the program was read from, to name lines.

    Raises:
        HloError: the first violation.
    """
    for error in _violations(program, text):
        raise error


def violations(program: Program, *, text: str | None = None) -> list[HloError]:
    """Everything that is wrong with a program: at most one broken rule for each instruction.

    What is wrong between computations (a missing one, a cycle, parameter numbers) is told alone, since the
    rules for instructions need sound calls.

    >>> from kernelcast.hlo.text import parse
    >>> program = parse("HloModule m ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[5] tanh(x) }")
    >>> [error.instruction for error in violations(program)]
    ['y']
    """
    return list(_violations(program, text))


@dataclass(frozen=True, slots=True)
class _Violation:
    message: str
    computation: Computation | None = None
    instruction: str | None = None


def _violations(program: Program, text: str | None) -> Iterator[HloError]:
    sound = True
    for violation in _between_computations(program):
        sound = False
        yield _error(violation, text)
    if not sound:
        return
    for computation in program.computations:
        for instruction in computation:
            for message in broken_rules(program, computation, instruction):
                yield _error(_Violation(message, computation, instruction.name), text)
    for message in (*_entry_layout(program), *_donations(program)):
        yield _error(_Violation(message), text)


def _error(violation: _Violation, text: str | None) -> HloError:
    line = None
    if text is not None and violation.computation is not None and violation.instruction is not None:
        line = instruction_line(text, violation.computation.name, violation.instruction)
    return HloError(violation.message, line=line, instruction=violation.instruction)


def _between_computations(program: Program) -> Iterator[_Violation]:
    for computation in program.computations:
        numbers = sorted(p.parameter_number or 0 for p in computation.parameters)
        if numbers != list(range(len(numbers))):
            yield _Violation(
                f"parameters of computation {computation.name} must be numbered 0 to {len(numbers) - 1}, "
                f"got {numbers}",
                computation,
                computation.parameters[-1].name,
            )
        for instruction in computation:
            for name in instruction.called:
                if name not in program:
                    yield _Violation(
                        f"calls computation {name}, which is missing", computation, instruction.name
                    )
    yield from _cycles(program)


def _cycles(program: Program) -> Iterator[_Violation]:
    """Computations that call themselves, directly or through others."""
    finished: set[str] = set()
    for start in program.computations:
        path: dict[str, Iterator[tuple[str, str]]] = {start.name: _calls(program, start.name)}
        while path and start.name not in finished:
            current = next(reversed(path))
            call = next(path[current], None)
            if call is None:
                finished.add(current)
                del path[current]
            elif call[1] in path:
                message = f"computation {call[1]} calls itself through {current}"
                yield _Violation(message, program[current], call[0])
            elif call[1] not in finished:
                path[call[1]] = _calls(program, call[1])


def _calls(program: Program, name: str) -> Iterator[tuple[str, str]]:
    for instruction in program[name]:
        for called in instruction.called:
            if called in program:
                yield instruction.name, called


def _entry_layout(program: Program) -> Iterator[str]:
    """The header's entry_computation_layout must have the entry's parameters and result."""
    text = program.attribute("entry_computation_layout")
    if text is None:
        return
    inside = text.strip()[1:-1]
    arguments, arrow, result = inside.rpartition("->")
    try:
        written = (parse_shape(arguments.strip()), parse_shape(result.strip()))
    except HloError as error:
        yield f"entry_computation_layout: {error.message}"
        return
    entry = program.entry_computation
    parameters = Shape(element_type="tuple", elements=tuple(p.shape for p in entry.parameters))
    if not arrow:
        yield f"entry_computation_layout must be {{(parameters)->result}}, got {text}"
    if (wrong := disagreement(parameters, written[0])) is not None:
        yield f"parameters in entry_computation_layout: {wrong}"
    if (wrong := disagreement(entry.root_instruction.shape, written[1])) is not None:
        yield f"result in entry_computation_layout: {wrong}"


def _donations(program: Program) -> Iterator[str]:
    """Each input–output alias must name an output, and a parameter that no other alias takes."""
    entry = program.entry_computation
    taken: set[tuple[int, tuple[int, ...]]] = set()
    for alias in program.aliases:
        if alias.parameter >= len(entry.parameters):
            yield f"input_output_alias names parameter {alias.parameter} of {len(entry.parameters)}"
            continue
        inside = has_place(entry.parameters[alias.parameter].shape, alias.parameter_index)
        if not (inside and has_place(entry.root_instruction.shape, alias.output_index)):
            yield f"input_output_alias names a place that the program lacks: {alias}"
        if (alias.parameter, alias.parameter_index) in taken:
            yield f"input_output_alias donates parameter {alias.parameter} twice"
        taken.add((alias.parameter, alias.parameter_index))
