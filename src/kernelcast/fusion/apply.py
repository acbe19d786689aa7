"""From a plan to the module that XLA compiles: scheduled, with every kernel as the plan wants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kernelcast.errors import PlanError
from kernelcast.fusion.emit import Emitted, emit, result_name
from kernelcast.fusion.grouping import bits
from kernelcast.fusion.overwrites import Overwrites, sorted_by_priority
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import FusionSpace
from kernelcast.hlo.alias import hazards
from kernelcast.hlo.program import Computation, Program


def apply(space: FusionSpace, plan: FusionPlan, *, verbatim: bool = True) -> Program:
    """The final, scheduled module of a plan.

    Units keep the compiler's order where they can; a unit that reads a value which another overwrites comes
    before that one.

    Args:
        space: of the program.
        plan: of this space.
        verbatim: emit kernels that the compiler's module has as they stand there. The default plan then gives
            that module back, instruction by instruction. Without it every generated fusion is built anew.

    Raises:
        PlanError: the plan is of another space or rules, not in normal form, exceeds the bounds of a kernel,
            or would read a value after it was overwritten.

    >>> from kernelcast.fusion.space import space_of
    >>> from kernelcast.hlo.text import parse
    >>> space = space_of(parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[4] parameter(0)  y = f32[4] tanh(x)  ROOT z = f32[4] negate(y) }'''))
    >>> [i.opcode for i in apply(space, space.plan(0b1)).entry_computation]
    ['parameter', 'fusion']
    """
    space.check(plan)
    fused: dict[str, list[Computation]] = {}
    bodies: dict[str, Computation] = {}
    for number, scope in enumerate(space.scopes):
        name = scope.computation.name
        bodies[name], fused[name] = _scheduled(space, plan, number, verbatim=verbatim)
    computations: list[Computation] = []
    for computation in space.original.computations:
        computations.extend(fused.get(computation.name, ()))
        computations.append(bodies.get(computation.name, computation))
    program = _reachable(replace(space.original, computations=tuple(computations)))
    for hazard in hazards(program):
        # What the compiler does too is not the plan's fault; ``own_hazards`` warns of it.
        if hazard not in space.own_hazards:
            raise PlanError(f"the plan would compute wrong values: {hazard}")
    return program


def _scheduled(
    space: FusionSpace, plan: FusionPlan, number: int, *, verbatim: bool
) -> tuple[Computation, list[Computation]]:
    """One scheduled computation under a plan, and the new fused computations that it calls."""
    scope, overwrites = space.scopes[number], space.overwrites[number]
    is_frozen = space.tables[number].is_frozen
    units: list[Emitted] = []
    priority: list[tuple[int, int]] = []
    unit_of: dict[int, int] = {}
    members: list[int] = []
    for group in space.scope_groups(plan, number):
        unit_of.update(dict.fromkeys(group.roots, len(units)))
        units.append(emit(scope, group, prefix=space.fused_prefix, rules=space.rules, verbatim=verbatim))
        priority.append(max(scope.nodes[root].slot for root in group.roots))
        members.append(group.members)
    needed = {scope.root, *(operand for unit in units for operand in unit.operands)}
    needed.update(other for mask in members for member in bits(mask) for other in scope.nodes[member].after)
    for constant in sorted(number for number in needed if scope.nodes[number].is_constant):
        unit_of[constant] = len(units)
        instruction = replace(scope.nodes[constant].instruction, name=result_name(scope, constant))
        units.append(Emitted(instructions=(instruction,), operands=()))
        priority.append(scope.nodes[constant].slot)
        members.append(0)
    before = [{unit_of[operand] for operand in unit.operands} for unit in units]
    for unit, mask in enumerate(members):
        for member in bits(mask):
            before[unit].update(unit_of[other] for other in scope.nodes[member].after)
            if not is_frozen:
                for writer in _overwritten_by(overwrites, member, unit, unit_of):
                    before[writer].add(unit)
    order = sorted_by_priority(before, priority)
    if order is None:
        raise PlanError(
            f"computation {scope.computation.name}: no order of the plan's kernels reads every value before "
            "it is overwritten"
        )
    body = replace(
        scope.computation,
        instructions=tuple(i for unit in order for i in units[unit].instructions),
        root=result_name(scope, scope.root),
    )
    return body, [computation for unit in order for computation in units[unit].computations]


def _overwritten_by(
    overwrites: Overwrites, member: int, unit: int, unit_of: Mapping[int, int]
) -> Iterator[int]:
    """The units that overwrite what a member of a unit reads; not the unit itself.

    Args:
        unit_of: the unit of each result.
    """
    for value in overwrites.reads[member]:
        for views in overwrites.writers[value]:
            results = [view for view in views if view in unit_of]
            own = max((view for view in results if unit_of[view] == unit), default=-1)
            yield from (unit_of[view] for view in results if view > own)


def _reachable(program: Program) -> Program:
    """The program without computations that nothing calls."""
    reached = program.reached([program.entry])
    return replace(program, computations=tuple(c for c in program.computations if c.name in reached))
