"""The analytical baseline: a roofline mapped to time by one coefficient per kind of kernel.

The paper scales its analytical model by a coefficient per kernel type, found on the default plans of the test
programs (section 6.1). We fit it there and, as the fairer comparison, on the training programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kernelcast.core.analytical import Peaks, roofline_seconds
from kernelcast.core.estimate import Estimates, estimates_of
from kernelcast.core.kernel import Kernel, Kind
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.features.schema import KERNELCAST_1

_NODE = KERNELCAST_1.node_index
_KERNEL = KERNELCAST_1.kernel_index
_KINDS = tuple(Kind)
_FIRST_KIND = _KERNEL[f"kind_{_KINDS[0].value}"]


class Fitting(StrEnum):
    """How a coefficient is made of the kernels of one kind."""

    TOTALS = "totals"  # Σ measured / Σ analytical, as in the paper: long kernels decide
    MEDIAN = "median"  # of measured / analytical: every kernel counts the same, so the MAPE is lower


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """What an analytical model's numbers are multiplied by to be seconds.

    Attributes:
        by_kind: of the kinds that were fitted.
        pooled: of all kernels together, for other kinds.
    """

    by_kind: Mapping[Kind, float]
    pooled: float

    def seconds(self, graphs: Sequence[KernelGraph], analytical: np.ndarray) -> np.ndarray:
        """(kernel,) seconds of (kernel,) analytical costs; NaN stays NaN."""
        return analytical * np.array([self.by_kind.get(kind_of_graph(g), self.pooled) for g in graphs])


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """Coefficient(kind) × roofline seconds; implements ``Estimator``.

    Attributes:
        peaks: of the machine.
        coefficients: by kind.
    """

    peaks: Peaks
    coefficients: Coefficients

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        """Estimated seconds of one warm run of each kernel."""
        return self.estimate_graphs(Featuriser().graphs(kernels))

    def estimate_graphs(self, graphs: Sequence[KernelGraph]) -> Estimates:
        """The same for kernels that are graphs already."""
        return estimates_of(self.coefficients.seconds(graphs, analytical_seconds(graphs, self.peaks)))


def fit_roofline(
    graphs: Sequence[KernelGraph], seconds: np.ndarray, peaks: Peaks, fitting: Fitting
) -> Roofline:
    """The roofline with coefficients fitted on measured kernels.

    Raises:
        ValueError: no kernel to fit on.
    """
    analytical = analytical_seconds(graphs, peaks)
    return Roofline(peaks=peaks, coefficients=fit_coefficients(graphs, analytical, seconds, fitting))


def fit_coefficients(
    graphs: Sequence[KernelGraph], analytical: np.ndarray, seconds: np.ndarray, fitting: Fitting
) -> Coefficients:
    """Coefficients of any analytical model, fitted on measured kernels.

    Args:
        graphs: of the kernels; only their kinds are read.
        analytical: (kernel,) cost by the model, > 0, in any unit.
        seconds: (kernel,) measured.

    Raises:
        ValueError: no kernel to fit on.
    """
    if not graphs:
        raise ValueError("an analytical model is fitted on at least one kernel, got none")
    kinds = np.array([kind_of_graph(g) for g in graphs])
    return Coefficients(
        by_kind={
            kind: _coefficient(seconds[kinds == kind], analytical[kinds == kind], fitting)
            for kind in _KINDS
            if (kinds == kind).any()
        },
        pooled=_coefficient(seconds, analytical, fitting),
    )


def analytical_seconds(graphs: Sequence[KernelGraph], peaks: Peaks) -> np.ndarray:
    """(kernel,) roofline seconds: every instruction once, inputs as far as they are read, outputs written."""
    seconds = np.zeros(len(graphs), dtype=np.float64)
    for number, graph in enumerate(graphs):
        elements = graph.rows[:, _NODE["extent_product"]].astype(np.float64)
        flops = float(elements @ graph.rows[:, _NODE["operations_per_element"]])
        moved = float(graph.kernel[_KERNEL["bytes_touched"]])
        # A kernel that moves nothing still writes something: one element keeps the estimate positive.
        seconds[number] = roofline_seconds(flops, max(moved, 1.0), peaks)
    return seconds


def kind_of_graph(graph: KernelGraph) -> Kind:
    """The kind of a kernel, read back from its features."""
    return _KINDS[int(graph.kernel[_FIRST_KIND : _FIRST_KIND + len(_KINDS)].argmax())]


def _coefficient(measured: np.ndarray, analytical: np.ndarray, fitting: Fitting) -> float:
    if fitting is Fitting.TOTALS:
        return float(measured.sum() / analytical.sum())
    return float(np.median(measured / analytical))
