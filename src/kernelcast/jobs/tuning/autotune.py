"""Tuning the fusion of one program: the model searches, the device corrects it and has the last word."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.core.timing import Timing
from kernelcast.errors import TargetError
from kernelcast.fusion.plan import LibraryOff, Untouched
from kernelcast.jobs.as_json import Choice
from kernelcast.jobs.tuning.explore import explore
from kernelcast.jobs.tuning.judging import judge
from kernelcast.jobs.tuning.plan_search import SearchOptions
from kernelcast.jobs.tuning.refine import RefineOptions
from kernelcast.jobs.tuning.result import Tried, TuningResult
from kernelcast.jobs.tuning.spaces import spaces_of
from kernelcast.jobs.tuning.trial_search import TrialOptions
from kernelcast.jobs.tuning_target import TuningTarget
from kernelcast.report.provenance import versions
from kernelcast.targets.protocol import DeviceBudget, ProgramTiming

# What is tried starts with the untouched default and its A/A control; candidates follow.
_FIRST_CANDIDATE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions:
    """How a program is tuned.

    Attributes:
        search: by the model, in each space of the program, with the compiler's library and without.
        trials: of single kernels, on which the device corrects the model.
        refine: how the device searches on with whole plans.
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
    begun = clock()
    found = explore(
        spaces,
        target,
        estimator,
        search=options.search,
        trials=options.trials,
        refining=options.refine,
        candidates=options.candidates,
        budget=budget,
        seed=seed,
        inputs=inputs,
        clock=clock,
    )
    model_s = clock() - begun - budget.spent_s

    is_late = budget.left_s < options.decision_s
    finalists = list(found.plans)[: min(2, options.finalists) if is_late else options.finalists]
    decision = DeviceBudget(limit_s=max(budget.left_s, options.decision_s))
    choices: list[Choice] = [Untouched(), Untouched(), LibraryOff(), *finalists]
    predicted = [math.nan, math.nan, math.nan, *(found.plans[plan] for plan in finalists)]
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
        trace=found.trace,
        kernels_timed=found.kernels_timed,
        explored=found.explored,
        estimator=estimator_name,
        options=asdict(options),
        seed=seed,
        target=target.identity,
        versions=versions(),
        device_s=budget.spent_s,
        model_s=model_s,
        date=now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


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
