"""The model beside the machine: a program's kernels and its whole, predicted and measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Timing
from kernelcast.hlo.text import parse
from kernelcast.hlo.trips import TripCount
from kernelcast.jobs.comparison import Ratio, time_ratio
from kernelcast.jobs.programs.measure import ProgramMeasurement, measure_program
from kernelcast.jobs.programs.memory_factor import NO_FACTOR
from kernelcast.jobs.programs.overheads import TimesBoth, measure_overheads
from kernelcast.jobs.programs.predict import ProgramEstimate, predict_program
from kernelcast.jobs.programs.studied_program import StudiedProgram, captured
from kernelcast.jobs.programs.target_terms import TargetTerms
from kernelcast.metrics import kendall_tau
from kernelcast.targets.protocol import DeviceBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPair:
    """One distinct kernel, predicted and measured; NaN where there is no such time."""

    kernel: Kernel
    where: str
    times: TripCount
    predicted_s: float
    measured_s: float

    @property
    def total_s(self) -> float:
        """Seconds of all its runs, measured, or else predicted."""
        one_s = self.measured_s if math.isfinite(self.measured_s) else self.predicted_s
        return self.times.value * one_s if math.isfinite(one_s) else 0.0

    @property
    def error(self) -> float:
        """predicted / measured − 1."""
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """A program predicted and measured.

    Attributes:
        kernels: by the time that they take, the longest first.
    """

    program: str
    estimate: ProgramEstimate
    measurement: ProgramMeasurement
    kernels: tuple[KernelPair, ...]

    @property
    def error(self) -> float:
        """Predicted over measured time of the whole program, − 1."""
        return self.predicted_s / self.measurement.whole_s - 1

    @property
    def predicted_s(self) -> float:
        """Predicted time of the whole program, overheads of the machine included."""
        return self.estimate.seconds

    @property
    def control(self) -> Ratio | None:
        """A/A ratio of the program against itself: the noise."""
        own, again = self.measurement.default.outcome, self.measurement.control.outcome
        return time_ratio(again, own) if isinstance(own, Timing) and isinstance(again, Timing) else None

    @property
    def tau(self) -> float:
        """Kendall's τ-b of predicted against measured kernel times."""
        known = [k for k in self.kernels if math.isfinite(k.error)]
        return kendall_tau(np.array([k.predicted_s for k in known]), np.array([k.measured_s for k in known]))


def side_by_side(
    program: StudiedProgram,
    target: TimesBoth,
    estimator: Estimator,
    *,
    terms: TargetTerms | None = None,
    budget: DeviceBudget | None = None,
    seed: int = 0,
) -> SideBySide:
    """The default of a program, predicted and measured.

    Args:
        terms: of the target; without them overheads are measured first, and memory costs nothing.
        budget: as ``measure_program`` takes it.
        seed: of the inputs.

    Raises:
        TargetError: the program cannot be compiled.
    """
    space = captured(program, target)
    inputs = dict(enumerate(program.example_inputs(seed)))
    if terms is None:
        terms = TargetTerms(
            target=target.identity.digest, factor=NO_FACTOR, overheads=measure_overheads(target)
        )
    measurement = measure_program(space, target, overheads=terms.overheads, budget=budget, inputs=inputs)
    estimate = predict_program(
        parse(measurement.program.final_text),
        estimator,
        terms=terms,
        temporary_bytes=measurement.program.temporary_bytes,
    )
    predicted = {e.kernel: e.seconds for e in estimate.kernels}
    pairs = [
        KernelPair(
            kernel=k.kernel,
            where=k.where,
            times=k.times,
            predicted_s=predicted[k.kernel],
            measured_s=k.seconds,
        )
        for k in measurement.kernels
    ]
    return SideBySide(
        program=program.id,
        estimate=estimate,
        measurement=measurement,
        kernels=tuple(sorted(pairs, key=lambda pair: -pair.total_s)),
    )
