"""Whether called computations fit the operands and results of their callers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelcast.hlo.attributes import loop_computations
from kernelcast.hlo.infer import disagreement
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import Shape


def mismatched_signatures(
    program: Program, computation: Computation, instruction: Instruction
) -> Iterator[str]:
    """What does not fit between an instruction and the computations it calls, which exist."""
    operands = [computation[operand].shape for operand in instruction.operands]
    called = [program[name] for name in instruction.called]
    match instruction.opcode:
        case "while":
            yield from _loop(program, instruction, operands[0])
        case "conditional":
            yield from _conditional(instruction, operands, called)
        case "call" | "fusion":
            yield from _parameters(instruction, called[0], operands)
            yield from _result(instruction, called[0])
        case "map":
            yield from _count(instruction, called[0], len(operands))
        case "reduce" | "reduce-window":
            yield from _count(instruction, called[0], len(operands))
        case "sort":
            for comparator in called:
                yield from _count(instruction, comparator, 2 * len(operands))
                yield from _returns_predicate(comparator)
        case "scatter":
            yield from _count(instruction, called[0], len(operands) - 1)
        case "select-and-scatter":
            for scalar in called:
                yield from _count(instruction, scalar, 2)
        case _:
            pass


def _loop(program: Program, loop: Instruction, state: Shape) -> Iterator[str]:
    body, condition = (program[name] for name in loop_computations(loop))
    for part in (body, condition):
        yield from _parameters(loop, part, [state])
    yield from _result(loop, body)
    if (wrong := disagreement(state, loop.shape)) is not None:
        yield f"while returns another shape than it starts with: {wrong}"
    yield from _returns_predicate(condition)


def _conditional(
    conditional: Instruction, operands: Sequence[Shape], branches: Sequence[Computation]
) -> Iterator[str]:
    selector = operands[0]
    if selector.rank or selector.element_type not in ("pred", "s32"):
        yield f"conditional selects by pred[] or s32[], got {selector}"
    if selector.element_type == "pred" and len(branches) != 2:
        yield f"conditional on a predicate needs 2 branches, got {len(branches)}"
    for branch, operand in zip(branches, operands[1:], strict=True):
        yield from _parameters(conditional, branch, [operand])
        yield from _result(conditional, branch)


def _parameters(instruction: Instruction, callee: Computation, operands: Sequence[Shape]) -> Iterator[str]:
    parameters = callee.parameters
    if len(parameters) != len(operands):
        yield (
            f"{instruction.opcode} hands {len(operands)} operands to computation {callee.name}, "
            f"which has {len(parameters)} parameters"
        )
        return
    for parameter, operand in zip(parameters, operands, strict=True):
        if (wrong := disagreement(parameter.shape, operand)) is not None:
            yield f"parameter %{parameter.name} of computation {callee.name}: {wrong}"


def _result(instruction: Instruction, callee: Computation) -> Iterator[str]:
    if (wrong := disagreement(callee.root_instruction.shape, instruction.shape)) is not None:
        yield f"result of computation {callee.name}: {wrong}"


def _count(instruction: Instruction, callee: Computation, wanted: int) -> Iterator[str]:
    if len(callee.parameters) != wanted:
        yield (
            f"{instruction.opcode} needs a computation of {wanted} parameters, "
            f"{callee.name} has {len(callee.parameters)}"
        )


def _returns_predicate(callee: Computation) -> Iterator[str]:
    shape = callee.root_instruction.shape
    if shape.element_type != "pred" or shape.rank:
        yield f"computation {callee.name} must return pred[], returns {shape.without_layout()}"
