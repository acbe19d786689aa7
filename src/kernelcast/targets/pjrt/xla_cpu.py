"""The target XLA:CPU on one core of this machine: captures programs, times kernels and whole programs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Self

import numpy as np

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Failure, Reason, Timing
from kernelcast.errors import PlanError, TargetError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.space import FusionSpace, space_of
from kernelcast.hlo.format import format_program
from kernelcast.hlo.text import parse
from kernelcast.targets import client
from kernelcast.targets.chip import chip_name
from kernelcast.targets.lowering import lower
from kernelcast.targets.pjrt.device import Device, DeviceBoot
from kernelcast.targets.pjrt.kernel_timer import KernelTimer
from kernelcast.targets.pjrt.options import XlaCpuOptions as XlaCpuOptions
from kernelcast.targets.pjrt.options import usable_cpu
from kernelcast.targets.pjrt.program_inputs import program_inputs
from kernelcast.targets.pjrt.program_timer import Form, ProgramTimer
from kernelcast.targets.pjrt.time_programs import Capture
from kernelcast.targets.protocol import Candidate, DeviceBudget, ProgramTiming
from kernelcast.targets.worker import Worker

_log = logging.getLogger(__name__)

Choice = FusionPlan | Untouched | LibraryOff
_CAPTURE_LIMIT_S = 300.0


class XlaCpu:
    """XLA:CPU with one thread, in a worker process pinned to one CPU.

    Captures (``Fuses``), times kernels (``TimesKernels``), programs (``TimesPrograms``). A context manager:
    the worker ends with it. Not thread-safe; two targets on two CPUs may work at the same time.

    Attributes:
        cpu: the CPU that the worker is pinned to.
        options: as given.
    """

    def __init__(
        self,
        *,
        cpu: int | None = None,
        options: XlaCpuOptions | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            cpu: one that this process may use; None for the last of them.
            sleep: called for every wait between visits to a kernel.

        Raises:
            TargetError: where the operating system cannot pin processes, or not to this CPU.
        """
        self.options = options or XlaCpuOptions()
        self.cpu = usable_cpu(cpu)
        self._worker: Worker[Device] = Worker(
            DeviceBoot(floor_s=self.options.floor_s),
            cpu=self.cpu,
            memory_limit_bytes=self.options.memory_limit_bytes,
            environment=self.options.environment,
        )
        self._kernel_timer = KernelTimer(
            self._worker, self.options.kernels, statistic=self.options.label, sleep=sleep
        )
        self._captured: dict[str, _Captured] = {}
        self._program_timer: tuple[object, ProgramTimer] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the worker."""
        self._worker.close()

    @property
    def identity(self) -> TargetIdentity:
        """What times of this target have in common."""
        return TargetIdentity(
            kind="xla-cpu",
            chip=chip_name(),
            compiler=client.compiler_version(),
            flags=self.options.allocator,
            label=self.options.label,
        )

    @property
    def quiet_share(self) -> float:
        """Fraction of the sentinel's readings beside kernels that were quiet; NaN before the first."""
        return self._kernel_timer.quiet_share

    @property
    def worker(self) -> Worker[Device]:
        """The worker process, for probes of the machine."""
        return self._worker

    def space(self, source: object, *arguments: object, library: bool = True) -> FusionSpace:
        """The fusion space of a program as XLA:CPU compiles it for one thread.

        Args:
            source: as ``lower`` takes it.
            library: whether XLA may use its library for dots, convolutions and reductions.

        Raises:
            TargetError: XLA cannot compile the program.
        """
        lowering = lower(source, *arguments)
        if lowering.donated:
            _log.warning(
                "parameters %s are donated; they are copied here, since an imposed module loses donation",
                ", ".join(map(str, lowering.donated)),
            )
        space = space_of(parse(self.capture(lowering.stablehlo, library=library)))
        known = self._captured.get(space.digest)
        # A program that has no use for the library has the same space without it.
        if known is None or known.stablehlo != lowering.stablehlo:
            captured = _Captured(space=space, stablehlo=lowering.stablehlo, library=library)
            self._captured[space.digest] = captured
        return space

    def capture(self, stablehlo: str, *, library: bool = True) -> str:
        """The scheduled module that XLA:CPU makes of a program.

        Args:
            library: whether XLA may use its library for dots, convolutions and reductions.

        Raises:
            TargetError: XLA cannot compile the program.
        """
        answer = self._worker.ask(Capture(stablehlo=stablehlo, library=library), limit_s=_CAPTURE_LIMIT_S)
        if isinstance(answer, Failure):
            raise TargetError(f"XLA cannot compile the program: {answer}")
        return answer

    def time_kernels(
        self, candidates: Iterable[Candidate], *, budget: DeviceBudget | None = None
    ) -> Iterator[tuple[str, Timing | Failure]]:
        """(key, outcome) as they become final; candidates are drawn as they are needed.

        A candidate with a tile fails: this target has none.

        Args:
            budget: device seconds; when they are spent, no further batch is begun, and what was begun is
                finished.
        """
        if budget is None:
            yield from self._kernel_timer.time(candidates)
            return
        before_s = self._worker.busy_s
        for key, outcome in self._kernel_timer.time(takewhile(lambda _: budget.left_s > 0, candidates)):
            budget.spend(self._worker.busy_s - before_s)
            before_s = self._worker.busy_s
            yield key, outcome
        budget.spend(self._worker.busy_s - before_s)

    def time_programs(
        self,
        space: FusionSpace,
        plans: Sequence[Choice],
        *,
        budget: DeviceBudget | None = None,
        inputs: Mapping[int, np.ndarray] | None = None,
        gated_rounds: int | None = None,
    ) -> list[ProgramTiming]:
        """One entry per plan, in order, timed in the same rounds.

        The first ``Untouched`` is the default that outputs are compared with, the second the A/A control, a
        second compile of it; both are in the rounds even if ``plans`` lacks them. Plans slower than
        max(8 × default, 32 ms) get three rounds only.

        Args:
            space: captured by this target; plans may be of another space of the same program.
            budget: device seconds; when it is spent, what was not compiled fails and the rounds end.
            inputs: values by parameter number; missing ones are made up (seed 0).
            gated_rounds: quiet rounds wanted; None for the rule of the options.

        Raises:
            TargetError: the space is of another target, or the program fails as the compiler makes it.
        """
        timer, forms = self._forms(space, plans, inputs)
        budget = budget or DeviceBudget(limit_s=float("inf"))
        outcomes = timer.time(forms, budget, gated_rounds=gated_rounds)
        results = [_result(p, f, o) for p, f, o in zip(plans, forms, outcomes, strict=True)]
        timer.close([f for f in forms if f is not timer.default and f is not timer.control])
        return results

    def check_programs(
        self,
        space: FusionSpace,
        plans: Sequence[Choice],
        *,
        inputs: Mapping[int, np.ndarray] | None = None,
        verbatim: bool = True,
    ) -> list[PlanCheck]:
        """Whether each plan compiles to what was asked and computes what the default does; nothing is timed.

        Args:
            inputs: as ``time_programs`` takes them.
            verbatim: as ``apply`` takes it.
        """
        timer, forms = self._forms(space, plans, inputs, verbatim=verbatim)
        for form in forms:
            timer.compare(form, DeviceBudget(limit_s=float("inf")))
        checks = [
            PlanCheck(plan=p, failure=f.failure, output_error=f.output_error, final_text=f.final_text)
            for p, f in zip(plans, forms, strict=True)
        ]
        timer.close([f for f in forms if f is not timer.default and f is not timer.control])
        return checks

    def _forms(
        self,
        space: FusionSpace,
        plans: Sequence[Choice],
        inputs: Mapping[int, np.ndarray] | None,
        *,
        verbatim: bool = True,
    ) -> tuple[ProgramTimer, list[Form]]:
        timer = self._timer_of(space, inputs)
        untouched = iter((timer.default, timer.control))
        forms: list[Form] = []
        for plan in plans:
            match plan:
                case Untouched():
                    forms.append(next(untouched, Form()))
                case LibraryOff():
                    forms.append(Form(library=False))
                case FusionPlan():
                    forms.append(self._imposed(space, plan, verbatim=verbatim))
        return timer, forms

    def _timer_of(self, space: FusionSpace, inputs: Mapping[int, np.ndarray] | None) -> ProgramTimer:
        """The timer of a program on given inputs; the last one is kept, with its compiled default."""
        arrays = program_inputs(space, inputs or {})
        key = (space.digest, tuple((a.dtype.name, a.shape, hash(a.tobytes())) for a in arrays))
        if self._program_timer is not None:
            kept_key, timer = self._program_timer
            # Where a budget ended before the default was ready, the next one gives it another chance.
            if kept_key == key and timer.default.failure is None and timer.control.failure is None:
                return timer
            timer.close((timer.default, timer.control))
        timer = ProgramTimer(self._worker, self._captured_as(space).stablehlo, arrays, self.options.programs)
        self._program_timer = (key, timer)
        return timer

    def _captured_as(self, space: FusionSpace) -> _Captured:
        captured = self._captured.get(space.digest)
        if captured is None:
            raise TargetError(
                f"space {space.digest} was not captured by this target; make it with target.space(program)"
            )
        return captured

    def _imposed(self, space: FusionSpace, plan: FusionPlan, *, verbatim: bool) -> Form:
        """The form of a plan, which may be of the program's other space."""
        other = self._captured.get(plan.space)
        home = self._captured_as(space)
        if other is None or other.stablehlo != home.stablehlo:
            other = replace(home, space=space)  # whose check then says what is wrong with the plan
        try:
            text = format_program(apply(other.space, plan, verbatim=verbatim))
        except PlanError as error:
            return Form(failure=Failure(reason=Reason.UNSUPPORTED, message=str(error)))
        return Form(text=text, library=other.library)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Captured:
    """A space, the program that it is of, and whether the compiler could use its library."""

    space: FusionSpace
    stablehlo: str
    library: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """Whether a plan does what it should.

    Attributes:
        failure: what is wrong, or None.
        output_error: as in ``ProgramTiming``.
        final_text: the compiler's final module, empty where there is none.
    """

    plan: Choice
    failure: Failure | None
    output_error: float
    final_text: str


def _result(plan: Choice, form: Form, outcome: Timing | Failure) -> ProgramTiming:
    return ProgramTiming(
        plan=plan,
        outcome=outcome,
        output_error=form.output_error,
        temporary_bytes=form.temporary_bytes,
        final_text=form.final_text,
    )
