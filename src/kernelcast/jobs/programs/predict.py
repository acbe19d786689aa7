"""Predicts the time of a program and of each of its kernels, with no device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.core.estimate import Estimator, Status
from kernelcast.core.kernel import Kernel
from kernelcast.errors import KernelcastError
from kernelcast.fusion.decompose import Decomposition, decompose
from kernelcast.hlo.program import Program
from kernelcast.hlo.trips import TripCount
from kernelcast.jobs.programs.overheads import overhead_seconds
from kernelcast.jobs.programs.target_terms import TargetTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEstimate:
    """One distinct kernel of a program.

    Attributes:
        kernel: what runs.
        where: computation and instruction of its first call.
        times: how often it runs in one run of the program, over all its calls.
        seconds: of one run; NaN where the status says that there is none.
        status: how far the estimate may be trusted.
    """

    kernel: Kernel
    where: str
    times: TripCount
    seconds: float
    status: Status

    @property
    def total_s(self) -> float:
        """Seconds of all its runs."""
        return self.times.value * self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEstimate:
    """The predicted time of a program.

    Attributes:
        kernels: distinct kernels, in order of first call.
        factor: of the plan's temporary memory; 1 where the target's terms are not known.
        overhead_s: of the call, launches and loop iterations; 0 where the target's terms are not known.
    """

    kernels: tuple[KernelEstimate, ...]
    factor: float = 1.0
    overhead_s: float = 0.0

    @property
    def seconds(self) -> float:
        """factor · Σ times · kernel seconds + overheads; NaN where a kernel has no estimate."""
        return self.factor * sum(k.total_s for k in self.kernels) + self.overhead_s

    @property
    def missing(self) -> tuple[KernelEstimate, ...]:
        """Kernels without an estimate."""
        return tuple(k for k in self.kernels if math.isnan(k.seconds))

    @property
    def extrapolated_share(self) -> float:
        """Fraction of the predicted time that rests on extrapolated estimates."""
        total_s = sum(k.total_s for k in self.kernels)
        beyond_s = sum(k.total_s for k in self.kernels if k.status is Status.EXTRAPOLATED)
        return beyond_s / total_s if total_s else 0.0


def predict_program(
    program: Program,
    estimator: Estimator,
    *,
    terms: TargetTerms | None = None,
    temporary_bytes: float = 0.0,
) -> ProgramEstimate:
    """The predicted time of a final, scheduled module.

    Args:
        program: whose launched instructions are its kernels, such as a compiled executable's text gives.
        estimator: of kernel times.
        terms: of the target: factor of temporary memory and overheads; kernels alone for None.
        temporary_bytes: that the module needs; 0 where it is not known.

    Raises:
        KernelcastError: the module launches no kernel.
    """
    decomposition = decompose(program)
    counts = decomposition.counts()
    if not counts:
        raise KernelcastError(
            "the program launches no kernel, so there is nothing to predict; give a compiled, final module"
        )
    places = _first_places(decomposition)
    kernels: Sequence[Kernel] = list(counts)
    estimates = estimator.estimate(kernels)
    return ProgramEstimate(
        kernels=tuple(
            KernelEstimate(
                kernel=kernel,
                where=places[kernel],
                times=counts[kernel],
                seconds=float(estimates.seconds[number]),
                status=Status(int(estimates.status[number])),
            )
            for number, kernel in enumerate(kernels)
        ),
        factor=terms.factor(temporary_bytes) if terms else 1.0,
        overhead_s=overhead_seconds(program, terms.overheads).total_s if terms else 0.0,
    )


def _first_places(decomposition: Decomposition) -> dict[Kernel, str]:
    places: dict[Kernel, str] = {}
    for call in decomposition.calls:
        places.setdefault(call.kernel, call.where)
    return places
