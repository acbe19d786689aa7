"""Tuning the fusion of one program: the model searches, the device corrects it and has the last word."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest

import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.core.timing import Timing
from kernelcast.errors import TargetError
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.jobs.as_json import Choice
from kernelcast.jobs.tuning.judging import judge
from kernelcast.jobs.tuning.kernel_prices import KernelPrices
from kernelcast.jobs.tuning.plan_search import SearchOptions, unlike_candidates
from kernelcast.jobs.tuning.refine import RefineOptions, refine
from kernelcast.jobs.tuning.result import Tried, TuningResult
from kernelcast.jobs.tuning.spaces import spaces_of
from kernelcast.jobs.tuning.trial_search import Quest, TrialOptions, search_with_trials
from kernelcast.jobs.tuning_target import TuningTarget
from kernelcast.report.provenance import versions
from kernelcast.search.anneal import Found, TraceStep
from kernelcast.targets.protocol import DeviceBudget, ProgramTiming

# What is tried starts with the untouched default and its A/A control; candidates follow.
_FIRST_CANDIDATE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions:
    """How a program is tuned.

    Attributes:
        search: by the model, in each space of the program.
        trials: of single kernels, on which the device corrects the model.
        refine: how the device searches on with whole plans.
        library_off: search without the compiler's library too.
        candidates: how many whole plans the device begins with.
        finalists: how many it decides among at the end, besides both defaults.
        gated_rounds: quiet rounds of the end.
        device_s: budget of device seconds.
        decision_s: device seconds that the end may take however much was spent before: a search without a
            decision was for nothing. Where less is left, only the best two plans are finalists.
    """

    search: SearchOptions = field(default_factory=SearchOptions)
    trials: TrialOptions = field(default_factory=TrialOptions)
    refine: RefineOptions = field(default_factory=RefineOptions)
    library_off: bool = True
    candidates: int = 8
    finalists: int = 6
    gated_rounds: int = 40
    device_s: float = 30.0
    decision_s: float = 20.0


def autotune(
    target: TuningTarget,
    estimator: Estimator,
    *,
    program: str,
    stablehlo: str,
    estimator_name: str,
    options: TuningOptions,
    seed: int,
    inputs: Mapping[int, np.ndarray] | None = None,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> TuningResult:
    """The fastest plan found for a program, or its default where none is faster beyond the noise.

    The estimator stands in for the hardware during the search, and the device times the kernels that decide
    it. The best few plans that differ in what matters run on the device whole, and neighbours of the best.
    The fastest then run again in turn with the untouched default, its A/A control and the library-off
    default: the winner of the even rounds is the answer if it beats the default on the odd ones.

    Args:
        program: name for people. stablehlo: the program, kept in the result for replays.
        estimator_name: what the estimator is, e.g. a checkpoint's digest.
        inputs: values of parameters by number; others are drawn by the target.

    Raises:
        TargetError: the default itself cannot be timed.
    """
    spaces = spaces_of(target, stablehlo)
    space = spaces[0]
    budget = DeviceBudget(limit_s=options.device_s)
    prices = KernelPrices(
        estimator,
        statistic=target.identity.label,
        optimism=options.trials.optimism,
        launch_s=options.trials.launch_s,
    )
    begun = clock()
    quests = search_with_trials(
        spaces if options.library_off else spaces[:1],
        target,
        prices,
        options=options.search,
        trials=options.trials,
        budget=budget,
        seed=seed,
        clock=clock,
    )
    chosen = best_of_each(quests, options.candidates)
    explored = refine(
        space,
        target,
        quests,
        [found.state for found in chosen],
        options=options.refine,
        extensions=options.search.extensions,
        forbid_default=options.search.forbid_default,
        budget=budget,
        seed=seed,
        inputs=inputs,
    )
    model_s = clock() - begun - budget.spent_s

    # Where the budget ended early, the model's word is all there is of some.
    known = {e.plan: e.predicted_s for e in explored} | {found.state: found.cost for found in chosen}
    is_late = budget.left_s < options.decision_s
    finalists = list(known)[: min(2, options.finalists) if is_late else options.finalists]
    decision = DeviceBudget(limit_s=max(budget.left_s, options.decision_s))
    choices: list[Choice] = [Untouched(), Untouched(), LibraryOff(), *finalists]
    predicted = [math.nan, math.nan, math.nan, *(known[plan] for plan in finalists)]
    timed = target.time_programs(
        space, choices, budget=decision, inputs=inputs, gated_rounds=options.gated_rounds
    )
    budget.spend(decision.spent_s)
    tried = tuple(map(_tried, timed, predicted))
    default, control = _timing(tried[0]), _timing(tried[1])
    judgement = judge(
        default=default,
        control=control,
        library_off=tried[2].outcome,
        candidates=[t.outcome for t in tried[_FIRST_CANDIDATE:]],
    )
    return TuningResult(
        program=program,
        stablehlo=stablehlo,
        space=space.digest,
        rules=space.rules.identity,
        answer=Untouched() if judgement.answer is None else tried[_FIRST_CANDIDATE + judgement.answer].choice,
        judgement=judgement,
        tried=tried,
        trace=tuple(step for quest in quests for step in improvements(quest.trace)),
        kernels_timed=prices.timed,
        explored=tuple(explored),
        estimator=estimator_name,
        options=asdict(options),
        seed=seed,
        target=target.identity,
        versions=versions(),
        device_s=budget.spent_s,
        model_s=model_s,
        date=now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def best_of_each(quests: Sequence[Quest], count: int) -> list[Found[FusionPlan]]:
    """The best unlike plans of each search in turn, so many in all, the cheapest first.

    In turn, since the sum of kernels compares plans of one space better than plans of two.
    """
    best = [unlike_candidates(quest.space, quest.costs, quest.pool, count) for quest in quests]
    in_turn = [found for place in zip_longest(*best) for found in place if found is not None]
    return sorted(in_turn[:count], key=lambda found: found.cost)


def improvements(trace: Sequence[TraceStep]) -> tuple[TraceStep, ...]:
    """The steps of a trace that lowered the best cost."""
    kept: list[TraceStep] = []
    for step in trace:
        if step.cost <= step.best and (not kept or step.best < kept[-1].best):
            kept.append(step)
    return tuple(kept)


def _tried(timed: ProgramTiming, predicted_s: float) -> Tried:
    return Tried(
        choice=timed.plan,
        predicted_s=predicted_s,
        outcome=timed.outcome,
        output_error=timed.output_error,
        temporary_bytes=timed.temporary_bytes,
    )


def _timing(tried: Tried) -> Timing:
    if isinstance(tried.outcome, Timing):
        return tried.outcome
    raise TargetError(
        f"the program itself could not be timed, so there is nothing to compare: {tried.outcome}"
    )
