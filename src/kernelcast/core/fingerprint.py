"""Canonical form of a kernel: what is stored, compared and hashed.

Instructions are numbered in depth-first post-order from the outputs, operands in order, and the *text* of the
result is hashed. A hash of hashes (Merkle) would not do: ``f(x) + f(x)`` with one and with two copies of
``f`` would be equal, and that is exactly what fusion plans differ in.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace

from kernelcast.hlo.program import CALLING_ATTRIBUTES, Computation, Instruction, Program
from kernelcast.hlo.shape import Shape

# Attributes that say nothing about the code that is made. Frontend attributes are notes of JAX to itself.
DROPPED_ATTRIBUTES = frozenset({
    "metadata", "sharding", "frontend_attributes", "channel_id", "origin", "original_value", "statistics",
    "control-predecessors",
})  # fmt: skip
# Of a backend configuration only these keys change the code; the others are hints and estimates.
# (Custom calls keep theirs whole: it holds their arguments.)
KEPT_BACKEND_KEYS = ("fusion_config", "outer_dimension_partitions", "window_config", "algorithm")
# Attributes whose numbers are sizes, not structure: the skeleton leaves the numbers out.
SIZE_ATTRIBUTES = frozenset({
    "slice", "dynamic_slice_sizes", "slice_sizes", "window", "padding", "fft_length", "backend_config",
    "operand_layout_constraints",
})  # fmt: skip
ENTRY_NAME = "kernel"
_NUMBER = re.compile(r"-?\d+")


def canonical_program(program: Program, aliases: tuple[tuple[int, int], ...] = ()) -> Program:
    """The same kernel with canonical names and order; equal for kernels that differ in names or order only.

    Kept: aliases (as ``input_output_alias`` of the header), order of outputs, layouts, tiling, memory space,
    scalar constants, window and dimension numbers, library kind. Left out: names, dead instructions and
    parameters, metadata, sharding, channels, control edges. Parameters of the entry and of fused computations
    are numbered as first met; equal called computations become one.

    Args:
        program: a kernel's closed sub-program.
        aliases: (output number, parameter number) pairs written in place.
    """
    rewriter = _Rewriter(program)
    entry, order = rewriter.rewrite(program[program.entry], renumber=True)
    number_of = {old: new for new, old in enumerate(order)}
    pairs = sorted((output, number_of[parameter]) for output, parameter in aliases if parameter in number_of)
    has_tuple_root = program.entry_computation.root_instruction.shape.is_tuple
    written = ", ".join(
        f"{{{output if has_tuple_root else ''}}}: ({parameter}, {{}}, may-alias)"
        for output, parameter in pairs
    )
    return Program(
        name=ENTRY_NAME,
        computations=(*rewriter.computations, replace(entry, name=ENTRY_NAME)),
        entry=ENTRY_NAME,
        attributes=(("input_output_alias", f"{{ {written} }}"),) if pairs else (),
    )


def digest(text: str) -> str:
    """32 hexadecimal digits that stand for a text (BLAKE2b, 16 bytes).

    >>> digest("")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def skeleton_text(program: Program) -> str:
    """The program without sizes: opcodes, edges, element types, ranks, layouts and dimension numbers.

    Equal for one graph at several sizes. Constants are left out too: many are sizes in disguise (1/n).

    Args:
        program: in canonical form, else names would count.
    """
    lines: list[str] = []
    for computation in program.computations:
        lines.append(computation.name)
        for instruction in computation:
            attributes = " ".join(
                f"{key}={_NUMBER.sub('_', value) if key in SIZE_ATTRIBUTES else value}"
                for key, value in instruction.attributes
            )
            number = "" if instruction.parameter_number is None else str(instruction.parameter_number)
            lines.append(
                f"{instruction.name} {_shape_without_sizes(instruction.shape)} {instruction.opcode}{number}"
                f"({' '.join(instruction.operands)}) {attributes}"
            )
    return "\n".join((*lines, program.attribute("input_output_alias") or ""))


def canonical_attributes(instruction: Instruction, called: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The attributes that decide what an instruction computes, sorted by name.

    Args:
        instruction: of any computation.
        called: the new name of each computation that it calls.
    """
    kept: list[tuple[str, str]] = []
    for key, value in instruction.attributes:
        if key in DROPPED_ATTRIBUTES:
            continue
        if key in CALLING_ATTRIBUTES:
            names = [name.strip().lstrip("%") for name in value.strip("{}").split(",") if name.strip()]
            joined = ", ".join(f"%{called[name]}" for name in names)
            value = f"{{{joined}}}" if value.startswith("{") else joined
        elif key == "backend_config" and instruction.opcode != "custom-call":
            value = _backend_config(value)
            if not value:
                continue
        kept.append((key, value))
    return tuple(sorted(kept))


def _backend_config(text: str) -> str:
    """The keys that change the code as sorted JSON; empty where there are none; other text as it is."""
    try:
        config = json.loads(text)
    except ValueError:
        return text
    if not isinstance(config, dict):
        return text
    kept = {key: config[key] for key in KEPT_BACKEND_KEYS if config.get(key)}
    return json.dumps(kept, sort_keys=True, separators=(",", ":")) if kept else ""


def _shape_without_sizes(shape: Shape) -> str:
    if shape.is_tuple:
        return f"({' '.join(_shape_without_sizes(element) for element in shape.elements)})"
    return f"{shape.element_type}[{','.join('_' * shape.rank)}]{shape.layout or ''}"


class _Rewriter:
    """Rewrites computations bottom up; equal ones get one name, in order of first use."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._name_of_content: dict[tuple[tuple[Instruction, ...], str], str] = {}
        self._done: dict[tuple[str, bool], tuple[str, tuple[int, ...]]] = {}
        self.computations: list[Computation] = []

    def rewrite(self, computation: Computation, *, renumber: bool) -> tuple[Computation, tuple[int, ...]]:
        """The computation in canonical order, name kept, and the old numbers of its new parameters.

        Args:
            computation: to rewrite.
            renumber: number the parameters as first met and drop those that nothing reads; otherwise their
                numbers have a meaning for the caller (reducers, comparators, loop state) and stay.
        """
        operands = {i.name: i.operands for i in computation}
        called: dict[str, dict[str, str]] = {}
        for name in _post_order(operands, computation.root, ()):
            instruction = computation[name]
            called[name] = {}
            # In the order in which they will be printed, so that the canonical form is its own.
            in_order = replace(instruction, attributes=tuple(sorted(instruction.attributes)))
            for callee in in_order.called:
                called[name][callee], order = self._call(callee, renumber=instruction.opcode == "fusion")
                if instruction.opcode == "fusion":
                    operands[name] = tuple(instruction.operands[number] for number in order)
        first = () if renumber else tuple(parameter.name for parameter in computation.parameters)
        # Again, since fusions now read their operands in another order, and perhaps fewer.
        names = _post_order(operands, computation.root, first)
        new_name = {name: f"v{index}" for index, name in enumerate(names)}
        parameter_order: list[int] = []
        rewritten: list[Instruction] = []
        for name in names:
            instruction = computation[name]
            number = instruction.parameter_number
            if number is not None:
                parameter_order.append(number)
                number = len(parameter_order) - 1 if renumber else number
            rewritten.append(
                replace(
                    instruction,
                    name=new_name[name],
                    operands=tuple(new_name[operand] for operand in operands[name]),
                    attributes=canonical_attributes(instruction, called.get(name, {})),
                    parameter_number=number,
                )
            )
        canonical = Computation(
            name=computation.name, instructions=tuple(rewritten), root=new_name[computation.root]
        )
        return canonical, tuple(parameter_order)

    def _call(self, name: str, *, renumber: bool) -> tuple[str, tuple[int, ...]]:
        """Canonical name of a called computation and the old numbers of its parameters."""
        key = (name, renumber)
        if key not in self._done:
            computation, order = self.rewrite(self._program[name], renumber=renumber)
            content = (computation.instructions, computation.root)
            if content not in self._name_of_content:
                self._name_of_content[content] = f"c{len(self.computations)}"
                self.computations.append(replace(computation, name=self._name_of_content[content]))
            self._done[key] = (self._name_of_content[content], order)
        return self._done[key]


def _post_order(operands: Mapping[str, tuple[str, ...]], root: str, first: tuple[str, ...]) -> list[str]:
    """Names reachable from the root, operands before users, operands in order, after the names ``first``."""
    done = dict.fromkeys(first)
    stack: list[tuple[str, bool]] = [(root, False)]
    while stack:
        name, ready = stack.pop()
        if name in done:
            continue
        if ready:
            done[name] = None
            continue
        stack.append((name, True))
        stack.extend((operand, False) for operand in reversed(operands[name]) if operand not in done)
    return list(done)
