"""Searching the fusion plans of one program by estimated time, without a device.

A plan costs Σ over its kernels of runs × estimate. A move changes a few kernels, so the sum is updated from
those, and a kernel is estimated once however many plans hold it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import cycle, islice
from typing import cast

from kernelcast.core.kernel import Kernel
from kernelcast.fusion.grouping import KernelGroup
from kernelcast.fusion.moves import Extensions, random_step
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.sample import random_plan
from kernelcast.fusion.space import FusionSpace, default, unfused
from kernelcast.search.anneal import Annealed, AnnealingOptions, Found, anneal
from kernelcast.search.costs import Costs, Part, Proposal, SumOfParts

# Kernels that take less than this share of a plan do not make it another candidate for the device.
_NOTICEABLE = 0.02


class Start(StrEnum):
    """The plan that a search begins with."""

    DEFAULT = "default"
    UNFUSED = "unfused"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How plans are searched.

    Attributes:
        start: of every chain; ``random`` gives each chain its own.
        chains: searched side by side; one call of the estimator serves all.
        annealing: how long and how hot.
        extensions: what may be decided beside the edges, and which moves there are.
        forbid_default: the recovered default is neither entered nor kept, for studies that ask whether a
            search finds its own way.
    """

    start: Start = Start.DEFAULT
    chains: int = 16
    annealing: AnnealingOptions = field(default_factory=lambda: AnnealingOptions(steps=1000, pool=256))
    extensions: Extensions = field(default_factory=Extensions)
    forbid_default: bool = False


def search_plans(
    space: FusionSpace,
    costs: Costs[FusionPlan],
    *,
    options: SearchOptions,
    seed: int,
    clock: Callable[[], float] = lambda: 0.0,
    starts: Sequence[FusionPlan] = (),
) -> Annealed[FusionPlan]:
    """The plans of lowest cost that annealing finds.

    Args:
        costs: of plans; ``priced_costs`` by kernels, or a device's.
        clock: for ``options.annealing.seconds``.
        starts: plans that the chains start from in turn, in place of ``options.start``.
    """
    refused = {default(space)} if options.forbid_default else frozenset[FusionPlan]()
    dealt = list(islice(cycle(starts), options.chains)) if starts else start_plans(space, options, seed)
    return anneal(
        [(plan, plan) for plan in dealt],
        propose=lambda plan, rng: propose(space, plan, rng, options.extensions),
        costs=costs,
        options=options.annealing,
        seed=seed,
        clock=clock,
        admit=lambda plan: plan not in refused,
    )


def start_plans(space: FusionSpace, options: SearchOptions, seed: int) -> list[FusionPlan]:
    """One start per chain."""
    match options.start:
        case Start.DEFAULT:
            return [default(space)] * options.chains
        case Start.UNFUSED:
            return [unfused(space)] * options.chains
        case Start.RANDOM:
            return [
                random_plan(space, random.Random(f"{seed}/start/{n}"), extensions=options.extensions)
                for n in range(options.chains)
            ]


def propose(
    space: FusionSpace, plan: FusionPlan, rng: random.Random, extensions: Extensions
) -> Proposal[FusionPlan] | None:
    """A random neighbour of a plan with the kernels that it changes; None where no legal move was drawn."""
    result = random_step(space, plan, rng, extensions=extensions)
    if result is None:
        return None
    return Proposal(
        state=result.plan,
        key=result.plan,
        move=str(result.move),
        removed=_parts(space, result.removed),
        added=_parts(space, result.added),
    )


def priced_costs(
    space: FusionSpace, price: Callable[[Sequence[Kernel]], Sequence[float]]
) -> SumOfParts[FusionPlan]:
    """Costs of plans in seconds, by the prices of their kernels.

    Args:
        price: seconds of kernels; infinity for one that no move may add, since nothing speaks for it. If the
            start has it already, it counts as nothing in every plan that keeps it.
    """
    return SumOfParts(
        parts=lambda plan: _parts(space, space.groups(plan)),
        price=lambda groups: price([space.kernel(cast("KernelGroup", group)) for group in groups]),
    )


def unlike_candidates(
    space: FusionSpace, costs: SumOfParts[FusionPlan], pool: Sequence[Found[FusionPlan]], count: int
) -> list[Found[FusionPlan]]:
    """The best few plans of a pool that differ in kernels which matter, the best first.

    The best plans of a search differ mostly in kernels that cost nothing; timing them all would tell how one
    plan repeats. Of plans with the same noticeable kernels only the best is taken while others are left.
    """
    seen: set[frozenset[KernelGroup]] = set()
    chosen: list[Found[FusionPlan]] = []
    others: list[Found[FusionPlan]] = []
    for found in pool:
        matter = frozenset(
            group
            for group in space.groups(found.state)
            if space.multiplicity(group).value * costs.price_of(group) >= _NOTICEABLE * found.cost
        )
        (others if matter in seen else chosen).append(found)
        seen.add(matter)
    return (chosen + others)[:count]


def costliest(
    space: FusionSpace, costs: SumOfParts[FusionPlan], found: Found[FusionPlan], *, share: float = 0.95
) -> list[KernelGroup]:
    """The fewest kernels that make a share of a plan's cost, the costliest first.

    One that nobody knows a price of is among them: what it takes is left out of the plan's cost.
    """
    parts = {
        group: space.multiplicity(group).value * costs.price_of(group) for group in space.groups(found.state)
    }
    kept: list[KernelGroup] = []
    covered = 0.0
    for group in sorted(parts, key=parts.__getitem__, reverse=True):
        if covered >= share * found.cost:
            break
        kept.append(group)
        covered += 0.0 if math.isinf(parts[group]) else parts[group]
    return kept


def _parts(space: FusionSpace, groups: Sequence[KernelGroup]) -> tuple[Part, ...]:
    return tuple(Part(key=group, times=space.multiplicity(group).value) for group in groups)
