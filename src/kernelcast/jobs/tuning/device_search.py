"""Searching fusion plans with the hardware itself as the cost, and choosing among plans by timing them.

What a study compares the model with: every plan that is looked at is compiled and run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kernelcast.core.timing import Timing
from kernelcast.fusion.plan import FusionPlan, Untouched
from kernelcast.fusion.space import FusionSpace
from kernelcast.jobs.comparison import time_ratio
from kernelcast.jobs.tuning.plan_search import SearchOptions, search_plans
from kernelcast.search.anneal import Annealed
from kernelcast.search.costs import WholeCosts
from kernelcast.targets.protocol import DeviceBudget, TimesPrograms

# The rest of a budget decides among the best plans: single noisy samples made them look best.
_SEARCH_SHARE = 0.8
# So many steps without a plan that was not timed before mean that there is none left within reach.
_STALE_STEPS = 500


def search_on_device(
    space: FusionSpace,
    target: TimesPrograms,
    *,
    options: SearchOptions,
    budget: DeviceBudget,
    seed: int,
    inputs: Mapping[int, np.ndarray],
) -> Annealed[FusionPlan]:
    """The plans that annealing finds on the device in four fifths of a budget; their costs are ratios.

    Args:
        options: its limits are set by the budget.
        budget: spent on; the temperature falls with it.
    """
    limited = replace(
        options,
        annealing=replace(
            options.annealing,
            steps=10**9,
            seconds=_SEARCH_SHARE * budget.limit_s - budget.spent_s,
            stale_steps=_STALE_STEPS,
        ),
    )
    costs = WholeCosts[FusionPlan](lambda plans: measured_ratios(space, target, plans, budget, inputs))
    return search_plans(space, costs, options=limited, seed=seed, clock=lambda: budget.spent_s)


def fastest_on_device(
    space: FusionSpace,
    target: TimesPrograms,
    plans: Sequence[FusionPlan],
    *,
    budget: DeviceBudget,
    inputs: Mapping[int, np.ndarray],
) -> FusionPlan | None:
    """The fastest of some plans, timed in the same rounds with what is left of a budget; None if none ran."""
    ratios = measured_ratios(space, target, plans, budget, inputs)
    best = min(range(len(plans)), key=ratios.__getitem__, default=None)
    return None if best is None or math.isinf(ratios[best]) else plans[best]


def measured_ratios(
    space: FusionSpace,
    target: TimesPrograms,
    plans: Sequence[FusionPlan],
    budget: DeviceBudget,
    inputs: Mapping[int, np.ndarray] | None,
    *,
    gated_rounds: int | None = None,
) -> list[float]:
    """Time of each plan over that of the untouched program in the same rounds; infinity for failures.

    The untouched program serves as the clock here: a loud machine slows both.
    """
    clock, *timed = target.time_programs(
        space, [Untouched(), *plans], budget=budget, inputs=inputs, gated_rounds=gated_rounds
    )
    found: list[float] = []
    for one in timed:
        ratio = math.inf
        if isinstance(clock.outcome, Timing) and isinstance(one.outcome, Timing):
            ratio = time_ratio(one.outcome, clock.outcome).value
        found.append(math.inf if math.isnan(ratio) else ratio)
    return found
