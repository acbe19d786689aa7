"""From the compiler's final module back to the operations that it fused, clones of one producer collapsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelcast.core.fingerprint import canonical_attributes
from kernelcast.fusion.graph import Region, Scope
from kernelcast.fusion.rules import Rules
from kernelcast.fusion.scope_builder import ScopeBuilder, content_digest
from kernelcast.hlo.alias import clobbered
from kernelcast.hlo.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfused:
    """What un-fusing gives.

    Attributes:
        program: the module with every generated fusion taken apart.
        scopes: its scheduled computations, in the order of the module.
        regions: library calls that may become loops.
        kept_whole: (computation, instruction, reason) of fusions that stay as they are.
    """

    program: Program
    scopes: tuple[Scope, ...]
    regions: tuple[Region, ...]
    kept_whole: tuple[tuple[str, str, str], ...]


def unfuse(program: Program, rules: Rules) -> Unfused:
    """The module with its fusions taken apart, and how the compiler had fused it.

    Args:
        program: a final, scheduled module.
        rules: a fusion with a member that they do not allow there stays whole.
    """
    contents = _contents(program)
    paths = _paths(program)
    overwritten = clobbered(program)
    regions: list[Region] = []
    kept: list[tuple[str, str, str]] = []
    scopes: list[Scope] = []
    used_names = {i.name for c in program.computations for i in c}
    for computation in program.scheduled_computations():
        builder = ScopeBuilder(
            program, computation, rules, contents, used_names,
            scope=len(scopes), first_region=len(regions), path=paths.get(computation.name, computation.name),
            overwritten=frozenset(name for name, _ in overwritten.get(computation.name, ())),
        )  # fmt: skip
        scopes.append(builder.build())
        regions.extend(builder.regions)
        kept.extend((computation.name, name, reason) for name, reason in builder.kept_whole)
    return Unfused(
        program=_program_of(program, scopes),
        scopes=tuple(scopes),
        regions=tuple(regions),
        kept_whole=tuple(kept),
    )


def _program_of(program: Program, scopes: Sequence[Scope]) -> Program:
    """The module whose scheduled computations hold the nodes; computations that nothing calls are dropped."""
    body_of = {
        scope.computation.name: replace(
            scope.computation,
            instructions=tuple(node.instruction for node in scope.nodes),
            root=scope.nodes[scope.root].instruction.name,
        )
        for scope in scopes
    }
    program = replace(program, computations=tuple(body_of.get(c.name, c) for c in program.computations))
    reached = program.reached([program.entry, *body_of])
    return replace(program, computations=tuple(c for c in program.computations if c.name in reached))


def _contents(program: Program) -> dict[str, str]:
    """A digest for each computation that does not depend on names."""
    digests: dict[str, str] = {}
    for computation in program.computations:  # callees first
        number = {instruction.name: index for index, instruction in enumerate(computation)}
        digests[computation.name] = content_digest(
            number[computation.root],
            *(
                (
                    i.opcode, str(i.shape), canonical_attributes(i, digests),
                    [number[operand] for operand in i.operands], i.literal, i.parameter_number,
                )
                for i in computation
            ),
        )  # fmt: skip
    return digests


def _paths(program: Program) -> dict[str, str]:
    """How each computation is first reached from the entry: the opcodes of the calls and their ordinals."""
    paths = {program.entry: "entry"}
    pending = [program.entry]
    while pending:
        name = pending.pop()
        ordinal: dict[str, int] = {}
        for instruction in program[name]:
            if not instruction.called:
                continue
            ordinal[instruction.opcode] = ordinal.get(instruction.opcode, -1) + 1
            for index, callee in enumerate(instruction.called):
                if callee not in paths:
                    paths[callee] = (
                        f"{paths[name]}/{instruction.opcode}.{ordinal[instruction.opcode]}.{index}"
                    )
                    pending.append(callee)
    return paths
