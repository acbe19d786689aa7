"""Prices of kernels that get better: timed on the device where they matter, estimated elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.core.kernel import Kernel, Kind
from kernelcast.core.timing import Failure, Reason, Statistic, Timing

# Of a kind that was timed fewer times than this, the error of all kinds is believed.
_LEAST_OF_KIND = 4
# What an outcome of these says is about the machine or the way of timing, not about the kernel.
_SAYS_NOTHING = frozenset(
    {
        Reason.TOO_LOUD,
        Reason.NO_SLOPE,
        Reason.TIMEOUT,
        Reason.MEMORY,
        Reason.UNSUPPORTED,
        Reason.VALUE_DEPENDENT,
    }
)


class KernelPrices:
    """Seconds of kernels, by fingerprint; serves all plans and spaces of a program.

    An estimate is scaled by the median of time over estimate of the timed kernels of its kind, and lowered a
    little: of two plans that seem equal, the one with untimed kernels is to be tried. Else a search that has
    found the model too low everywhere would stay with what it has timed.
    """

    def __init__(
        self, estimator: Estimator, *, statistic: Statistic, optimism: float, launch_s: float = 0.0
    ) -> None:
        """
        Args:
            statistic: that makes one number of a kernel's samples.
            optimism: factor of the price of what was not timed.
            launch_s: that a launch costs besides the kernel.
        """
        self._estimator = estimator
        self._statistic = statistic
        self._optimism = optimism
        self._launch_s = launch_s
        self._estimates: dict[str, float] = {}
        self._kinds: dict[str, Kind] = {}
        self._timed: dict[str, float] = {}
        self._tried: set[str] = set()
        self._scales: dict[Kind | None, float] = {None: 1.0}

    @property
    def timed(self) -> int:
        """How many kernels have a time of the device."""
        return sum(map(math.isfinite, self._timed.values()))

    def price(self, kernels: Sequence[Kernel]) -> list[float]:
        """Seconds of each kernel; infinity where it failed, or where nothing is known of it."""
        new = {k.fingerprint: k for k in kernels if k.fingerprint not in self._estimates}
        if new:
            seconds = map(float, self._estimator.estimate(list(new.values())).seconds)
            self._estimates.update(zip(new, seconds, strict=True))
            self._kinds.update((fingerprint, kernel.kind) for fingerprint, kernel in new.items())
        return [self._price(kernel.fingerprint) for kernel in kernels]

    def was_tried(self, kernel: Kernel) -> bool:
        """Whether the device had this kernel already, be it in vain."""
        return kernel.fingerprint in self._tried

    def learn(self, outcomes: Mapping[str, Timing | Failure]) -> None:
        """Takes the device's word for kernels, by fingerprint."""
        for fingerprint, outcome in outcomes.items():
            self._tried.add(fingerprint)
            if isinstance(outcome, Timing):
                self._timed[fingerprint] = outcome.seconds(self._statistic)
            elif outcome.reason not in _SAYS_NOTHING:
                self._timed[fingerprint] = math.inf
        self._rescale()

    def _price(self, fingerprint: str) -> float:
        if fingerprint in self._timed:
            return self._timed[fingerprint] + self._launch_s
        estimate = self._estimates[fingerprint]
        if math.isnan(estimate):
            return math.inf
        scale = self._scales.get(self._kinds[fingerprint], self._scales[None])
        return estimate * scale * self._optimism + self._launch_s

    def _rescale(self) -> None:
        errors: dict[Kind, list[float]] = {}
        for fingerprint, seconds in self._timed.items():
            ratio = seconds / self._estimates.get(fingerprint, math.nan)
            if math.isfinite(ratio):
                errors.setdefault(self._kinds[fingerprint], []).append(ratio)
        everything = [ratio for ratios in errors.values() for ratio in ratios]
        self._scales = {None: float(np.median(everything)) if everything else 1.0}
        for kind, ratios in errors.items():
            if len(ratios) >= _LEAST_OF_KIND:
                self._scales[kind] = float(np.median(ratios))
