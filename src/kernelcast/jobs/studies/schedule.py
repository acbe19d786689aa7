"""Simulated times against published runs of one core of a real TPU v3: how far they can be trusted.

Reported twice: with as many buffers as the schedules have, which is what ``simulate`` gives, and narrowed to
the two that the measured runs behave as if they had (``targets.tpu.schedule.pipeline``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast import metrics
from kernelcast.jobs.studies.schedule_fit import fit, replayed_s
from kernelcast.jobs.studies.schedule_runs import KernelRuns, Run
from kernelcast.targets.tpu.schedule.constants import CLOCKS, ENGINES, MEASURED_BUFFERS
from kernelcast.targets.tpu.schedule.engine import EngineConstants

# Of fewer runs a τ says little; these kernels have a τ and no part in the mean.
LEAST_RUNS = 10
# Tiles that a tuner would choose among.
NEAR_BEST = 2.0
# The split of the fit: loops against products and the softmax around them.
LOOPS = frozenset({"copy.25", "fusion.181", "fusion.232", "fusion.250"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAgreement:
    """How well some estimate agrees with the measured runs of one kernel.

    Attributes:
        name: the publisher's. runs: that have an estimate.
        has_windows, is_convolution: see ``KernelRuns``.
        tau: Kendall's τ-b over all runs. tau_near_best: over those within ``NEAR_BEST`` of the best; NaN of
            fewer than two.
        mape: percent. ratio: median of estimate over measured.
    """

    name: str
    runs: int
    has_windows: bool
    is_convolution: bool
    tau: float
    tau_near_best: float
    mape: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """An estimate against all measured kernels."""

    kernels: tuple[KernelAgreement, ...]

    @property
    def tau_mean(self) -> float:
        """Over the kernels with at least ``LEAST_RUNS`` runs."""
        return _mean(k.tau for k in self.kernels if k.runs >= LEAST_RUNS)

    @property
    def tau_near_best_mean(self) -> float:
        """The same among the tiles near the best."""
        return _mean(k.tau_near_best for k in self.kernels if k.runs >= LEAST_RUNS)

    @property
    def mape_mean(self) -> float:
        """Mean of the kernels' MAPEs, those with windows."""
        return _mean(k.mape for k in self.kernels if k.has_windows)

    @property
    def convolution(self) -> KernelAgreement | None:
        """The kernel that nothing was fitted on."""
        return next((k for k in self.kernels if k.is_convolution), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReport:
    """The study.

    Attributes:
        narrowed: with ``MEASURED_BUFFERS`` buffers and the shipped constants.
        as_scheduled: the same constants, as many buffers as scheduled: what ``simulate`` gives.
        analytical: the compiler's own cycles, divided by the one factor that suits them best: they are not
            meant as cycles of a clock.
        fitted: the constants fitted anew on these runs. refitted: the agreement with them.
        left_out: each kernel under constants that were fitted on the others.
        fitted_on_loops, fitted_on_products: the two ways of fitting on one half; each holds the other half.
        problems: runs without an estimate, by kernel.
    """

    narrowed: Agreement
    as_scheduled: Agreement
    analytical: Agreement
    fitted: EngineConstants
    refitted: Agreement
    left_out: Agreement
    fitted_on_loops: Agreement
    fitted_on_products: Agreement
    problems: dict[str, tuple[str, ...]]


def judge_schedules(
    kernels: Sequence[KernelRuns],
    *,
    chip: str = "tpu_v3",
    progress: Callable[[str], None] = lambda stage: None,
) -> ScheduleReport:
    """The report on the scheduled runs.

    Args:
        progress: gets what is done next.
    """
    hertz = CLOCKS[chip].hertz

    def simulated(engine: EngineConstants, buffers: int | None) -> Callable[[Run], float]:
        return lambda run: replayed_s(run, engine, buffers=buffers, hertz=hertz)

    def fitted_on(chosen: Sequence[KernelRuns]) -> EngineConstants:
        return fit(chosen, hertz=hertz, buffers=MEASURED_BUFFERS)

    def others(names: Iterable[str]) -> list[KernelRuns]:
        return [kernel for kernel in kernels if kernel.name not in set(names)]

    shipped = ENGINES[chip]
    progress("simulating")
    narrowed = agreement(kernels, simulated(shipped, MEASURED_BUFFERS))
    as_scheduled = agreement(kernels, simulated(shipped, None))
    progress("fitting")
    fitted = fitted_on(kernels)
    left_out: list[KernelAgreement] = []
    for kernel in kernels:
        progress(f"fitting without {kernel.name}")
        is_used = kernel.has_windows and not kernel.is_convolution
        engine = fitted_on(others({kernel.name})) if is_used else fitted
        left_out.extend(agreement([kernel], simulated(engine, MEASURED_BUFFERS)).kernels)
    progress("fitting on halves")
    products = {kernel.name for kernel in kernels} - LOOPS
    by_loops, by_products = fitted_on(others(products)), fitted_on(others(LOOPS))
    used = [kernel for kernel in kernels if kernel.has_windows and not kernel.is_convolution]
    return ScheduleReport(
        narrowed=narrowed,
        as_scheduled=as_scheduled,
        analytical=_analytical(kernels, hertz),
        fitted=fitted,
        refitted=agreement(kernels, simulated(fitted, MEASURED_BUFFERS)),
        left_out=Agreement(kernels=tuple(left_out)),
        fitted_on_loops=agreement(
            [k for k in used if k.name not in LOOPS], simulated(by_loops, MEASURED_BUFFERS)
        ),
        fitted_on_products=agreement(
            [k for k in used if k.name in LOOPS], simulated(by_products, MEASURED_BUFFERS)
        ),
        problems={kernel.name: kernel.problems for kernel in kernels if kernel.problems},
    )


def agreement(kernels: Sequence[KernelRuns], estimate: Callable[[Run], float]) -> Agreement:
    """How well estimates of seconds agree; runs with NaN are left out, kernels with nothing too."""
    found = [row for kernel in kernels if (row := _kernel_agreement(kernel, estimate)) is not None]
    return Agreement(kernels=tuple(found))


def _analytical(kernels: Sequence[KernelRuns], hertz: float) -> Agreement:
    """The compiler's cycles, scaled by the median over kernels of their median ratio."""

    def seconds(scale: float) -> Callable[[Run], float]:
        return lambda run: (run.analytical_cycles or math.nan) / hertz / scale

    ratios = [kernel.ratio for kernel in agreement(kernels, seconds(1.0)).kernels if kernel.has_windows]
    return agreement(kernels, seconds(float(np.median(ratios)) if ratios else 1.0))


def _kernel_agreement(kernel: KernelRuns, estimate: Callable[[Run], float]) -> KernelAgreement | None:
    pairs = [(estimate(run), run.measured_s) for run in kernel.runs]
    known = np.array([pair for pair in pairs if not math.isnan(pair[0])], dtype=np.float64)
    if not known.size:
        return None
    estimated, measured = known[:, 0], known[:, 1]
    near = measured <= NEAR_BEST * measured.min()
    return KernelAgreement(
        name=kernel.name,
        runs=len(known),
        has_windows=kernel.has_windows,
        is_convolution=kernel.is_convolution,
        tau=metrics.kendall_tau(estimated, measured),
        tau_near_best=metrics.kendall_tau(estimated[near], measured[near]),
        mape=metrics.mape(estimated, measured),
        ratio=float(np.median(estimated / measured)),
    )


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan
