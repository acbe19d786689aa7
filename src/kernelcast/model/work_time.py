"""A fitted time of bytes and operations, from which models may learn the rest (not in the paper).

The time of a kernel is roughly so many seconds a byte, an operation and a launch. What a network has to learn
beside that is a factor near one, which carries over to sizes that training did not hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.features.graph import KernelGraph
from kernelcast.features.schema import KERNELCAST_1

TERMS = ("bytes_in", "bytes_out", "operations", "dot_operations", "convolution_operations")
_COLUMNS = [KERNELCAST_1.kernel_index[name] for name in TERMS]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTime:
    """Seconds as a sum of terms.

    Attributes:
        seconds_per: of one unit of each of ``TERMS``, then of one launch; none is negative.
        least_s: what no kernel takes less than: the shortest training kernel.
    """

    seconds_per: tuple[float, ...]
    least_s: float

    def log_seconds(self, graphs: Sequence[KernelGraph]) -> np.ndarray:
        """(kernel,) logarithm of the fitted seconds."""
        return np.log(np.maximum(_work(graphs) @ np.array(self.seconds_per), self.least_s))


def fit_work_time(graphs: Sequence[KernelGraph], seconds: np.ndarray) -> WorkTime:
    """The work time with the least squared relative error on measured kernels.

    Non-negative least squares, exactly: its solution is the plain one on the terms that are not zero, so all
    sets of terms are tried.

    Raises:
        ValueError: no kernel to fit on.
    """
    if not graphs:
        raise ValueError("a work time is fitted on at least one kernel, got none")
    relative = _work(graphs) / seconds[:, None]
    # The terms differ by twelve decades; of a column of ones' size the solver keeps its digits.
    size = np.maximum(np.abs(relative).max(axis=0), 1e-300)
    scaled = relative / size
    best, least_error = np.zeros(len(size)), float(len(graphs))
    for count in range(1, len(size) + 1):
        for chosen in itertools.combinations(range(len(size)), count):
            found = np.linalg.lstsq(scaled[:, chosen], np.ones(len(graphs)), rcond=None)[0]
            error = float(((scaled[:, chosen] @ found - 1) ** 2).sum())
            if (found >= 0).all() and error < least_error:
                best, least_error = np.zeros(len(size)), error
                best[list(chosen)] = found
    return WorkTime(seconds_per=tuple((best / size).tolist()), least_s=float(seconds.min()))


def _work(graphs: Sequence[KernelGraph]) -> np.ndarray:
    """(kernel, term) float64, the last term one launch."""
    terms = np.stack([graph.kernel[_COLUMNS] for graph in graphs]).astype(np.float64)
    return np.concatenate([terms, np.ones((len(graphs), 1))], axis=1)
