"""Labels: one number per measured kernel, derived from the raw samples of a dataset."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from kernelcast.core.timing import Failure, Timing
from kernelcast.data.samples import from_columns
from kernelcast.data.schema import MeasurementRow, TileRow
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


def untiled_analytical_s(dataset: Dataset) -> dict[str, float]:
    """Seconds by the analytical model of the target's compiler, for kernels as it compiles them by itself;
    by fingerprint, without those that it gives none for.
    """
    rows = dataset.columns(TileRow, "kernel", "tile", "analytical_s")
    return {kernel: seconds for kernel, tile, seconds in rows if not tile and seconds > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TileLabels:
    """The tiles of one kernel that have a time; entries in the order measured.

    Attributes:
        tiles: as text.
        seconds: (tile,) float64, by the statistic of the dataset's target.
        analytical_s: (tile,) float64 by the analytical model of the target's compiler; NaN where it has none.
        default: number of the compiler's own choice; None where it has no time or is not known.
    """

    tiles: tuple[str, ...]
    seconds: np.ndarray
    analytical_s: np.ndarray
    default: int | None


def tile_labels(dataset: Dataset) -> dict[str, TileLabels]:
    """The timed tiles of each kernel that has some, by fingerprint; tiles that failed are left out.

    Of several occasions the first that gave a timing counts, as for ``labels``.
    """
    statistic = dataset.manifest.target.label
    timed: dict[str, dict[str, float]] = {}
    for row in dataset.rows(MeasurementRow):
        held = timed.setdefault(row.kernel, {}) if row.tile else {}
        if row.tile and row.tile not in held:
            outcome = from_columns(row.samples)
            seconds = outcome.seconds(statistic) if isinstance(outcome, Timing) else 0.0
            # A label that is not a positive number is no label, as in ``jobs.learning.data``.
            if seconds > 0:
                held[row.tile] = seconds
    listed = {
        (kernel, tile): (analytical_s, bool(is_default))
        for kernel, tile, analytical_s, is_default in dataset.columns(
            TileRow, "kernel", "tile", "analytical_s", "is_default"
        )
    }
    unlisted = (float("nan"), False)
    found: dict[str, TileLabels] = {}
    for kernel, seconds in timed.items():
        if seconds:
            told = [listed.get((kernel, tile), unlisted) for tile in seconds]
            found[kernel] = TileLabels(
                tiles=tuple(seconds),
                seconds=np.array(list(seconds.values()), dtype=np.float64),
                analytical_s=np.array([analytical_s for analytical_s, _ in told], dtype=np.float64),
                default=next((n for n, (_, is_default) in enumerate(told) if is_default), None),
            )
    return found
