"""Labels: one number per measured kernel, derived from the raw samples of a dataset."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from kernelcast.core.timing import Failure, Timing
from kernelcast.data.samples import from_columns
from kernelcast.data.schema import MeasurementRow
from kernelcast.data.store import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Measured seconds of one warm run, one entry per kernel that has a label.

    Attributes:
        fingerprints: in the order measured.
        seconds: (kernel,) float64, by the statistic of the dataset's target.
    """

    fingerprints: tuple[str, ...]
    seconds: np.ndarray

    def __len__(self) -> int:
        return len(self.fingerprints)


def outcomes(
    dataset: Dataset, *, tile: str = "", occasions: Collection[str] | None = None
) -> dict[str, Timing | Failure]:
    """The outcome of each measured kernel, by fingerprint.

    Of several occasions the first that gave a timing counts, so that a label never changes once it is there;
    a kernel that only failed has its last failure.

    Args:
        tile: printed tile; empty for kernels timed without one.
        occasions: only these.
    """
    found: dict[str, Timing | Failure] = {}
    for row in dataset.rows(MeasurementRow):
        if row.tile != tile or (occasions is not None and row.occasion not in occasions):
            continue
        if not isinstance(found.get(row.kernel), Timing):
            found[row.kernel] = from_columns(row.samples)
    return found


def labels(dataset: Dataset, *, occasions: Collection[str] | None = None) -> Labels:
    """The labels of a dataset, without the kernels that failed."""
    statistic = dataset.manifest.target.label
    timed = {
        kernel: outcome
        for kernel, outcome in outcomes(dataset, occasions=occasions).items()
        if isinstance(outcome, Timing)
    }
    return Labels(
        fingerprints=tuple(timed),
        seconds=np.array([t.seconds(statistic) for t in timed.values()], dtype=np.float64),
    )
