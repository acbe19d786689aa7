"""Searching plans by a model that the device corrects, kernel by kernel.

A learned model is off by tens of percent on kernels unlike those it was trained with, and a search goes where
it errs on the low side. So the kernels that decide the best plans of a search are timed, each alone, the
prices mended, and the search goes on from its best plans; until these hold no noticeable kernel that was not
timed, or the device seconds are spent. A hundred kernels are timed in the time of ten whole programs, and
thousands of plans are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kernelcast.core.kernel import Kernel
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import FusionSpace
from kernelcast.jobs.tuning.kernel_prices import KernelPrices
from kernelcast.jobs.tuning.plan_search import (
    SearchOptions,
    costliest,
    priced_costs,
    search_plans,
    unlike_candidates,
)
from kernelcast.search.anneal import Found, TraceStep, improvements
from kernelcast.search.costs import SumOfParts
from kernelcast.targets.protocol import Candidate, DeviceBudget, TimesKernels


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """How the device corrects a search.

    Attributes:
        rounds: of search and trials, at most.
        plans: best unlike plans of a space whose kernels are tried in a round; twice as many once these hold
            nothing untried, and so on to the whole pool.
        kernels: tried in a round, at most.
        share: of the budget's device seconds, for kernels; whole programs get the rest. 0 leaves the search
            to the model.
        later_steps: of each round's search but the first, as a share of its steps.
        optimism: factor of the price of what was not timed.
        launch_s: that a launch costs besides the kernel. Loops of many tiny kernels are mostly that; the
            default is what XLA:CPU takes where it keeps count of what each waits for (docs/measuring.md).
    """

    rounds: int = 12
    plans: int = 8
    kernels: int = 48
    share: float = 0.5
    later_steps: float = 0.25
    optimism: float = 0.9
    launch_s: float = 36e-9


@dataclass(slots=True, kw_only=True)
class Quest:
    """The search of one space.

    Attributes:
        costs: by the shared prices.
        pool: the best plans seen, by the present prices, the best first.
        steps: done so far.
        trace: the proposals that lowered the best price, search by search; prices rise and fall between them.
    """

    space: FusionSpace
    costs: SumOfParts[FusionPlan]
    pool: list[Found[FusionPlan]] = field(default_factory=list[Found[FusionPlan]])
    steps: int = 0
    trace: list[TraceStep] = field(default_factory=list[TraceStep])


def search_with_trials(
    spaces: Sequence[FusionSpace],
    target: TimesKernels,
    prices: KernelPrices,
    *,
    options: SearchOptions,
    trials: TrialOptions,
    budget: DeviceBudget,
    seed: int,
    clock: Callable[[], float] = lambda: 0.0,
) -> list[Quest]:
    """What was found in each space of a program.

    Args:
        prices: of kernels; they learn.
        budget: of device seconds, of which the trials take at most their share.
    """
    quests = [Quest(space=space, costs=priced_costs(space, prices.price)) for space in spaces]
    allowance = DeviceBudget(limit_s=trials.share * budget.left_s)
    plans = trials.plans
    for number in range(trials.rounds):
        for quest in quests:
            _search(quest, options, trials, number, seed, clock)
        if allowance.left_s <= 0:
            break
        wanted = _wanted(quests, prices, plans)
        while not wanted and plans < options.annealing.pool:
            plans *= 2
            wanted = _wanted(quests, prices, plans)
        if not wanted:
            break
        before_s = allowance.spent_s
        candidates = [Candidate(key=k.fingerprint, kernel=k) for k in wanted[: trials.kernels]]
        prices.learn(dict(target.time_kernels(candidates, budget=allowance)))
        budget.spend(allowance.spent_s - before_s)
        for quest in quests:
            quest.costs.ask_again()
            _rank(quest, quest.pool, options.annealing.pool)
    return quests


def _search(
    quest: Quest,
    options: SearchOptions,
    trials: TrialOptions,
    number: int,
    seed: int,
    clock: Callable[[], float],
) -> None:
    """One more search; the first from the start that is asked for, the others from it and from the best."""
    starts: list[FusionPlan] = []
    if number:
        steps = max(1, round(trials.later_steps * options.annealing.steps))
        options = replace(options, annealing=replace(options.annealing, steps=steps))
        best = unlike_candidates(quest.space, quest.costs, quest.pool, max(1, options.chains - 1))
        starts = [found.state for found in best]
    found = search_plans(
        quest.space, quest.costs, options=options, seed=seed + number, clock=clock, starts=starts
    )
    quest.trace.extend(replace(step, step=quest.steps + step.step) for step in improvements(found.trace))
    quest.steps += found.steps
    _rank(quest, [*quest.pool, *found.pool], options.annealing.pool)


def _rank(quest: Quest, plans: Sequence[Found[FusionPlan]], size: int) -> None:
    """Makes the pool anew of these plans, by the present prices."""
    distinct = {found.key: found.state for found in plans}
    costs = quest.costs.of_states(list(distinct.values()), list(distinct))
    ranked = [
        Found(state=state, key=key, cost=cost)
        for (key, state), cost in zip(distinct.items(), costs, strict=True)
    ]
    quest.pool = sorted(ranked, key=lambda found: found.cost)[:size]


def _wanted(quests: Sequence[Quest], prices: KernelPrices, plans: int) -> list[Kernel]:
    """Untried kernels that decide the best plans: those of the best plan first, of each the costliest."""
    wanted: dict[str, Kernel] = {}
    best = [unlike_candidates(q.space, q.costs, q.pool, plans) for q in quests]
    for place in range(plans):
        for quest, chosen in zip(quests, best, strict=True):
            for group in costliest(quest.space, quest.costs, chosen[place]) if place < len(chosen) else ():
                kernel = quest.space.kernel(group)
                if not prices.was_tried(kernel):
                    wanted.setdefault(kernel.fingerprint, kernel)
    return list(wanted.values())
