"""Random plans, so that their kernels are diverse.

One fusion probability for all edges gives plans with kernels of one size. So each plan draws its own,
and a mixture of procedures reaches what single flips do not: whole opcodes fused or not, large kernels beside
small ones, and the neighbourhood of the default, where a search lives and which the paper's data lacks.
"""

from __future__ import annotations

import random

from kernelcast.errors import PlanError
from kernelcast.fusion.grouping import KernelGroup, bits
from kernelcast.fusion.moves import Extensions, IllegalMoveError, apply_move, merge, random_step
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import FusionSpace, default, unfused


def random_plan(
    space: FusionSpace,
    rng: random.Random,
    *,
    extensions: Extensions = Extensions(),  # noqa: B008 (immutable)
) -> FusionPlan:
    """One legal plan of the mixture."""
    draw = rng.choice((_uniform, _uniform, _by_opcode, _grown, _walk))
    return draw(space, rng, extensions)


def sample(
    space: FusionSpace,
    rng: random.Random,
    count: int,
    *,
    extensions: Extensions = Extensions(),  # noqa: B008 (immutable)
) -> list[FusionPlan]:
    """Distinct random plans; fewer than asked where the space seems to have no more.

    Args:
        count: at most so many.
    """
    found: dict[FusionPlan, None] = {}
    for _ in range(8 * count + 32):
        if len(found) >= count:
            break
        found[random_plan(space, rng, extensions=extensions)] = None
    return list(found)


def all_fused(space: FusionSpace) -> FusionPlan:
    """The plan that fuses wherever the rules and the bounds allow; library regions as in the default."""
    return legalised(space, space.plan((1 << len(space.edges)) - 1), random.Random(0))


def legalised(space: FusionSpace, plan: FusionPlan, rng: random.Random) -> FusionPlan:
    """The plan with edges cut at random until no kernel exceeds the bounds.

    Raises:
        PlanError: a kernel is too large although nothing in it is a decision.
    """
    while True:
        illegal = list(space.illegal_kernels(plan))
        if not illegal:
            return plan
        fused = plan.fused
        for group, reason in illegal:
            inside = _decisions_inside(space, plan, group)
            if not inside:
                raise PlanError(
                    f"the kernel of {space.name_of(group)} has {reason}, and nothing in it can be cut"
                )
            # A quarter at a time: kernels near the bounds are worth having.
            for bit in rng.sample(inside, max(1, len(inside) // 4)):
                fused &= ~(1 << bit)
        plan = space.plan(fused, loops=plan.loops, groups=plan.groups, settings=plan.settings)


def _decisions_inside(space: FusionSpace, plan: FusionPlan, group: KernelGroup) -> list[int]:
    table = space.tables[group.scope]
    local = space.local(plan, group.scope) & ~table.fixed
    return [
        table.first + bit
        for member in bits(group.members)
        for bit, _ in table.inputs[member]
        if local >> bit & 1
    ]


def _loops(space: FusionSpace, rng: random.Random, extensions: Extensions) -> int:
    """Regions to turn into loops: in half of the plans none, since that is what programs mostly are."""
    if not extensions.regions or rng.random() < 0.5:
        return 0
    share = rng.betavariate(0.5, 0.5)
    return sum(1 << region for region in range(len(space.regions)) if rng.random() < share)


def _uniform(space: FusionSpace, rng: random.Random, extensions: Extensions) -> FusionPlan:
    """One probability for all edges, mostly near 0 or 1."""
    share = rng.betavariate(0.5, 0.5)
    fused = sum(1 << edge for edge in space.decisions if rng.random() < share)
    return _finished(space, rng, extensions, fused)


def _by_opcode(space: FusionSpace, rng: random.Random, extensions: Extensions) -> FusionPlan:
    """One probability for each opcode of the producer."""
    share: dict[str, float] = {}
    fused = 0
    for number in space.decisions:
        edge = space.edges[number]
        opcode = space.scopes[edge.scope].nodes[edge.producer].instruction.opcode
        if opcode not in share:
            share[opcode] = rng.betavariate(0.5, 0.5)
        if rng.random() < share[opcode]:
            fused |= 1 << number
    return _finished(space, rng, extensions, fused)


def _grown(space: FusionSpace, rng: random.Random, extensions: Extensions) -> FusionPlan:
    """A few large kernels grown from random edges; all else unfused or as in the default."""
    fused = rng.choice((0, default(space).fused))
    for _ in range(rng.randint(1, 1 + len(space.decisions) // 12)):
        if not space.decisions:
            break
        wanted = int(rng.expovariate(1 / 8)) + 1
        frontier = [rng.choice(space.decisions)]
        grown: set[int] = set()
        while frontier and len(grown) < wanted:
            number = frontier.pop(rng.randrange(len(frontier)))
            if number in grown:
                continue
            grown.add(number)
            fused |= 1 << number
            edge = space.edges[number]
            table = space.tables[edge.scope]
            neighbours = (
                *table.inputs[edge.producer], *table.inputs[edge.consumer],
                *table.outputs[edge.consumer], *table.outputs[edge.producer],
            )  # fmt: skip
            frontier.extend(table.first + bit for bit, _ in neighbours)
    return _finished(space, rng, extensions, fused)


def _walk(space: FusionSpace, rng: random.Random, extensions: Extensions) -> FusionPlan:
    """Some random moves away from the default, or from the plan that fuses nothing."""
    plan = default(space) if rng.random() < 0.8 else unfused(space)
    longest = max(4, len(space.decisions) // 4)
    for _ in range(1 + int(rng.random() ** 2 * longest)):
        step = random_step(space, plan, rng, extensions=extensions)
        if step is not None:
            plan = step.plan
    return plan


def _contractions(space: FusionSpace) -> int:
    """Bits of the edges into and out of dots and convolutions."""
    found = 0
    for number, edge in enumerate(space.edges):
        nodes = space.scopes[edge.scope].nodes
        ends = {nodes[edge.producer].instruction.opcode, nodes[edge.consumer].instruction.opcode}
        if ends & {"dot", "convolution"}:
            found |= 1 << number
    return found


def _finished(space: FusionSpace, rng: random.Random, extensions: Extensions, fused: int) -> FusionPlan:
    """The legal plan nearest to some decisions, now and then with a few multi-output kernels.

    A fused dot or convolution is a plain loop, 10 to 100 times as slow as the backend's own: left to chance,
    nearly every plan of a dense network would be about that alone. So most plans fuse none.
    """
    if rng.random() < 0.85:
        fused &= ~_contractions(space) | default(space).fused
    plan = legalised(space, space.plan(fused, loops=_loops(space, rng, extensions)), rng)
    if extensions.groups and space.siblings and rng.random() < 0.3:
        for _ in range(rng.randint(1, 1 + len(space.siblings) // 8)):
            scope, first, second = rng.choice(space.siblings)
            try:
                plan = apply_move(space, plan, merge(space, plan, scope, (first, second))).plan
            except IllegalMoveError:
                continue
    return plan
