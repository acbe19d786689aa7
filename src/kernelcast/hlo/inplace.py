"""Which operands a kernel overwrites with its result, and whether it may do so while it still reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelcast.hlo.attributes import slice_ranges
from kernelcast.hlo.opcodes import ELEMENTWISE
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import ELEMENT_BITS, Shape
from kernelcast.hlo.values import Index, resolve

_ALIASING = re.compile(r"\{([\d, ]*)\}:\s*\((\d+),\s*\{([\d, ]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """A result that is written into the buffer of an operand: the two must share it.

    Attributes:
        output: place in the result.
        operand: number of the operand.
        operand_index: place in that operand where it is a tuple.
        updater: name of the update inside the fusion; None for a bare operation and a declared alias.
    """

    output: Index
    operand: int
    operand_index: Index = ()
    updater: str | None = None


def in_place_pairs(program: Program, instruction: Instruction) -> tuple[InPlace, ...]:
    """The results of one instruction that must share an operand's buffer.

    These are operand 0 of a bare ``dynamic-update-slice``, the operands of a ``scatter``, either of them as
    an output of a fusion (through tuples and bitcasts) where the updated value is a parameter of it, and
    what ``output_to_operand_aliasing`` declares.
    """
    declared = instruction.attribute("output_to_operand_aliasing")
    pairs = tuple(_declared(declared)) if declared else ()
    match instruction.opcode:
        case "dynamic-update-slice":
            return (InPlace(output=(), operand=0),)
        case "scatter":
            count = (len(instruction.operands) - 1) // 2
            return tuple(InPlace(output=(i,) if count > 1 else (), operand=i) for i in range(count))
        case "all-reduce-start":
            several = len(instruction.operands) > 1
            return tuple(
                InPlace(output=(i,) if several else (), operand=i) for i in range(len(instruction.operands))
            )
        case "fusion":
            taken = {pair.output for pair in pairs}
            return (*pairs, *(pair for pair in _of_fusion(program, instruction) if pair.output not in taken))
        case _:
            return pairs


def _declared(text: str) -> Iterator[InPlace]:
    for output, operand, inner in _ALIASING.findall(text):
        yield InPlace(output=_index(output), operand=int(operand), operand_index=_index(inner))


def _index(text: str) -> Index:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _of_fusion(program: Program, fusion: Instruction) -> Iterator[InPlace]:
    fused = program[fusion.called[0]]
    for output, _ in fusion.shape.indexed_leaves():
        source, source_index = resolve(fused, fused.root, output)
        for pair in in_place_pairs(program, fused[source]):
            if pair.output != source_index:
                continue
            name, index = resolve(fused, fused[source].operands[pair.operand], pair.operand_index)
            number = fused[name].parameter_number
            if number is not None:
                yield InPlace(output=output, operand=number, operand_index=index, updater=source)


def may_overwrite(
    program: Program, kernel: Instruction, computation: Computation, operand: int, index: Index, output: Index
) -> bool:
    """Whether a kernel that reads a buffer through one operand may write an output into the same buffer.

    It may where every element is read before, or just when, the element at its place is written: in
    elementwise kernels, in the updated operand of an in-place update that reads it nowhere else (or reads
    just the window that it updates), in a sort, and where the instruction declares the alias itself.

    Args:
        computation: holds the kernel.
        operand: number of the operand that holds the buffer.
        index: place in that operand where it is a tuple.
        output: place in the result.
    """
    read = computation[kernel.operands[operand]].shape.at(index)
    written = kernel.shape.at(output)
    pairs = [pair for pair in in_place_pairs(program, kernel) if pair.output == output]
    if any((pair.operand, pair.operand_index) == (operand, index) and pair.updater is None for pair in pairs):
        return True
    if kernel.opcode == "sort":
        return output == ((operand,) if kernel.shape.is_tuple else ())
    if kernel.opcode == "fusion":
        fused = program[kernel.called[0]]
        parameter = fused.parameters[operand].name
        if pairs:
            return _only_updated(fused, (parameter, index), pairs[0].updater)
        return _same_places(read, written) and _only_elementwise(fused, (parameter, index))
    return kernel.opcode in ELEMENTWISE and _same_places(read, written)


def _only_updated(fused: Computation, value: tuple[str, Index], updater: str | None) -> bool:
    """Whether a fusion reads the updated parameter only as the update does, or in the window it updates."""
    if updater is None:
        return False
    update = fused[updater]
    for user, number in _uses(fused, value):
        if user.name == updater and number == 0:
            continue
        reads_window = number == 0 and _is_updated_window(fused, user, update)
        if not (reads_window and _reaches_elementwise(fused, user, update)):
            return False
    return True


def _is_updated_window(fused: Computation, read: Instruction, update: Instruction) -> bool:
    """Whether a slice takes exactly the elements that an update slice replaces."""
    if update.opcode != "dynamic-update-slice":
        return False
    window = fused[update.operands[1]].shape.dimensions
    if read.shape.dimensions != window:
        return False
    starts = _starts(fused, update.operands[2:], fused[update.operands[0]].shape, window)
    if read.opcode == "dynamic-slice":
        return _starts(fused, read.operands[1:], fused[read.operands[0]].shape, window) == starts
    if read.opcode == "slice":
        return [part.start for part in slice_ranges(read)] == starts and all(
            part.stride == 1 for part in slice_ranges(read)
        )
    return False


def _starts(
    fused: Computation, operands: tuple[str, ...], whole: Shape, window: tuple[int, ...]
) -> list[int | str]:
    """The first index in each dimension: a number, moved inside the array as XLA does, or a name."""
    starts: list[int | str] = []
    for number, operand in enumerate(operands):
        literal = fused[operand].literal
        if fused[operand].opcode == "constant" and literal is not None and literal.lstrip("-").isdecimal():
            last = whole.dimensions[number] - window[number]
            starts.append(max(0, min(int(literal), last)))
        else:
            starts.append(operand)
    return starts


def _reaches_elementwise(fused: Computation, start: Instruction, update: Instruction) -> bool:
    """Whether a slice is used elementwise only, up to being operand 1 of the update."""
    stack = [start]
    while stack:
        for user, number in _uses(fused, (stack.pop().name, ())):
            if user.name == update.name and number == 1:
                continue
            if user.opcode not in ELEMENTWISE or not _same_places(start.shape, user.shape):
                return False
            stack.append(user)
    return True


def _only_elementwise(fused: Computation, value: tuple[str, Index]) -> bool:
    """Whether each path from a fusion's parameter to its outputs keeps every element at its place."""
    shape = fused[value[0]].shape.at(value[1])
    stack = [value]
    seen = {value}
    while stack:
        for user, _ in _uses(fused, stack.pop()):
            if user.opcode not in ELEMENTWISE or not _same_order(shape, user.shape):
                return False
            if (user.name, ()) not in seen:
                seen.add((user.name, ()))
                stack.append((user.name, ()))
    return True


def _uses(fused: Computation, value: tuple[str, Index]) -> Iterator[tuple[Instruction, int]]:
    """(user, operand number) of a value, looking through bitcasts of it and tuples that hold it."""
    for instruction in fused:
        if instruction.opcode in ("bitcast", "get-tuple-element", "tuple", "parameter"):
            continue
        for number, operand in enumerate(instruction.operands):
            if not fused[operand].shape.is_tuple and resolve(fused, operand) == value:
                yield instruction, number


def _same_places(a: Shape, b: Shape) -> bool:
    """Whether the element at an index lies at the same address in both."""
    return _same_order(a, b) and ELEMENT_BITS.get(a.element_type) == ELEMENT_BITS.get(b.element_type)


def _same_order(a: Shape, b: Shape) -> bool:
    return a.is_array and b.is_array and a.dimensions == b.dimensions and a.layout == b.layout
