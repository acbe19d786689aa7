"""A target and estimator that replays measurements: searches are tested on it, and no model can be better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from kernelcast.core.estimate import Estimates, Status
from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Failure, Reason, Statistic, Timing
from kernelcast.data.outcomes import outcomes
from kernelcast.data.store import Dataset
from kernelcast.targets.protocol import Candidate


class Recording:
    """Outcomes by fingerprint; implements ``TimesKernels`` and ``Estimator``.

    Attributes:
        outcomes: of kernels without a tile.
        statistic: makes one number of a timing's samples.
    """

    def __init__(self, outcomes: Mapping[str, Timing | Failure], statistic: Statistic) -> None:
        self.outcomes = dict(outcomes)
        self.statistic = statistic

    @staticmethod
    def of(dataset: Dataset) -> Recording:
        """The recording of all that a dataset has measured."""
        return Recording(outcomes(dataset), dataset.manifest.target.label)

    def time_kernels(self, candidates: Iterable[Candidate]) -> Iterator[tuple[str, Timing | Failure]]:
        """(key, outcome) in the order asked; a kernel that was never measured is a failure."""
        for candidate in candidates:
            outcome = None if candidate.tile else self.outcomes.get(candidate.kernel.fingerprint)
            if outcome is None:
                message = f"kernel {candidate.kernel.fingerprint} is not in the recording"
                outcome = Failure(reason=Reason.UNSUPPORTED, message=message)
            yield candidate.key, outcome

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        """The recorded label of each kernel, with an interval where it is a median; unknown where there is
        none."""
        rows = [self._row(kernel.fingerprint) for kernel in kernels]
        values = np.array([row[:3] for row in rows], dtype=np.float64).reshape(-1, 3)
        return Estimates(
            seconds=values[:, 0],
            lower=values[:, 1],
            upper=values[:, 2],
            status=np.array([row[3] for row in rows], dtype=np.int8),
        )

    def _row(self, fingerprint: str) -> tuple[float, float, float, Status]:
        outcome = self.outcomes.get(fingerprint)
        if outcome is None:
            return (math.nan, math.nan, math.nan, Status.UNKNOWN)
        seconds = outcome.seconds(self.statistic) if isinstance(outcome, Timing) else math.nan
        if isinstance(outcome, Failure) or not seconds > 0:
            return (math.nan, math.nan, math.nan, Status.FAILED)
        # The interval is that of the median: it says nothing about another statistic.
        is_median = self.statistic is Statistic.GATED_MEDIAN
        lower, upper = outcome.interval_s() if is_median else (math.nan, math.nan)
        return (seconds, lower, upper, Status.KNOWN)
