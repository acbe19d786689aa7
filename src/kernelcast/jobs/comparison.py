"""Two programs that were timed in the same rounds, compared round by round.

The machine's loud stretches last longer than a round, so the ratio inside a round is far steadier than either
time. What is chosen on the even rounds is judged on the odd ones: the winner of many candidates is partly
the luckiest, and luck does not carry over to rounds that did not choose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelcast.core.interval import median_interval
from kernelcast.core.timing import Timing

Parity = Literal["even", "odd", "all"]

# With fewer quiet rounds than this the loud ones count too, and the ratio says so.
_ENOUGH_QUIET_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as long one program takes as another.

    Attributes:
        value: median over rounds of time over time; NaN where no round has both.
        lower, upper: distribution-free 90 % interval of that median; NaN under three rounds.
        rounds: how many counted.
        quiet: whether only rounds on a quiet machine counted; else too few were quiet and all did.
    """

    value: float
    lower: float
    upper: float
    rounds: int
    quiet: bool

    def __str__(self) -> str:
        loud = "" if self.quiet else ", loud"
        return f"{self.value:.3f} [{self.lower:.3f}, {self.upper:.3f}] over {self.rounds} rounds{loud}"

    @property
    def inverse(self) -> Ratio:
        """The other way round: a time ratio as a gain."""
        return Ratio(
            value=1 / self.value,
            lower=1 / self.upper,
            upper=1 / self.lower,
            rounds=self.rounds,
            quiet=self.quiet,
        )


def time_ratio(ours: Timing, theirs: Timing, *, rounds: Parity = "all") -> Ratio:
    """Time of ``ours`` over time of ``theirs``, from the rounds in which both ran.

    Args:
        rounds: which rounds count.
    """
    quiet = _round_ratios(ours, theirs, rounds, quiet_only=True)
    if len(quiet) >= _ENOUGH_QUIET_ROUNDS:
        return _summary(quiet, quiet=True)
    return _summary(_round_ratios(ours, theirs, rounds, quiet_only=False), quiet=False)


def whole_seconds(timing: Timing) -> float:
    """Seconds of one run: the median of the quiet rounds, or of all rounds where none was quiet."""
    quiet = timing.slopes_s()
    return float(np.median(quiet if quiet.size else timing.slopes_s(gated=False)))


def _summary(ratios: Sequence[float], *, quiet: bool) -> Ratio:
    lower, upper = median_interval(ratios)
    value = float(np.median(ratios)) if ratios else math.nan
    return Ratio(value=value, lower=lower, upper=upper, rounds=len(ratios), quiet=quiet)


def _round_ratios(ours: Timing, theirs: Timing, parity: Parity, *, quiet_only: bool) -> list[float]:
    mine, other = _by_round(ours, quiet_only), _by_round(theirs, quiet_only)
    wanted = {"even": (0,), "odd": (1,), "all": (0, 1)}[parity]
    return [mine[r] / other[r] for r in sorted(mine.keys() & other.keys()) if r % 2 in wanted]


def _by_round(timing: Timing, quiet_only: bool) -> dict[int, float]:
    """Seconds per run of each round; a round with a loud sample counts only where loud ones may."""
    samples: dict[int, list[float]] = {}
    loud: set[int] = set()
    for sample in timing.samples:
        samples.setdefault(sample.round, []).append(sample.seconds / sample.runs)
        if not sample.gated:
            loud.add(sample.round)
    return {r: float(np.median(s)) for r, s in samples.items() if not (quiet_only and r in loud)}
