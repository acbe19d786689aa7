"""Does the sum of a plan's kernels rank plans as whole programs do? The arithmetic, apart from the timing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.core.timing import Timing
from kernelcast.jobs.comparison import Parity, time_ratio, whole_seconds
from kernelcast.jobs.programs.memory_factor import MemoryFactor
from kernelcast.metrics import kendall_tau

# Plans slower than both of these are dropped: nobody wonders whether they are good.
DROPPED_ABOVE_DEFAULTS = 8.0
DROPPED_ABOVE_S = 32e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedPlan:
    """One plan of one program, timed as a whole and as a sum.

    Attributes:
        plan: its encoded form.
        whole: samples of the whole program; all plans of a program share their rounds.
        sum_s: Σ times × kernel seconds plus overheads; NaN where ``coverage`` is too small.
        coverage: share of the bytes that all runs of kernels touch which those with a time touch.
        temporary_bytes: of the compiled plan.
    """

    plan: str
    whole: Timing
    sum_s: float
    coverage: float
    temporary_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAdditivity:
    """How well sums stand for whole times over the plans of one program.

    Attributes:
        plans: how many distinct plans counted.
        dropped_slow, dropped_uncovered, dropped_failed: how many did not, and why.
        tau: Kendall's τ-b of the predicted against the whole times.
        repeat_tau: the same between the whole times of even and odd rounds: what can be reached.
        regret: time of the plan that the prediction picks over time of the best, the best chosen on even
            rounds, both judged on odd ones.
        slope: least-squares factor whole / prediction through the origin, relative errors.
        abs_error: median of |prediction / whole − 1|.
        repeat_error: median of |even / odd − 1| of the whole times.
        quiet_share: fraction of the whole-program samples taken on a quiet machine.
    """

    program: str
    plans: int
    dropped_slow: int
    dropped_uncovered: int
    dropped_failed: int
    tau: float
    repeat_tau: float
    regret: float
    slope: float
    abs_error: float
    repeat_error: float
    quiet_share: float


def analyse(
    program: str, default: Timing, plans: Sequence[TimedPlan], factor: MemoryFactor, *, failed: int = 0
) -> ProgramAdditivity:
    """The figures of one program.

    Args:
        default: the untouched program, timed in the same rounds.
        plans: distinct plans, the recovered default among them.
        factor: applied to each sum before anything is compared.
        failed: how many more plans have no whole time.
    """
    covered = [p for p in plans if math.isfinite(p.sum_s)]
    kept = [p for p in covered if not is_slow(p.whole, default)]
    predicted = np.array([p.sum_s * factor(p.temporary_bytes) for p in kept])
    whole, even, odd = (relative_times(kept, default, rounds) for rounds in ("all", "even", "odd"))
    ratio = predicted / (whole * whole_seconds(default)) if kept else np.array([])
    return ProgramAdditivity(
        program=program,
        plans=len(kept),
        dropped_slow=len(covered) - len(kept),
        dropped_uncovered=len(plans) - len(covered),
        dropped_failed=failed,
        tau=kendall_tau(predicted, whole),
        repeat_tau=kendall_tau(even, odd),
        regret=float(odd[predicted.argmin()] / odd[even.argmin()]) if kept else math.nan,
        slope=float(ratio.sum() / np.square(ratio).sum()) if kept else math.nan,
        abs_error=_median(np.abs(ratio - 1)),
        repeat_error=_median(np.abs(even / odd - 1)),
        quiet_share=_median([p.whole.quiet_share for p in kept]),
    )


def is_slow(whole: Timing, default: Timing) -> bool:
    """Whether a plan is out of the question: slower than max(8 × default, 32 ms)."""
    limit_s = max(DROPPED_ABOVE_DEFAULTS * whole_seconds(default), DROPPED_ABOVE_S)
    return whole_seconds(whole) > limit_s


def relative_times(plans: Sequence[TimedPlan], default: Timing, rounds: Parity) -> np.ndarray:
    """(plan,) whole time over the default's, paired inside the rounds."""
    return np.array([time_ratio(p.whole, default, rounds=rounds).value for p in plans])


def _median(values: Sequence[float] | np.ndarray) -> float:
    return float(np.median(values)) if len(values) else math.nan
