"""A program, an estimator and a target that need no compiler: a plan takes the sum of its kernels' prices."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelcast.core.estimate import Estimates, estimates_of
from kernelcast.core.identity import TargetIdentity
from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.fusion.apply import apply
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.space import FusionSpace, default, space_of
from kernelcast.hlo.format import format_program
from kernelcast.hlo.text import parse
from kernelcast.jobs.programs.overheads import Overheads
from kernelcast.targets.pjrt.xla_cpu import PlanCheck
from kernelcast.targets.protocol import Candidate, DeviceBudget, ProgramTiming

# The compiler fused the exponential with the multiplication and left the rest apart: not the best plan.
MODULE = """HloModule chain, is_scheduled=true, entry_computation_layout={(f32[64,64]{1,0}, f32[64,64]{1,0})->f32[64,64]{1,0}}

%fused (a: f32[64,64], b: f32[64,64]) -> f32[64,64] {
  %a = f32[64,64]{1,0} parameter(0)
  %b = f32[64,64]{1,0} parameter(1)
  %exponential = f32[64,64]{1,0} exponential(%a)
  ROOT %multiply = f32[64,64]{1,0} multiply(%exponential, %b)
}

%wrapped_add (c: f32[64,64], d: f32[64,64]) -> f32[64,64] {
  %c = f32[64,64]{1,0} parameter(0)
  %d = f32[64,64]{1,0} parameter(1)
  ROOT %add = f32[64,64]{1,0} add(%c, %d)
}

%wrapped_tanh (e: f32[64,64]) -> f32[64,64] {
  %e = f32[64,64]{1,0} parameter(0)
  ROOT %tanh = f32[64,64]{1,0} tanh(%e)
}

ENTRY %main (x: f32[64,64], y: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64]{1,0} parameter(0)
  %y = f32[64,64]{1,0} parameter(1)
  %fusion = f32[64,64]{1,0} fusion(%x, %y), kind=kLoop, calls=%fused
  %add.1 = f32[64,64]{1,0} fusion(%fusion, %y), kind=kLoop, calls=%wrapped_add
  ROOT %tanh.1 = f32[64,64]{1,0} fusion(%add.1), kind=kLoop, calls=%wrapped_tanh
}
"""  # noqa: E501  as the compiler prints it

_OWN_TEXT = format_program(parse(MODULE))
IDENTITY = TargetIdentity(kind="fake", chip="none", compiler="none 1")
LAUNCH_S = 10e-6


def chain_space() -> FusionSpace:
    return space_of(parse(MODULE))


def price_s(kernel: Kernel) -> float:
    """Ten microseconds a launch and one an instruction: fusing all is best."""
    return LAUNCH_S + 1e-6 * kernel.program.instruction_count


NO_OVERHEADS = Overheads(call_s=0.0, sequential_launch_s=0.0, dataflow_launch_s=0.0, iteration_s=0.0)


class ChainProgram:
    """The chain as a program that studies take."""

    def __init__(self, name: str = "chain/1") -> None:
        self.id = name

    def build(self) -> tuple[object, tuple[Any, ...]]:
        shape = jax.ShapeDtypeStruct((64, 64), "float32")
        return (lambda x, y: jnp.tanh(jnp.exp(x) * y + y)), (shape, shape)

    def example_inputs(self, seed: int) -> list[np.ndarray]:
        return [np.full((64, 64), seed, np.float32)] * 2


class PriceEstimator:
    """Knows the prices; counts what it is asked."""

    def __init__(self, unknown: Callable[[Kernel], bool] = lambda kernel: False) -> None:
        self.asked = 0
        self._unknown = unknown

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        self.asked += len(kernels)
        return estimates_of(np.array([np.nan if self._unknown(k) else price_s(k) for k in kernels]))


class PriceTarget:
    """Times plans by their prices, with seeded noise; some choices may be made to fail or to be slower.

    Attributes:
        calls: the choices of each call of ``time_programs``.
        kernels: keys of the kernels that were timed alone.
    """

    def __init__(
        self,
        *,
        noise: float = 0.0,
        factor: Callable[[FusionPlan | Untouched | LibraryOff], float] = lambda choice: 1.0,
        compile_s: float = 0.5,
        kernel_s: float = 0.0,
        rounds: int = 24,
        library_off: str | None = None,
    ) -> None:
        self.calls: list[list[FusionPlan | Untouched | LibraryOff]] = []
        self.kernels: list[str] = []
        self._noise, self._factor, self._compile_s, self._rounds = noise, factor, compile_s, rounds
        self._kernel_s, self._library_off = kernel_s, library_off
        self._rng = random.Random(0)

    @property
    def identity(self) -> TargetIdentity:
        return IDENTITY

    def space(self, source: object, *arguments: object, library: bool = True) -> FusionSpace:
        return chain_space() if library or self._library_off is None else space_of(parse(self._library_off))

    def time_programs(
        self,
        space: FusionSpace,
        plans: Sequence[FusionPlan | Untouched | LibraryOff],
        *,
        budget: DeviceBudget | None = None,
        inputs: Mapping[int, np.ndarray] | None = None,
        gated_rounds: int | None = None,
    ) -> list[ProgramTiming]:
        self.calls.append(list(plans))
        found: list[ProgramTiming] = []
        for choice in plans:
            if budget is not None and budget.left_s <= 0:
                outcome: Timing | Failure = Failure(reason=Reason.TIMEOUT, message="the budget is spent")
            else:
                outcome = self._outcome(space, choice)
                if budget is not None:
                    budget.spend(self._compile_s)
            home = self._home(space, choice)
            text = format_program(apply(home, choice)) if isinstance(choice, FusionPlan) else _OWN_TEXT
            found.append(
                ProgramTiming(
                    plan=choice, outcome=outcome, output_error=0.0, temporary_bytes=0, final_text=text
                )
            )
        return found

    def time_kernels(
        self, candidates: Iterable[Candidate], *, budget: DeviceBudget | None = None
    ) -> Iterator[tuple[str, Timing | Failure]]:
        for candidate in candidates:
            if budget is not None and budget.left_s <= 0:
                return
            if budget is not None:
                budget.spend(self._kernel_s)
            self.kernels.append(candidate.key)
            yield candidate.key, self._timing(price_s(candidate.kernel))

    def check_programs(
        self,
        space: FusionSpace,
        plans: Sequence[FusionPlan | Untouched | LibraryOff],
        *,
        inputs: Mapping[int, np.ndarray] | None = None,
        verbatim: bool = True,
    ) -> list[PlanCheck]:
        found: list[PlanCheck] = []
        for choice in plans:
            text = _OWN_TEXT
            if isinstance(choice, FusionPlan):
                text = format_program(apply(space, choice, verbatim=verbatim))
            is_wrong = self._factor(choice) != self._factor(choice)
            failure = Failure(reason=Reason.WRONG_RESULT, message="output 0 differs") if is_wrong else None
            found.append(PlanCheck(plan=choice, failure=failure, output_error=0.0, final_text=text))
        return found

    def _outcome(self, space: FusionSpace, choice: FusionPlan | Untouched | LibraryOff) -> Timing | Failure:
        factor = self._factor(choice)
        if factor != factor:
            return Failure(reason=Reason.WRONG_RESULT, message="output 0 differs")
        home = self._home(space, choice)
        plan = choice if isinstance(choice, FusionPlan) else default(space)
        return self._timing(factor * sum(price_s(home.kernel(group)) for group in home.groups(plan)))

    def _home(self, space: FusionSpace, choice: FusionPlan | Untouched | LibraryOff) -> FusionSpace:
        if isinstance(choice, FusionPlan) and choice.space != space.digest:
            return self.space(None, library=False)
        return space

    def _timing(self, seconds: float) -> Timing:
        return Timing(
            samples=tuple(
                Sample(
                    runs=1,
                    seconds=seconds * (1 + self._noise * self._rng.gauss(0, 1)),
                    loudness=1.0,
                    round=r,
                )
                for r in range(self._rounds)
            ),
            clock=Clock.WALL,
            method="whole-program",
        )
