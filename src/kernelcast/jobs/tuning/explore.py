"""What a search of plans does before a decision: by prices, corrected by kernels, then by whole programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import FusionSpace
from kernelcast.jobs.tuning.kernel_prices import KernelPrices
from kernelcast.jobs.tuning.plan_search import SearchOptions, unlike_candidates
from kernelcast.jobs.tuning.refine import Explored, RefineOptions, refine
from kernelcast.jobs.tuning.trial_search import Quest, TrialOptions, search_with_trials
from kernelcast.jobs.tuning_target import TuningTarget
from kernelcast.search.anneal import Found, TraceStep
from kernelcast.targets.protocol import DeviceBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What was found.

    Attributes:
        plans: with the seconds that their kernels' prices predict, the most promising first: those that ran
            whole by their time, then what only the model speaks for, where the device had no time for it.
        explored: plans that the device timed whole.
        trace: the proposals that lowered the best price, search by search.
        kernels_timed: kernels of which the device's time replaced the estimate.
        evaluations: kernels that were priced, over all spaces.
    """

    plans: Mapping[FusionPlan, float]
    explored: tuple[Explored, ...]
    trace: tuple[TraceStep, ...]
    kernels_timed: int
    evaluations: int


def explore(
    spaces: Sequence[FusionSpace],
    target: TuningTarget,
    estimator: Estimator,
    *,
    search: SearchOptions,
    trials: TrialOptions,
    refining: RefineOptions,
    candidates: int,
    budget: DeviceBudget,
    seed: int,
    inputs: Mapping[int, np.ndarray] | None,
    clock: Callable[[], float],
) -> Exploration:
    """The plans that are worth a decision.

    Args:
        spaces: of one program, its own first.
        candidates: plans that the device begins with.
        budget: of device seconds; some are left for a decision.
    """
    prices = KernelPrices(
        estimator, statistic=target.identity.label, optimism=trials.optimism, launch_s=trials.launch_s
    )
    quests = search_with_trials(
        spaces, target, prices, options=search, trials=trials, budget=budget, seed=seed, clock=clock
    )
    chosen = best_of_each(quests, candidates)
    explored = refine(
        spaces[0],
        target,
        quests,
        [found.state for found in chosen],
        options=refining,
        extensions=search.extensions,
        forbid_default=search.forbid_default,
        budget=budget,
        seed=seed,
        inputs=inputs,
    )
    plans = {one.plan: one.predicted_s for one in explored}
    return Exploration(
        plans=plans | {found.state: found.cost for found in chosen if found.state not in plans},
        explored=tuple(explored),
        trace=tuple(step for quest in quests for step in quest.trace),
        kernels_timed=prices.timed,
        evaluations=sum(quest.costs.evaluations for quest in quests),
    )


def best_of_each(quests: Sequence[Quest], count: int) -> list[Found[FusionPlan]]:
    """The best unlike plans of each search in turn, so many in all, the cheapest first.

    In turn, since the sum of kernels compares plans of one space better than plans of two.
    """
    best = [unlike_candidates(quest.space, quest.costs, quest.pool, count) for quest in quests]
    in_turn = [found for place in zip_longest(*best) for found in place if found is not None]
    return sorted(in_turn[:count], key=lambda found: found.cost)
