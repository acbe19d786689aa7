"""A fusion around a dot or convolution as accelerators take it: each input is a fusion inside."""

from __future__ import annotations

from dataclasses import replace

from kernelcast.hlo.program import Computation, Instruction

CONTRACTIONS = frozenset({"dot", "convolution"})


def nested(body: Computation, prefix: str) -> tuple[Computation, ...] | None:
    """The computations of such a fusion, callees first; None where the body contracts nothing.

    An operation that the contraction's inputs and its epilogue both need stands in both.

    Args:
        body: the fused computation, flat.
        prefix: of the names of new computations.
    """
    contraction = next((i for i in body if i.opcode in CONTRACTIONS), None)
    if contraction is None:
        return None
    inner: list[Computation] = []
    calls: dict[str, Instruction] = {}
    for operand in dict.fromkeys(contraction.operands):
        if body[operand].opcode == "parameter":
            continue
        name = f"input{len(inner)}.of.{contraction.name}"
        made = _input(body, operand, f"{prefix}{name}")
        inner.append(made)
        calls[operand] = Instruction(
            name=name,
            opcode="fusion",
            shape=body[operand].shape,
            operands=tuple(p.name.partition(_OUTER)[2] for p in made.parameters),
            attributes=(("kind", "kLoop"), ("calls", f"%{made.name}")),
        )
    operands = tuple(calls[o].name if o in calls else o for o in contraction.operands)
    instructions: list[Instruction] = []
    for instruction in body:
        if instruction.name == contraction.name:
            instructions.extend((*calls.values(), replace(instruction, operands=operands)))
        else:
            instructions.append(instruction)
    outer = replace(body, instructions=tuple(instructions))
    return (*inner, _without_dead(outer))


# Ends what is new in the name of an inner parameter; the rest is the value's name outside.
_OUTER = "..of.."


def _input(body: Computation, root: str, name: str) -> Computation:
    """What computes one input of the contraction, from the parameters of the body."""
    needed = {root}
    for instruction in reversed(body.instructions):
        if instruction.name in needed:
            needed.update(instruction.operands)
    found = [i for i in body if i.name in needed]
    parameters = [i for i in found if i.opcode == "parameter"]
    renamed = {i.name: f"input{_OUTER}{i.name}" for i in found}
    return Computation(
        name=name,
        instructions=(
            *(
                replace(p, name=renamed[p.name], parameter_number=number)
                for number, p in enumerate(parameters)
            ),
            *(
                replace(i, name=renamed[i.name], operands=tuple(renamed[o] for o in i.operands))
                for i in found
                if i.opcode != "parameter"
            ),
        ),
        root=renamed[root],
    )


def _without_dead(computation: Computation) -> Computation:
    """The computation without what its root does not need; parameters stay."""
    needed = {computation.root}
    for instruction in reversed(computation.instructions):
        if instruction.name in needed:
            needed.update(instruction.operands)
    kept = tuple(i for i in computation if i.name in needed or i.opcode == "parameter")
    return replace(computation, instructions=kept)
