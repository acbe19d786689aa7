"""Measures a program whole and kernel by kernel, so that the two can be laid side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Failure, Timing
from kernelcast.errors import TargetError
from kernelcast.fusion.decompose import Decomposition, decompose
from kernelcast.fusion.plan import Untouched
from kernelcast.fusion.space import FusionSpace
from kernelcast.hlo.text import parse
from kernelcast.hlo.trips import TripCount
from kernelcast.jobs.as_json import Choice
from kernelcast.jobs.comparison import whole_seconds
from kernelcast.jobs.programs.overheads import (
    Overheads,
    OverheadSeconds,
    TimesBoth,
    measure_overheads,
    overhead_seconds,
)
from kernelcast.targets.protocol import Candidate, DeviceBudget, ProgramTiming

# A sum is given only where the timed kernels touch at least this share of the bytes that all kernels touch.
COVERED = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMeasurement:
    """One distinct kernel of a program.

    Attributes:
        kernel: what runs.
        where: computation and instruction of its first call.
        times: how often it runs in one run of the program, over all its calls.
        outcome: raw samples, or why there are none.
        seconds: of one run, by the target's label; NaN where there is none.
    """

    kernel: Kernel
    where: str
    times: TripCount
    outcome: Timing | Failure
    seconds: float

    @property
    def total_s(self) -> float:
        """Seconds of all its runs."""
        return self.times.value * self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMeasurement:
    """A program under one plan.

    Attributes:
        program: the whole program's samples, memory and final module.
        default, control: two compiles of the compiler's own form (A/A): how far they lie apart is noise.
        kernels: distinct kernels, in order of first call.
        overheads: what a run spends beside its kernels.
    """

    program: ProgramTiming
    default: ProgramTiming
    control: ProgramTiming
    kernels: tuple[KernelMeasurement, ...]
    overheads: OverheadSeconds

    @property
    def whole_s(self) -> float:
        """Seconds of one run of the program; NaN where it failed."""
        outcome = self.program.outcome
        return whole_seconds(outcome) if isinstance(outcome, Timing) else math.nan

    @property
    def coverage(self) -> float:
        """Fraction of the bytes that all kernels touch in one run that timed kernels touch."""
        weights = [k.times.value * k.kernel.footprint_bytes for k in self.kernels]
        timed = sum(w for w, k in zip(weights, self.kernels, strict=True) if math.isfinite(k.seconds))
        return timed / sum(weights) if sum(weights) else 1.0

    @property
    def missing(self) -> tuple[KernelMeasurement, ...]:
        """Kernels without a time."""
        return tuple(k for k in self.kernels if math.isnan(k.seconds))

    @property
    def sum_s(self) -> float:
        """Σ times · kernel seconds + overheads; NaN unless kernels with 99 % of the bytes have a time."""
        if self.coverage < COVERED:
            return math.nan
        return math.fsum(k.total_s for k in self.kernels if math.isfinite(k.seconds)) + self.overheads.total_s


def measure_program(
    space: FusionSpace,
    target: TimesBoth,
    *,
    overheads: Overheads | None = None,
    plan: Choice | None = None,
    budget: DeviceBudget | None = None,
    inputs: Mapping[int, np.ndarray] | None = None,
) -> ProgramMeasurement:
    """The whole time of a program under a plan, and the time of each of its kernels.

    Args:
        space: captured by the target.
        overheads: of the target; None measures them first, which takes some seconds.
        plan: None for the compiler's own default.
        budget: of the whole program's rounds.
        inputs: values by parameter number; missing ones are made up.

    Raises:
        TargetError: the program under this plan cannot be compiled.
    """
    chosen = Untouched() if plan is None else plan
    own, control, *rest = target.time_programs(
        space,
        [Untouched(), Untouched()] if plan is None else [Untouched(), Untouched(), chosen],
        budget=budget,
        inputs=inputs,
    )
    whole = rest[0] if rest else own
    if not whole.final_text:
        raise TargetError(f"the program under this plan was not compiled: {whole.outcome}")
    program = parse(whole.final_text)
    return ProgramMeasurement(
        program=whole,
        default=own,
        control=control,
        kernels=_measured(decompose(program), target),
        overheads=overhead_seconds(program, overheads or measure_overheads(target)),
    )


def _measured(decomposition: Decomposition, target: TimesBoth) -> tuple[KernelMeasurement, ...]:
    counts = decomposition.counts()
    places: dict[Kernel, str] = {}
    for call in decomposition.calls:
        places.setdefault(call.kernel, call.where)
    outcomes = dict(target.time_kernels(Candidate(key=k.fingerprint, kernel=k) for k in counts))
    label = target.identity.label
    return tuple(
        KernelMeasurement(
            kernel=kernel,
            where=places[kernel],
            times=times,
            outcome=(outcome := outcomes[kernel.fingerprint]),
            seconds=outcome.seconds(label) if isinstance(outcome, Timing) else math.nan,
        )
        for kernel, times in counts.items()
    )
