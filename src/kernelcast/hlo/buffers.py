"""Values that must live in one buffer: loop state, branches, calls, in-place updates, donated parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.hlo.attributes import loop_computations
from kernelcast.hlo.inplace import in_place_pairs
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.values import Index, resolve

# A leaf that an instruction makes: computation, instruction, place in its result.
Site = tuple[str, str, Index]


@dataclass(frozen=True, slots=True)
class Buffers:
    """The partition of all sites of a program into buffers; sites not named here have one of their own."""

    of: Mapping[Site, Site]
    members: Mapping[Site, tuple[Site, ...]]

    def shared(self, site: Site) -> Site | None:
        """The buffer of a site, named by one of its sites; None where no other value must share it."""
        return self.of.get(site)


def site(computation: Computation, name: str, index: Index) -> Site:
    """Where the value behind a name is made."""
    return (computation.name, *resolve(computation, name, index))


def must_share(program: Program) -> Buffers:
    """The buffers that XLA's buffer assignment gives to each set of values that it has to keep together."""
    union = _Union()
    for computation in program.scheduled_computations():
        for instruction in computation:
            match instruction.opcode:
                case "while":
                    _tie_loop(program, computation, instruction, union)
                case "conditional":
                    for operand, name in zip(instruction.operands[1:], instruction.called, strict=True):
                        branch = program[name]
                        _tie_parameter(computation, operand, branch, 0, union)
                        _tie_result(computation, instruction, (), branch, union)
                case "call" | "async-start" if instruction.called:
                    callee = program[instruction.called[0]]
                    for number, operand in enumerate(instruction.operands):
                        _tie_parameter(computation, operand, callee, number, union)
                    start = (1,) if instruction.opcode == "async-start" else ()
                    _tie_result(computation, instruction, start, callee, union)
                case _:
                    for pair in in_place_pairs(program, instruction):
                        union.tie(
                            site(computation, instruction.operands[pair.operand], pair.operand_index),
                            (computation.name, instruction.name, pair.output),
                        )
    entry = program.entry_computation
    for alias in program.aliases:
        parameter = entry.parameters[alias.parameter].name
        union.tie((entry.name, parameter, alias.parameter_index), site(entry, entry.root, alias.output_index))
    return union.buffers()


def _tie_loop(program: Program, computation: Computation, loop: Instruction, union: _Union) -> None:
    body, condition = (program[name] for name in loop_computations(loop))
    for index, _ in loop.shape.indexed_leaves():
        state = (computation.name, loop.name, index)
        union.tie(site(computation, loop.operands[0], index), state)
        union.tie(state, (body.name, body.parameters[0].name, index))
        union.tie(state, (condition.name, condition.parameters[0].name, index))
        union.tie(state, site(body, body.root, index))


def _tie_parameter(
    caller: Computation, operand: str, callee: Computation, number: int, union: _Union
) -> None:
    parameter = callee.parameters[number]
    for index, _ in parameter.shape.indexed_leaves():
        union.tie(site(caller, operand, index), (callee.name, parameter.name, index))


def _tie_result(
    caller: Computation, call: Instruction, start: Index, callee: Computation, union: _Union
) -> None:
    for index, _ in callee.root_instruction.shape.indexed_leaves():
        union.tie(site(callee, callee.root, index), (caller.name, call.name, (*start, *index)))


class _Union:
    """Disjoint sets of sites."""

    def __init__(self) -> None:
        self.parent: dict[Site, Site] = {}

    def find(self, of: Site) -> Site:
        root = of
        while (above := self.parent.setdefault(root, root)) != root:
            root = above
        while self.parent[of] != root:
            self.parent[of], of = root, self.parent[of]
        return root

    def tie(self, a: Site, b: Site) -> None:
        self.parent[self.find(a)] = self.find(b)

    def buffers(self) -> Buffers:
        of = {member: self.find(member) for member in list(self.parent)}
        members: dict[Site, list[Site]] = {}
        for member, root in of.items():
            members.setdefault(root, []).append(member)
        return Buffers(of=of, members={root: tuple(found) for root, found in members.items()})
