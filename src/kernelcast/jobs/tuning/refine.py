"""Searching on from a model's best plans with whole programs on the device.

A sum of kernels leaves out what one kernel leaves in the caches for the next, so among the best plans it
ranks no better than by some percent. The device does: it times neighbours of the best plans so far, those
first that the prices of kernels speak for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kernelcast.fusion.moves import Extensions
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import FusionSpace, default
from kernelcast.jobs.tuning.device_search import measured_ratios
from kernelcast.jobs.tuning.plan_search import propose
from kernelcast.jobs.tuning.trial_search import Quest
from kernelcast.targets.protocol import DeviceBudget, TimesPrograms


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineOptions:
    """How the device searches on.

    Attributes:
        share: of the device seconds that the trials of kernels left; the rest decides among finalists.
        batch: new plans timed in the same rounds.
        retimed: best plans that run in these rounds again.
        parents: best plans whose neighbours are drawn.
        draws: neighbours drawn of each parent, of which the most promising are timed.
        gated_rounds: quiet rounds of a batch.
        patience: batches without a better plan after which it ends.
    """

    share: float = 0.6
    batch: int = 6
    retimed: int = 3
    parents: int = 4
    draws: int = 12
    gated_rounds: int = 8
    patience: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """A plan that the device timed on the way.

    Attributes:
        predicted_s: by the prices of its kernels.
        ratio: its time over the untouched program's in the same rounds, the mean of its batches; infinite
            where it failed.
        batches: that it ran in. A batch in which the untouched program was disturbed makes all its plans look
            fast; those that look best run again.
    """

    plan: FusionPlan
    predicted_s: float
    ratio: float
    batches: int = 1


@dataclass(slots=True, kw_only=True)
class _Refinement:
    """What is known on the way; a plan's quest is the search of its space."""

    quests: Mapping[str, Quest]
    extensions: Extensions
    forbidden: frozenset[FusionPlan]
    rng: random.Random
    explored: dict[FusionPlan, Explored] = field(default_factory=dict[FusionPlan, Explored])

    def ranked(self) -> list[Explored]:
        """Plans that ran, the fastest first."""
        ran = [explored for explored in self.explored.values() if math.isfinite(explored.ratio)]
        return sorted(ran, key=lambda explored: explored.ratio)

    def neighbours(self, options: RefineOptions) -> list[FusionPlan]:
        """Untimed neighbours of the best plans, a batch of them, by their parent's time and the change."""
        promise: dict[FusionPlan, float] = {}
        for parent in self.ranked()[: options.parents]:
            quest = self.quests[parent.plan.space]
            drawn = [
                propose(quest.space, parent.plan, self.rng, self.extensions) for _ in range(options.draws)
            ]
            new = [p for p in drawn if p is not None and not self._is_settled(p.state)]
            costs = quest.costs.of_proposals([parent.predicted_s] * len(new), new)
            for proposal, cost in zip(new, costs, strict=True):
                if math.isfinite(cost):
                    promised = parent.ratio * cost / parent.predicted_s
                    promise[proposal.state] = min(promised, promise.get(proposal.state, math.inf))
        return sorted(promise, key=promise.__getitem__)[: options.batch]

    def _is_settled(self, plan: FusionPlan) -> bool:
        return plan in self.explored or plan in self.forbidden

    def record(self, plans: Sequence[FusionPlan], ratios: Sequence[float]) -> None:
        """Keeps what a batch gave: the geometric mean over the batches that a plan ran in."""
        for plan, ratio in zip(plans, ratios, strict=True):
            known = self.explored.get(plan)
            if known is None:
                (cost,) = self.quests[plan.space].costs.of_states([plan], [plan])
                self.explored[plan] = Explored(plan=plan, predicted_s=cost, ratio=ratio)
            else:
                mean = (known.ratio**known.batches * ratio) ** (1 / (known.batches + 1))
                self.explored[plan] = replace(known, ratio=mean, batches=known.batches + 1)


def refine(
    space: FusionSpace,
    target: TimesPrograms,
    quests: Sequence[Quest],
    firsts: Sequence[FusionPlan],
    *,
    options: RefineOptions,
    extensions: Extensions,
    forbid_default: bool,
    budget: DeviceBudget,
    seed: int,
    inputs: Mapping[int, np.ndarray] | None,
) -> list[Explored]:
    """All plans that were timed, the fastest first; those that failed are left out.

    Args:
        space: of the program as the compiler makes it.
        quests: the searches that gave the first plans.
        firsts: timed before any neighbour.
        forbid_default: the recovered defaults are not entered; otherwise they are timed with the firsts.
        budget: of device seconds, of which this takes at most its share.
    """
    defaults = [default(quest.space) for quest in quests]
    found = _Refinement(
        quests={quest.space.digest: quest for quest in quests},
        extensions=extensions,
        forbidden=frozenset(defaults if forbid_default else ()),
        rng=random.Random(f"{seed}/refine"),
    )
    allowance = DeviceBudget(limit_s=options.share * budget.left_s)
    pending = list(dict.fromkeys([*firsts, *(() if forbid_default else defaults)]))
    idle = 0
    while idle < options.patience and allowance.left_s > 0:
        batch = pending[: options.batch] or found.neighbours(options)
        del pending[: options.batch]
        if not batch:
            break
        again = [explored.plan for explored in found.ranked()[: options.retimed]]
        before_s = allowance.spent_s
        ratios = measured_ratios(
            space, target, [*again, *batch], allowance, inputs, gated_rounds=options.gated_rounds
        )
        budget.spend(allowance.spent_s - before_s)
        found.record([*again, *batch], ratios)
        best = {explored.plan for explored in found.ranked()[: options.retimed]}
        idle = 0 if pending or best & {*batch} else idle + 1
    return found.ranked()
