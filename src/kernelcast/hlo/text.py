"""Reads HLO text: both printing dialects, and whatever else XLA's own parser takes."""

from __future__ import annotations

import re

from kernelcast.errors import HloError
from kernelcast.hlo.lexical import (
    ATTRIBUTE,
    NAME,
    SHAPE,
    SPACE,
    STRING,
    balanced_end,
    error_at,
    excerpt,
    without_comments,
)
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import Shape
from kernelcast.hlo.shape_text import parse_shape

_HEADER = re.compile(rf"\s*HloModule\s+({NAME})")
_TABLE = re.compile(rf"\s*([A-Z]\w*(?:\s+\d+\s+(?:{STRING}|\{{[^{{}}]*\}}))+)")
_COMPUTATION = re.compile(rf"\s*(ENTRY\s+)?%?({NAME})\s*(?=[({{])")
_RESULT = re.compile(rf"\s*->\s*{SHAPE}")
_OPEN = re.compile(r"\s*\{")
_CLOSE = re.compile(r"\s*\}")
_INSTRUCTION = re.compile(rf"\s*(ROOT\s+)?%?({NAME})\s*=\s*(?:({SHAPE})\s*)?([a-zA-Z][\w\-]*)\s*\(")
_PLAIN_OPERANDS = re.compile(rf"\s*(?:%?{NAME}(?:\s*,\s*%?{NAME})*+\s*,?\s*)?\)")
_OPERAND = re.compile(rf"\s*(?:({SHAPE})\s*)?%?({NAME})\s*(,|\))")
_LITERAL_STOP = re.compile(r"[()\"']")


def parse(text: str) -> Program:
    """The program that a text describes.

    Operands precede users in the result: an unscheduled computation that lists them otherwise is sorted,
    with as little change as possible. Comments and the types of operands are dropped; attributes are kept
    verbatim, known or not.

    Raises:
        HloError: with the line and, inside a computation, the instruction.

    >>> program = parse("HloModule m  ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }")
    >>> program.entry_computation.root_instruction.opcode
    'negate'
    """
    if "\0" in text:
        raise HloError(
            "expected HLO text, got binary data; serialised protos are read by kernelcast.hlo.sources"
        )
    return _Reader(without_comments(text)).program()


class _Reader:
    """One text being read; ``position`` is always between two pieces of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.computations: list[Computation] = []
        self.names: set[str] = set()
        self.scheduled = False

    def program(self) -> Program:
        name, attributes = self.header()
        self.scheduled = ("is_scheduled", "true") in attributes
        preamble = self.tables()
        entry = None
        while SPACE.match(self.text, self.position).end() < len(self.text):  # pyright: ignore[reportOptionalMemberAccess]
            is_entry = self.computation()
            if is_entry:
                if entry is not None:
                    raise self.error("expected one ENTRY computation, got a second")
                entry = self.computations[-1].name
        if not self.computations:
            raise self.error("expected a computation such as 'ENTRY main {', got the end of the text")
        entry = entry or self.computations[-1].name
        return Program(
            name=name if name is not None else f"module_{entry}",
            computations=tuple(self.computations),
            entry=entry,
            attributes=attributes,
            preamble=preamble,
        )

    def error(self, message: str, instruction: str | None = None) -> HloError:
        return error_at(self.text, self.position, message, instruction)

    def header(self) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        match = _HEADER.match(self.text)
        if match is None:
            if _COMPUTATION.match(self.text) is None:
                raise self.error(f"expected 'HloModule name', got {excerpt(self.text.lstrip(), 0)}")
            return None, ()
        self.position = match.end()
        return match[1], self.attributes(None)

    def tables(self) -> str:
        start = self.position
        while match := _TABLE.match(self.text, self.position):
            self.position = match.end()
        return self.text[start : self.position].strip()

    def computation(self) -> bool:
        """Reads one computation; whether it is the entry."""
        text = self.text
        match = _COMPUTATION.match(text, self.position)
        if match is None:
            raise self.error(f"expected a computation such as 'name {{', got {excerpt(text, self.position)}")
        start, name = self.position, match[2]
        self.position = match.end()
        if text[self.position] == "(":
            end = balanced_end(text, self.position)
            result = _RESULT.match(text, end) if end > 0 else None
            if result is None:
                raise self.error(f"expected the signature '(parameters) -> shape' of computation {name}")
            self.position = result.end()
        opening = _OPEN.match(text, self.position)
        if opening is None:
            raise self.error(f"expected '{{' to open computation {name}, got {excerpt(text, self.position)}")
        self.position = opening.end()
        if name in self.names:
            self.position = start
            raise self.error(f"two computations are called {name}")
        self.body(name)
        return match[1] is not None

    def body(self, name: str) -> None:
        """Reads instructions up to and with the closing brace and what follows it."""
        text = self.text
        instructions: list[Instruction] = []
        places: dict[str, int] = {}
        root: str | None = None
        in_order = True
        read = _INSTRUCTION.match
        while match := read(text, self.position):
            is_root, instruction_name, shape_text, opcode = match.groups()
            start = self.position
            if instruction_name in places:
                raise self.error(f"name is used twice in computation {name}", instruction_name)
            self.position = match.end()
            operands: tuple[str, ...] = ()
            literal = number = None
            if opcode == "constant":
                literal = self.literal(instruction_name)
            elif opcode == "parameter":
                number = self.parameter_number(instruction_name)
            else:
                operands = self.operands(instruction_name)
                for operand in operands:
                    if operand not in places:
                        in_order = False
            shape = self.shape(shape_text, opcode, start, instruction_name)
            attributes = self.attributes(instruction_name)
            places[instruction_name] = start
            instructions.append(
                Instruction(
                    name=instruction_name, opcode=opcode, shape=shape, operands=operands,
                    attributes=attributes, literal=literal, parameter_number=number,
                )
            )  # fmt: skip
            if is_root:
                root = instruction_name
        closing = _CLOSE.match(text, self.position)
        if closing is None:
            raise self.error(
                "expected an instruction such as 'name = f32[2] add(a, b)' or '}', got "
                + excerpt(text, self.position)
            )
        if not instructions:
            raise self.error(f"expected instructions in computation {name}, got none")
        self.position = closing.end()
        if not in_order:
            instructions = self.sorted(instructions, places, name)
        self.names.add(name)
        self.computations.append(
            Computation(
                name=name,
                instructions=tuple(instructions),
                root=root or instructions[-1].name,
                attributes=self.attributes(None),
            )
        )

    def shape(self, shape_text: str | None, opcode: str, start: int, name: str) -> Shape:
        if shape_text is None:
            raise error_at(self.text, start, f"expected a shape before {opcode}", name)
        try:
            return parse_shape(shape_text)
        except HloError as error:
            raise error_at(self.text, start, str(error), name) from None

    def literal(self, name: str) -> str:
        """Reads the value of a constant without looking at its elements, which can be millions."""
        text, start = self.text, self.position
        stop = _LITERAL_STOP.search(text, start)
        end = stop.end() if stop and stop.group() == ")" else balanced_end(text, start - 1)
        if end < 0:
            raise self.error("expected ')' at the end of the constant, got the end of the text", name)
        self.position = end
        return text[start : end - 1].strip()

    def parameter_number(self, name: str) -> int:
        end = self.text.find(")", self.position)
        number = self.text[self.position : end].strip() if end >= 0 else ""
        if not number.isdecimal():
            raise self.error(f"expected a parameter number, got {excerpt(self.text, self.position)}", name)
        self.position = end + 1
        return int(number)

    def operands(self, name: str) -> tuple[str, ...]:
        """Reads the operands after the opening parenthesis, with or without their types."""
        text = self.text
        match = _PLAIN_OPERANDS.match(text, self.position)
        if match is not None:
            names = text[self.position : match.end() - 1].replace("%", "").split(",")
            self.position = match.end()
            return tuple([stripped for n in names if (stripped := n.strip())])
        operands: list[str] = []
        while True:
            match = _OPERAND.match(text, self.position)
            if match is None:
                raise self.error(f"expected an operand or ')', got {excerpt(text, self.position)}", name)
            self.position = match.end()
            operands.append(match[2])
            if match[3] == ")":
                return tuple(operands)

    def attributes(self, name: str | None) -> tuple[tuple[str, str], ...]:
        """Reads ``, key=value`` as often as it stands here."""
        text, position = self.text, self.position
        found: list[tuple[str, str]] = []
        while match := ATTRIBUTE.match(text, position):
            found.append((match[1], match[2]))
            position = match.end()
        self.position = position
        return tuple(found)

    def sorted(
        self, instructions: list[Instruction], places: dict[str, int], computation: str
    ) -> list[Instruction]:
        """The instructions with operands before users, otherwise in their order."""
        by_name = {instruction.name: instruction for instruction in instructions}
        for instruction in instructions:
            for operand in instruction.operands:
                if operand not in by_name:
                    message = f"operand %{operand} is not defined in computation {computation}"
                    raise error_at(self.text, places[instruction.name], message, instruction.name)
                if self.scheduled and places[operand] >= places[instruction.name]:
                    message = f"operand %{operand} is scheduled after its user in computation {computation}"
                    raise error_at(self.text, places[instruction.name], message, instruction.name)
        ordered: list[Instruction] = []
        state: dict[str, bool] = {}  # absent: not seen; False: being visited; True: placed
        for first in instructions:
            stack = [first]
            while stack:
                instruction = stack[-1]
                if state.get(instruction.name):
                    stack.pop()
                    continue
                state[instruction.name] = False
                waiting = [
                    by_name[o]
                    for o in (*instruction.operands, *instruction.control_predecessors)
                    if not state.get(o)
                ]
                for operand in waiting:
                    if operand.name in state:
                        message = f"operand %{operand.name} depends on its own user"
                        raise error_at(self.text, places[instruction.name], message, instruction.name)
                if waiting:
                    stack.extend(reversed(waiting))
                else:
                    stack.pop()
                    state[instruction.name] = True
                    ordered.append(instruction)
        return ordered
