"""Reads the instructions of one computation from HLO text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from kernelcast.errors import HloError
from kernelcast.hlo.cursor import Cursor
from kernelcast.hlo.implied_shape import implied_shape
from kernelcast.hlo.lexical import NAME, SHAPE, excerpt, literal_end
from kernelcast.hlo.module_parts import Call, ModuleParts
from kernelcast.hlo.order import dependency_order
from kernelcast.hlo.program import CALLING_ATTRIBUTES, Computation, Instruction
from kernelcast.hlo.shape import Shape
from kernelcast.hlo.shape_text import parse_shape

_OPCODE = r"[a-zA-Z][\w\-]*"
_INSTRUCTION = re.compile(rf"\s*(ROOT\s+)?%?({NAME})\s*=\s*(?:({SHAPE})\s*)?({_OPCODE})\s*\(")
_BEGINNING = re.compile(rf"\s*(?:ROOT\s+)?%?({NAME})\s*=")
_LONE_INSTRUCTION = re.compile(rf"\s*(?:(?:ROOT\s+)?%?({NAME})\s*=\s*)?({SHAPE})\s*({_OPCODE})\s*\(")
_PLAIN_OPERANDS = re.compile(rf"\s*(?:%?{NAME}(?:\s*,\s*%?{NAME})*+\s*,?\s*)?\)")
_OPERAND = re.compile(rf"\s*(?:({SHAPE})\s*)?%?({NAME})\s*(?=[,)])")
_NESTED_OPERAND = re.compile(rf"\s*(?:({SHAPE})\s*)?({_OPCODE})\s*\(")
_SEPARATOR = re.compile(r"\s*(?:,\s*)?(\))?")

_UNKNOWN = Shape(element_type="")
_CALLING = frozenset(CALLING_ATTRIBUTES)
_MAXIMUM_NESTING = 50
_EXAMPLE = "an instruction such as 'name = f32[2] add(a, b)'"


def read_body(cursor: Cursor, name: str, parts: ModuleParts) -> None:
    """Reads ``instructions }`` and what follows it, and adds the computation to the parts.

    Raises:
        HloError: with line and instruction.
    """
    body = _Body(cursor=cursor, computation=name, parts=parts)
    body.read()
    body.add(name, tuple(cursor.attributes()))


def read_lone_instruction(cursor: Cursor, parts: ModuleParts) -> bool:
    """Reads ``f32[2] add(f32[2] x, f32[2] y)`` as computation ``_``, with a parameter for each operand.

    Returns:
        Whether such an instruction stands here.
    """
    match = _LONE_INSTRUCTION.match(cursor.text)
    if match is None:
        return False
    cursor.position = match.end()
    body = _Body(cursor=cursor, computation="_", parts=parts, makes_parameters=True)
    name = match[1] or "_"
    body.root = name
    body.instruction(name, match[2], match[3], 0)
    body.add("_", ())
    return True


@dataclass(slots=True, kw_only=True)
class _Body:
    """One computation while its instructions are read."""

    cursor: Cursor
    computation: str
    parts: ModuleParts
    makes_parameters: bool = False
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    places: dict[str, int] = field(default_factory=dict[str, int])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])
    calls: list[Call] = field(default_factory=list[Call])
    unnamed: dict[str, int] = field(default_factory=dict[str, int])
    root: str | None = None
    in_order: bool = True

    def read(self) -> None:
        """Reads instructions up to and with the closing brace."""
        cursor, places, match_at = self.cursor, self.places, _INSTRUCTION.match
        while match := match_at(cursor.text, cursor.position):
            is_root, name, shape_text, opcode = match.groups()
            if name in places:
                raise cursor.error(f"name is used twice in computation {self.computation}", name)
            if is_root:
                if self.root is not None:
                    raise cursor.error(f"computation {self.computation} has a second ROOT", name)
                self.root = name
            start, cursor.position = cursor.position, match.end()
            self.instruction(name, shape_text, opcode, start)
        self.close()

    def close(self) -> None:
        """Steps over the closing brace, or says what stands there instead of an instruction."""
        cursor = self.cursor
        if match := _BEGINNING.match(cursor.text, cursor.position):
            got = excerpt(cursor.text, match.end())
            raise cursor.error(
                f"expected a shape, an opcode and '(' such as f32[2] add(, got {got}", match[1]
            )
        if self.instructions and cursor.is_before(","):
            raise cursor.error(
                f"expected an attribute such as index=1, got {cursor.next()}", self.instructions[-1].name
            )
        if not self.instructions:
            raise cursor.error(f"expected {_EXAMPLE} in computation {self.computation}, got {cursor.next()}")
        cursor.expect("}", f"or {_EXAMPLE} in computation {self.computation}")

    def add(self, name: str, attributes: tuple[tuple[str, str], ...]) -> None:
        """Adds the computation to the module, with operands before users."""
        root = self.root or self.instructions[-1].name
        self.parts.calls.extend(replace(call, caller=name) for call in self.calls)
        self.parts.places[name] = self.places
        self.parts.results[name] = self.shapes[root]
        self.parts.computations[name] = Computation(
            name=name,
            instructions=tuple(self.instructions) if self.in_order else self.reordered(),
            root=root,
            attributes=attributes,
        )

    def reordered(self) -> tuple[Instruction, ...]:
        try:
            ordered = dependency_order(self.instructions)
        except HloError as error:
            name = error.instruction or self.instructions[0].name
            message = f"{error.message} in computation {self.computation}"
            raise self.cursor.error(message, name, at=self.places[name]) from None
        if self.parts.is_scheduled:
            used = next(new.name for old, new in zip(self.instructions, ordered, strict=True) if old != new)
            message = f"is used before its place in the schedule of computation {self.computation}"
            raise self.cursor.error(message, used, at=self.places[used])
        return ordered

    def instruction(
        self, name: str, shape_text: str | None, opcode: str, start: int, *, is_nested: bool = False
    ) -> str:
        """Reads an instruction from after its opening parenthesis on, and gives its name.

        Args:
            name: its own; where it is nested, that of the instruction around it, for messages.
        """
        operands: tuple[str, ...] = ()
        literal: str | None = None
        number: int | None = None
        if opcode == "constant":
            literal = self.literal(name)
        elif opcode == "parameter":
            number = self.parameter_number(name)
        else:
            operands = self.operands(name)
        attributes = () if is_nested else self.attributes(name, start)
        shape = self.shape(shape_text, name, start) if shape_text is not None else _UNKNOWN
        if is_nested:  # named only now, as XLA's parser does it: those inside have taken their names
            name = self.unused_name(f"{opcode}.anon")
        instruction = Instruction(
            name=name, opcode=opcode, shape=shape, operands=operands, attributes=attributes,
            literal=literal, parameter_number=number,
        )  # fmt: skip
        if shape is _UNKNOWN:
            instruction = replace(instruction, shape=self.implied_shape(instruction, start))
        self.places[name] = start
        self.shapes[name] = instruction.shape
        self.instructions.append(instruction)
        return name

    def shape(self, text: str, name: str, start: int) -> Shape:
        try:
            return parse_shape(text)
        except HloError as error:
            raise self.cursor.error(error.message, name, at=start) from None

    def implied_shape(self, draft: Instruction, start: int) -> Shape:
        late = next((operand for operand in draft.operands if operand not in self.shapes), None)
        try:
            if late is not None:
                message = f"expected a shape before {draft.opcode}: its operand %{late} is not defined yet"
                raise HloError(message)
            shapes = [self.shapes[operand] for operand in draft.operands]
            return implied_shape(draft, shapes, self.parts.results)
        except HloError as error:
            raise self.cursor.error(error.message, draft.name, at=start) from None

    def literal(self, name: str) -> str:
        start = self.cursor.position
        end = literal_end(self.cursor.text, start)
        if end < 0:
            raise self.cursor.error("expected ')' at the end of the constant, got the end of the text", name)
        literal = self.cursor.text[start:end].strip()
        if not literal or '"' in literal or "'" in literal:
            raise self.cursor.error(f"expected the value of the constant, got {self.cursor.next()}", name)
        self.cursor.position = end + 1
        return literal

    def parameter_number(self, name: str) -> int:
        start = self.cursor.position
        end = self.cursor.text.find(")", start)
        number = self.cursor.text[start:end].strip() if end >= 0 else ""
        if not number.isdecimal() or len(number) > 9:
            raise self.cursor.error(f"expected a parameter number, got {self.cursor.next()}", name)
        self.cursor.position = end + 1
        return int(number)

    def operands(self, name: str) -> tuple[str, ...]:
        """Reads the operands after the opening parenthesis, with or without their types."""
        cursor = self.cursor
        if not self.makes_parameters and (match := _PLAIN_OPERANDS.match(cursor.text, cursor.position)):
            names = cursor.text[cursor.position : match.end() - 1].replace("%", "").split(",")
            cursor.position = match.end()
            operands = tuple([stripped for n in names if (stripped := n.strip())])
        else:
            operands = self.careful_operands(name)
        for operand in operands:
            if operand not in self.places:
                self.in_order = False
        return operands

    def careful_operands(self, name: str) -> tuple[str, ...]:
        cursor = self.cursor
        operands: list[str] = []
        while True:
            separator = _SEPARATOR.match(cursor.text, cursor.position)
            if separator is not None:
                cursor.position = separator.end()
                if separator[1]:
                    return tuple(operands)
            if match := _OPERAND.match(cursor.text, cursor.position):
                if self.makes_parameters and match[2] not in self.places:
                    self.parameter_for_operand(match[2], match[1], name)
                cursor.position = match.end()
                operands.append(match[2])
            elif match := _NESTED_OPERAND.match(cursor.text, cursor.position):
                operands.append(self.nested_operand(match, name))
            else:
                raise cursor.error(f"expected an operand or ')', got {cursor.next()}", name)

    def parameter_for_operand(self, operand: str, shape_text: str | None, user: str) -> None:
        if shape_text is None:
            raise self.cursor.error(
                f"expected a shape before operand {operand}, which is no instruction", user
            )
        shape = self.shape(shape_text, user, self.cursor.position)
        number = sum(instruction.opcode == "parameter" for instruction in self.instructions)
        self.places[operand] = self.cursor.position
        self.shapes[operand] = shape
        self.instructions.append(
            Instruction(name=operand, opcode="parameter", shape=shape, parameter_number=number)
        )

    def nested_operand(self, match: re.Match[str], user: str) -> str:
        """Reads an instruction written in place of an operand, and gives the name that it gets."""
        shape_text, opcode = match.groups()
        self.enter(user)
        start, self.cursor.position = self.cursor.position, match.end()
        name = self.instruction(user, shape_text, opcode, start, is_nested=True)
        self.parts.nesting -= 1
        return name

    def attributes(self, name: str, start: int) -> tuple[tuple[str, str], ...]:
        attributes = self.cursor.attributes(name)
        for number, (key, value) in enumerate(attributes):
            if key in _CALLING:
                if value[0] == "{" and "=" in value:
                    value = self.nested_computation(value, name, start)
                    attributes[number] = (key, value)
                for callee in value.strip("{}").split(","):
                    if stripped := callee.strip().lstrip("%"):
                        self.calls.append(
                            Call(caller=self.computation, instruction=name, callee=stripped, position=start)
                        )
            elif key == "control-predecessors":
                for predecessor in value.strip("{}").split(","):
                    if (stripped := predecessor.strip().lstrip("%")) and stripped not in self.places:
                        self.in_order = False
        return tuple(attributes)

    def nested_computation(self, value: str, name: str, start: int) -> str:
        """Reads a computation written in place of its name, and gives the name that it gets."""
        self.enter(name)
        inner = Cursor(text=self.cursor.text, position=self.cursor.text.index(value, start) + 1)
        body = _Body(cursor=inner, computation=f"of {name}", parts=self.parts)
        body.read()
        # Named only now, like an instruction.
        computation = self.parts.unused_name()
        body.add(computation, ())
        self.parts.nesting -= 1
        return f"%{computation}"

    def unused_name(self, base: str) -> str:
        """A name for an instruction that has none, as XLA's parser makes it."""
        name = base
        while name in self.places:
            self.unnamed[base] = self.unnamed.get(base, 0) + 1
            name = f"{base}.{self.unnamed[base]}"
        return name

    def enter(self, name: str) -> None:
        self.parts.nesting += 1
        if self.parts.nesting > _MAXIMUM_NESTING:
            raise self.cursor.error(f"expected at most {_MAXIMUM_NESTING} levels of nesting", name)
