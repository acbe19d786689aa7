"""How much of each value a kernel needs: a slice of a large array reads only what it uses."""

from __future__ import annotations

import math

from kernelcast.hlo import attributes
from kernelcast.hlo.program import Computation, Instruction


def operand_fraction(
    computation: Computation, instruction: Instruction, number: int, fraction: float = 1.0
) -> float:
    """The fraction of an operand's elements that are needed for a fraction of the result's.

    An upper bound where it depends on values: indices of a gather are taken to be distinct.

    >>> from kernelcast.hlo.text import parse
    >>> entry = parse('''HloModule m
    ... ENTRY e { x = f32[100] parameter(0)  ROOT s = f32[25] slice(x), slice={[0:25]} }''').entry_computation
    >>> operand_fraction(entry, entry["s"], 0)
    0.25
    """
    operand = computation[instruction.operands[number]].shape
    outputs = instruction.shape.element_count
    match instruction.opcode:
        case "slice":
            needed = fraction * outputs
        case "dynamic-slice":
            needed = fraction * outputs if number == 0 else math.inf
        case "gather":
            needed = fraction * outputs if number == 0 else fraction * operand.element_count
        case "broadcast":
            needed = fraction * outputs
        case "reduce-window":
            needed = fraction * outputs * attributes.window(instruction).element_count
        case "dot" if fraction < 1:
            numbers = attributes.dot_numbers(instruction)
            contracted = numbers.lhs_contracting if number == 0 else numbers.rhs_contracting
            needed = fraction * outputs * math.prod(operand.dimensions[d] for d in contracted)
        case "dynamic-update-slice" | "scatter" if number > 0:
            needed = math.inf
        case "convolution" | "custom-call" | "fft" | "sort" | "cholesky" | "triangular-solve":
            needed = math.inf
        case _:
            needed = fraction * operand.element_count
    if operand.element_count == 0 or fraction == 0:
        return 0.0
    return min(1.0, needed / operand.element_count)


def fractions_needed(fused: Computation, in_place: frozenset[str]) -> dict[str, float]:
    """For each instruction of a fusion the fraction of its elements that the outputs need.

    An element counts once however often it is used; how often it is computed again is a matter of the
    backend.

    Args:
        in_place: names of the updates that are written into their operand's buffer, and so do not read it
            (a scatter reads what it combines with).
    """
    needed = {instruction.name: 0.0 for instruction in fused}
    needed[fused.root] = 1.0
    for instruction in reversed(fused.instructions):
        for number, operand in enumerate(instruction.operands):
            fraction = operand_fraction(fused, instruction, number, needed[instruction.name])
            if number == 0 and instruction.name in in_place:
                fraction = touched_fraction(fused, instruction)
            needed[operand] = max(needed[operand], fraction)
    return needed


def touched_fraction(computation: Computation, update: Instruction) -> float:
    """The fraction of the updated operand that an in-place update reads before it writes."""
    operand = computation[update.operands[0]].shape
    if update.opcode != "scatter" or operand.element_count == 0:
        return 0.0
    updates = computation[update.operands[-1]].shape
    return min(1.0, updates.element_count / operand.element_count)


def updated_bytes(computation: Computation, update: Instruction) -> int:
    """Bytes that an in-place update writes into one operand."""
    number = 1 if update.opcode == "dynamic-update-slice" else -1
    return computation[update.operands[number]].shape.byte_size
