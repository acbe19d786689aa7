"""A measured time with all its raw samples, or the reason why there is none."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from kernelcast.core.interval import median_interval

# A sample counts when the sentinel readings just before and after lie within 8 % of the sentinel's floor.
GATE = 1.08


class Clock(StrEnum):
    """What the seconds were counted with. Simulated and published times never mix with measured ones."""

    WALL = "wall"
    THREAD_CPU = "thread-cpu"
    DEVICE = "device"
    SIMULATED = "simulated"
    PUBLISHED = "published"


class Statistic(StrEnum):
    """How one number, the label, is made from samples. Part of a target's identity."""

    GATED_MEDIAN = "gated-median-of-slopes"
    GATED_MIN_DIFFERENCE = "gated-min-high-minus-min-low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One timed call.

    Attributes:
        runs: how often the kernel or program ran inside it.
        seconds: how long the call took.
        loudness: how loud the machine was; 1.0 is quiet, NaN where no sentinel ran. The largest of the
            sentinel readings before and after over the sentinel's all-time floor and of the call's wall over
            processor seconds; in a finished Timing divided by the quietest of this kernel's own samples, at
            most 1.2 (``targets.sentinel.against_own_quiet``).
        round: samples of one round were taken next to each other and may be subtracted.
    """

    runs: int
    seconds: float
    loudness: float
    round: int

    @property
    def gated(self) -> bool:
        """Whether the machine was quiet; true where no sentinel ran."""
        return not self.loudness > GATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All raw samples of one kernel or program; every statistic is derived.

    Attributes:
        samples: in the order taken.
        clock: what counted the seconds.
        method: short name of the procedure, e.g. ``loop-slope`` (difference of a long and a short loop) or
            ``whole-program`` (each sample is one call).
        cache: ``warm`` or ``cold``: state of the caches when a run starts.
        overhead_s: seconds per run that belong to the procedure (an empty loop iteration), subtracted.

    >>> short = Sample(runs=10, seconds=3e-5, loudness=1.0, round=0)
    >>> long = Sample(runs=110, seconds=23e-5, loudness=1.0, round=0)
    >>> timing = Timing(samples=(short, long), clock=Clock.WALL, method="loop-slope")
    >>> round(timing.seconds(), 12), timing.quiet_share
    (2e-06, 1.0)
    """

    samples: tuple[Sample, ...]
    clock: Clock
    method: str
    cache: str = "warm"
    overhead_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a Timing needs at least one sample; what was not measured is a Failure")
        for sample in self.samples:
            if sample.runs < 1 or not 0 < sample.seconds < math.inf:
                raise ValueError(f"each sample needs runs >= 1 and finite seconds > 0, got {sample}")

    @property
    def quiet_share(self) -> float:
        """Fraction of the samples taken on a quiet machine."""
        return sum(s.gated for s in self.samples) / len(self.samples)

    def slopes_s(self, *, gated: bool = True) -> np.ndarray:
        """Seconds per run, one number per usable round, overhead subtracted.

        A round with a short and a long loop gives (long − short) / (runs − runs); a round whose samples all
        have the same number of runs gives seconds / runs.

        Args:
            gated: only rounds whose samples are all gated.
        """
        rounds: dict[int, list[Sample]] = defaultdict(list)
        for sample in self.samples:
            rounds[sample.round].append(sample)
        slopes: list[float] = []
        for group in rounds.values():
            if gated and not all(s.gated for s in group):
                continue
            low, high = min(group, key=lambda s: s.runs), max(group, key=lambda s: s.runs)
            if low.runs < high.runs:
                slopes.append((high.seconds - low.seconds) / (high.runs - low.runs) - self.overhead_s)
            else:
                slopes.extend(s.seconds / s.runs - self.overhead_s for s in group)
        return np.asarray(slopes, dtype=np.float64)

    def seconds(self, statistic: Statistic = Statistic.GATED_MEDIAN) -> float:
        """Seconds of one run; NaN where no gated round exists."""
        slopes = self.slopes_s()
        if slopes.size == 0:
            return math.nan
        if statistic is Statistic.GATED_MEDIAN:
            return float(np.median(slopes))
        gated = [s for s in self.samples if s.gated]
        low_runs, high_runs = min(s.runs for s in gated), max(s.runs for s in gated)
        if low_runs == high_runs:
            return min(s.seconds for s in gated) / low_runs - self.overhead_s
        low = min(s.seconds for s in gated if s.runs == low_runs)
        high = min(s.seconds for s in gated if s.runs == high_runs)
        return (high - low) / (high_runs - low_runs) - self.overhead_s

    def interval_s(self) -> tuple[float, float]:
        """Distribution-free 90 % interval of the median of the gated slopes; NaN under three."""
        return median_interval([float(slope) for slope in self.slopes_s()])


class Reason(StrEnum):
    """Why there is no time."""

    COMPILE = "compile"
    RUN = "run"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    WRONG_RESULT = "wrong-result"
    CRASH = "crash"
    VALUE_DEPENDENT = "value-dependent"
    NO_SLOPE = "no-slope"
    TOO_LOUD = "too-loud"
    NOT_AS_ASKED = "not-as-asked"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a kernel or program has no time. A value, never an exception across a worker boundary."""

    reason: Reason
    message: str
    samples: tuple[Sample, ...] = ()

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


TimingOrFailure = Timing | Failure


def joined(timings: Sequence[Timing]) -> Timing:
    """All samples of several visits to one kernel or program, as one timing; rounds stay apart.

    Raises:
        ValueError: on none, or on timings taken in different ways.
    """
    if len({(t.clock, t.method, t.cache) for t in timings}) != 1:
        raise ValueError(
            f"can join timings of one clock, method and cache state, got {len(timings)} of several"
        )
    samples: list[Sample] = []
    for timing in timings:
        first = 1 + max((s.round for s in samples), default=-1)
        samples.extend(replace(s, round=first + s.round) for s in timing.samples)
    overhead_s = float(np.median([t.overhead_s for t in timings]))
    return replace(timings[0], samples=tuple(samples), overhead_s=overhead_s)
