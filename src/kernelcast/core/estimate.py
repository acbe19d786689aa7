"""The two promises a model can make: absolute times (Estimator) or an order of tiles (Ranker)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, runtime_checkable

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile


class Status(IntEnum):
    """How far an estimate may be trusted."""

    KNOWN = 0
    EXTRAPOLATED = 1  # an opcode unseen in training, or a feature outside its training range
    UNKNOWN = 2  # the estimator has no way to say
    FAILED = 3  # the kernel is known to fail on the target


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Estimated times of several kernels, one entry each.

    Attributes:
        seconds: (kernel,) float64; NaN where status is UNKNOWN or FAILED.
        lower, upper: (kernel,) float64 bounds of the interval; NaN where the model gives none.
        status: (kernel,) int8, values of ``Status``.

    >>> estimates = estimates_of(np.array([2e-6, np.nan]))
    >>> len(estimates), [Status(s).name for s in estimates.status]
    (2, ['KNOWN', 'UNKNOWN'])
    """

    seconds: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray

    def __post_init__(self) -> None:
        shape = self.seconds.shape
        if len(shape) != 1 or any(a.shape != shape for a in (self.lower, self.upper, self.status)):
            raise ValueError("seconds, lower, upper and status must be one-dimensional and equally long")

    def __len__(self) -> int:
        return len(self.seconds)


@runtime_checkable
class Estimator(Protocol):
    """Gives absolute times. Analytical, learned, measured and recorded ones obey the same contract:
    one entry per kernel in order, seconds > 0 or NaN with the status that says why, no side effects,
    and an estimate that does not depend on the other kernels of the call.
    """

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        """Estimated seconds of one warm run of each kernel."""
        ...


@runtime_checkable
class Ranker(Protocol):
    """Orders the tiles of one kernel; its scores have no unit."""

    def rank(self, kernel: Kernel, tiles: Sequence[Tile]) -> np.ndarray:
        """(tile,) scores; lower is faster; comparable only within this call."""
        ...


def estimates_of(seconds: np.ndarray, status: np.ndarray | None = None) -> Estimates:
    """Estimates without intervals; status KNOWN, or UNKNOWN where seconds are NaN, unless given.

    >>> estimates_of(np.array([2e-6])).lower
    array([nan])
    """
    seconds = np.asarray(seconds, dtype=np.float64)
    if status is None:
        status = np.where(np.isnan(seconds), Status.UNKNOWN, Status.KNOWN).astype(np.int8)
    nothing = np.full(seconds.shape, np.nan)
    return Estimates(seconds=seconds, lower=nothing, upper=nothing, status=status)
