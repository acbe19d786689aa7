"""Writes HLO text that ``parse`` and XLA's parser read back as the same program."""

from __future__ import annotations

from collections.abc import Iterable

from kernelcast.hlo.program import Computation, Instruction, Program


def format_program(program: Program) -> str:
    """HLO text in the dialect of ``print_operand_shape=False``: ``%`` before names, no types on operands.

    >>> from kernelcast.hlo.text import parse
    >>> print(format_program(parse("HloModule m ENTRY e { ROOT x = f32[4] parameter(0) }")))
    HloModule m
    <BLANKLINE>
    ENTRY %e {
      ROOT %x = f32[4] parameter(0)
    }
    <BLANKLINE>
    """
    parts = [f"HloModule {program.name}{_attributes(program.attributes)}\n"]
    if program.preamble:
        parts.append(f"\n{program.preamble}\n")
    parts.extend(
        f"\n{format_computation(computation, is_entry=computation.name == program.entry)}\n"
        for computation in program.computations
    )
    return "".join(parts)


def format_computation(computation: Computation, *, is_entry: bool = False) -> str:
    """One computation as HLO text, without a signature: the parameters and the root say the same."""
    lines = [f"{'ENTRY ' if is_entry else ''}%{computation.name} {{"]
    lines.extend(
        f"  {'ROOT ' if instruction.name == computation.root else ''}{format_instruction(instruction)}"
        for instruction in computation.instructions
    )
    lines.append(f"}}{_attributes(computation.attributes)}")
    return "\n".join(lines)


def format_instruction(instruction: Instruction) -> str:
    """One instruction as HLO text, without ROOT."""
    if instruction.literal is not None:
        inside = instruction.literal
    elif instruction.parameter_number is not None:
        inside = str(instruction.parameter_number)
    else:
        inside = ", ".join([f"%{operand}" for operand in instruction.operands])
    head = f"%{instruction.name} = {instruction.shape} {instruction.opcode}({inside})"
    return head + _attributes(instruction.attributes)


def _attributes(attributes: Iterable[tuple[str, str]]) -> str:
    return "".join([f", {key}={value}" for key, value in attributes])
