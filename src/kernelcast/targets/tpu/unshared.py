"""HLO in which every fusion has a computation of its own, as XLA demands of a scheduled module.

The canonical form of a kernel keeps one of several equal computations; convolutions often read two equal
nested fusions.
"""

from __future__ import annotations

from dataclasses import replace

from kernelcast.hlo.program import Computation, Instruction, Program


def unshared(program: Program) -> Program:
    """The program with a clone of each called computation for each fusion that calls it.

    Computations that are applied, such as reducers, may be shared and stay so.
    """
    taken: set[str] = set()
    made: list[Computation] = []

    def own(name: str) -> str:
        """Adds a computation with all that it calls; says under which name."""
        instructions = tuple(map(with_own_callees, program[name]))
        number = 0
        fresh = name
        while fresh in taken:
            number += 1
            fresh = f"{name}.{number}"
        taken.add(fresh)
        made.append(replace(program[name], name=fresh, instructions=instructions))
        return fresh

    def with_own_callees(instruction: Instruction) -> Instruction:
        if instruction.opcode == "fusion":
            return instruction.with_attribute("calls", f"%{own(instruction.called[0])}")
        for callee in instruction.called:
            if callee not in taken:
                own(callee)
        return instruction

    entry = own(program.entry)
    return replace(program, computations=tuple(made), entry=entry)
