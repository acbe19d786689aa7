"""Compiles forms of one program on a worker, checks what they compute, and times them in turn.

Every form is held with what it needs to be made again: a crash of the worker loses the executables of all.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.errors import TargetError
from kernelcast.targets.pjrt.device import Device, remember_floor
from kernelcast.targets.pjrt.time_kernels import Drop
from kernelcast.targets.pjrt.time_programs import (
    CompareOutputs,
    CompileProgram,
    LoadInputs,
    RoundsResult,
    TimeRounds,
)
from kernelcast.targets.protocol import DeviceBudget
from kernelcast.targets.sentinel import against_own_quiet
from kernelcast.targets.worker import Request, Worker

_log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

METHOD = "whole-program"
# A request that outlives the budget by this is cut off.
_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRule:
    """How forms of a program are timed.

    Attributes:
        gated_rounds: quiet rounds wanted of every form that is not slow.
        rounds: at most.
        rounds_per_request: after so many the budget and the quiet rounds are looked at.
        wait_s: seconds to wait for quiet before each sample, at most.
        compile_limit_s: seconds after which a compile is given up.
        run_limit_s: seconds after which a run and its comparison are given up.
        request_limit_s: seconds of rounds in one request.
        seed: of the order of the forms within a round.
    """

    gated_rounds: int = 12
    rounds: int = 60
    rounds_per_request: int = 6
    wait_s: float = 0.02
    compile_limit_s: float = 120.0
    run_limit_s: float = 60.0
    request_limit_s: float = 60.0
    seed: int = 0


@dataclass(slots=True, kw_only=True)
class Form:
    """One form of a program.

    Attributes:
        library: whether the compiler may use its library.
        text: the scheduled module to impose, or None for the compiler's own.
        failure: why it cannot be timed.
        output_error: against the reference; NaN until compared.
        final_text, temporary_bytes: of its executable.
    """

    library: bool = True
    text: str | None = None
    failure: Failure | None = None
    output_error: float = float("nan")
    final_text: str = ""
    temporary_bytes: int = 0
    handle: int = 0
    generation: int = -1


class ProgramTimer:
    """Times forms of one program, always on the same inputs and beside two compiles of the default.

    Attributes:
        default: the compiler's own form; the reference of outputs and of what is slow.
        control: a second compile of it: how far its times lie from the default's is the noise (A/A).
    """

    def __init__(
        self, worker: Worker[Device], stablehlo: str, inputs: Sequence[np.ndarray], rule: ProgramRule
    ) -> None:
        self.default = Form()
        self.control = Form()
        self._worker = worker
        self._stablehlo = stablehlo
        self._rule = rule
        self._inputs = tuple(inputs)
        self._inputs_handle = 0
        self._inputs_generation = -1

    def compare(self, form: Form, budget: DeviceBudget) -> None:
        """Compiles a form and compares its outputs with the default's; notes what fails in the form.

        Raises:
            TargetError: the default itself cannot be compiled or run.
        """
        if form.failure is None:
            form.failure = self._made(form, budget)
        if form.failure is not None or not math.isnan(form.output_error):
            return
        # In this order: where the default is to blame for a crash, the form is made once more.
        form.failure = self._default_made(budget) or self._made(form, budget)
        if form.failure is not None:
            return
        request = CompareOutputs(
            reference=self.default.handle, program=form.handle, inputs=self._inputs_handle
        )
        answer = self._ask(request, self._rule.run_limit_s, budget)
        if isinstance(answer, Failure):
            form.failure = answer
        else:
            form.output_error = answer

    def time(
        self, forms: Sequence[Form], budget: DeviceBudget, *, gated_rounds: int | None = None
    ) -> list[Timing | Failure]:
        """An outcome per form; those that failed are left out of the rounds.

        Args:
            gated_rounds: quiet rounds wanted, in place of the rule's; the limit of all rounds goes with it.
        """
        wanted = gated_rounds or self._rule.gated_rounds
        limit = math.ceil(self._rule.rounds * wanted / self._rule.gated_rounds)
        for form in (self.default, self.control, *forms):
            self.compare(form, budget)
        if self.default.failure is not None:
            return [form.failure or self.default.failure for form in forms]
        live = _distinct([f for f in (self.default, self.control, *forms) if f.failure is None])
        samples: list[list[tuple[float, Sample]]] = [[] for _ in live]
        rounds = 0
        while rounds < limit and _fewest_quiet_rounds(samples) < wanted:
            result = self._rounds(live, rounds, limit, budget)
            if isinstance(result, Failure):
                _log.warning("timing ended after %d rounds: %s", rounds, result)
                break
            remember_floor(self._worker, result.floor_s)
            for kept, taken in zip(samples, result.samples, strict=True):
                kept.extend((result.floor_s, sample) for sample in taken)
            rounds += result.rounds
            if result.rounds == 0:
                break
        timings = {id(form): _timing(taken) for form, taken in zip(live, samples, strict=True)}
        return [form.failure or timings[id(form)] for form in forms]

    def close(self, forms: Sequence[Form]) -> None:
        """Frees the executables of forms."""
        handles = tuple(f.handle for f in forms if f.generation == self._worker.generation)
        if handles:
            self._worker.ask(Drop(handles=handles), limit_s=self._rule.run_limit_s)

    def _rounds(
        self, live: Sequence[Form], first: int, limit: int, budget: DeviceBudget
    ) -> RoundsResult | Failure:
        # A crash on the way loses what was made before; all must be of one child.
        while True:
            for failure in (self._default_made(budget), *(self._made(form, budget) for form in live)):
                if failure is not None:
                    return failure
            if all(form.generation == self._worker.generation for form in live):
                break
        request = TimeRounds(
            programs=tuple(form.handle for form in live),
            inputs=self._inputs_handle,
            first_round=first,
            rounds=min(self._rule.rounds_per_request, limit - first),
            wait_s=self._rule.wait_s,
            limit_s=min(self._rule.request_limit_s, budget.left_s),
            seed=self._rule.seed,
        )
        # One round more than the limit may be under way, and each form runs twice before the first.
        return self._ask(request, 2 * self._rule.request_limit_s + self._rule.run_limit_s, budget)

    def _default_made(self, budget: DeviceBudget) -> Failure | None:
        """Sees to it that the default and the inputs are in the present child.

        Raises:
            TargetError: the program itself cannot be compiled, or its inputs not loaded.
        """
        failure = self._made(self.default, budget)
        if failure is None and self._inputs_generation != self._worker.generation:
            answer = self._ask(LoadInputs(arrays=self._inputs), self._rule.run_limit_s, budget)
            if isinstance(answer, Failure):
                failure = answer
            else:
                self._inputs_handle, self._inputs_generation = answer, self._worker.generation
        if failure is not None and budget.left_s > 0:
            raise TargetError(f"the program fails as the compiler itself makes it: {failure}")
        return failure

    def _made(self, form: Form, budget: DeviceBudget) -> Failure | None:
        """Sees to it that a form is compiled in the present child."""
        if form.generation == self._worker.generation:
            return None
        request = CompileProgram(stablehlo=self._stablehlo, library=form.library, text=form.text)
        answer = self._ask(request, self._rule.compile_limit_s, budget)
        if isinstance(answer, Failure):
            return answer
        form.handle, form.generation = answer.handle, self._worker.generation
        form.final_text, form.temporary_bytes = answer.final_text, answer.temporary_bytes
        return None

    def _ask(
        self, request: Request[Device, Answer], limit_s: float, budget: DeviceBudget
    ) -> Answer | Failure:
        if budget.left_s <= 0:
            message = f"the budget of {budget.limit_s:g} device seconds is spent"
            return Failure(reason=Reason.TIMEOUT, message=message)
        before = self._worker.busy_s
        try:
            return self._worker.ask(request, limit_s=min(limit_s, budget.left_s + _GRACE_S))
        finally:
            budget.spend(self._worker.busy_s - before)


def _fewest_quiet_rounds(samples: Sequence[Sequence[tuple[float, Sample]]]) -> int:
    """Of any form that was not dropped for being slow."""
    most = max(len(taken) for taken in samples)
    return min(sum(s.gated for s in _comparable(taken)) for taken in samples if len(taken) == most)


def _distinct(forms: Sequence[Form]) -> list[Form]:
    """Each form once: callers may list the default and the control among theirs."""
    return list({id(form): form for form in forms}.values())


def _timing(taken: Sequence[tuple[float, Sample]]) -> Timing | Failure:
    if not taken:
        return Failure(reason=Reason.TIMEOUT, message="there was no time for a single round")
    return Timing(samples=_comparable(taken), clock=Clock.WALL, method=METHOD)


def _comparable(taken: Sequence[tuple[float, Sample]]) -> tuple[Sample, ...]:
    """Samples with their loudness against the lowest floor: an early round may not have known it."""
    lowest_s = min((floor_s for floor_s, _ in taken), default=0.0)
    return against_own_quiet(replace(s, loudness=s.loudness * floor_s / lowest_s) for floor_s, s in taken)
