"""What a program's time holds beside its kernels' own: the call, launches, loop iterations.

A kernel's label is taken in a loop of its own, where a launch is as cheap as it gets. XLA:CPU runs the thunks
of a computation one after the other where it has few of them or all their buffers are small; otherwise it
keeps count of what each thunk waits for, which costs several times a tiny kernel. Measured with 26,066
launches of kernels of 128 elements against 256: 12 and 37 ns a launch beyond the label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import jax

from kernelcast.core.timing import Timing
from kernelcast.errors import TargetError
from kernelcast.fusion.decompose import decompose
from kernelcast.fusion.plan import Untouched
from kernelcast.hlo.attributes import loop_computations
from kernelcast.hlo.opcodes import NOT_LAUNCHED
from kernelcast.hlo.program import Computation, Program
from kernelcast.hlo.text import parse
from kernelcast.hlo.trips import execution_counts
from kernelcast.jobs.comparison import whole_seconds
from kernelcast.jobs.tuning_target import TuningTarget
from kernelcast.targets.protocol import Candidate, TimesKernels

# ThunkExecutor's own thresholds (jaxlib 0.10): up to so many thunks, or with no larger buffer, in sequence.
_SEQUENTIAL_THUNKS = 8
_SEQUENTIAL_BUFFER_BYTES = 512
_CONTROL_FLOW = frozenset({"while", "conditional", "call"})


class TimesBoth(TuningTarget, TimesKernels, Protocol):
    """A target that times whole programs and kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Seconds beside the kernels' own, of one target.

    Attributes:
        call_s: of one call of a compiled program from the host.
        sequential_launch_s: of a launch, beyond the label, in a computation whose thunks run in sequence.
        dataflow_launch_s: the same where each thunk waits for its own inputs.
        iteration_s: of a loop iteration.
    """

    call_s: float
    sequential_launch_s: float
    dataflow_launch_s: float
    iteration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadSeconds:
    """The overheads of one run of a program."""

    call_s: float
    launches_s: float
    iterations_s: float

    @property
    def total_s(self) -> float:
        return self.call_s + self.launches_s + self.iterations_s


def overhead_seconds(program: Program, overheads: Overheads) -> OverheadSeconds:
    """What a final module spends beside its kernels' own times."""
    counts = execution_counts(program)
    launches_s = iterations_s = 0.0
    for computation in program.scheduled_computations():
        times = counts[computation.name].value
        each_s = overheads.dataflow_launch_s if _is_dataflow(computation) else overheads.sequential_launch_s
        launches_s += times * each_s * sum(i.opcode not in NOT_LAUNCHED for i in computation)
        for instruction in computation:
            if instruction.opcode == "while":
                body, _ = loop_computations(instruction)
                iterations_s += counts[body].value * overheads.iteration_s
    return OverheadSeconds(call_s=overheads.call_s, launches_s=launches_s, iterations_s=iterations_s)


def measure_overheads(target: TimesBoth) -> Overheads:
    """The overheads of a target, from three small programs; takes some seconds.

    Raises:
        TargetError: the machine is too loud to time them.
    """
    call = _Excess(target, lambda x: x[0] + 1.0, values=1, elements=1)
    sequential = _Excess(target, _chain, values=64, elements=1)
    dataflow = _Excess(target, _chain, values=16, elements=256)
    return Overheads(
        call_s=max(0.0, call.seconds),
        sequential_launch_s=max(0.0, (sequential.seconds - call.seconds) / sequential.launches),
        dataflow_launch_s=max(0.0, (dataflow.seconds - call.seconds) / dataflow.launches),
        iteration_s=sequential.iteration_s,
    )


class _Excess:
    """How much longer a program takes than its kernels.

    Attributes:
        seconds: whole program minus kernels and loop iterations.
        launches: of kernels in one run.
        iteration_s: of an empty loop iteration.
    """

    def __init__(
        self, target: TimesBoth, function: Callable[..., object], *, values: int, elements: int
    ) -> None:
        shape = jax.ShapeDtypeStruct((elements,) if elements > 1 else (), "float32")
        space = target.space(function, [shape] * values)
        timed = target.time_programs(space, [Untouched()])[0]
        program = parse(timed.final_text)
        counts = decompose(program).counts()
        outcomes = dict(target.time_kernels(Candidate(key=k.fingerprint, kernel=k) for k in counts))
        label = target.identity.label
        seconds = {k: o.seconds(label) for k, o in outcomes.items() if isinstance(o, Timing)}
        if not isinstance(timed.outcome, Timing) or not seconds:
            raise TargetError(
                f"a program that calibrates overheads could not be timed ({timed.outcome}); "
                "run 'kernelcast doctor'"
            )
        overheads = [o.overhead_s for o in outcomes.values() if isinstance(o, Timing)]
        self.iteration_s = sorted(overheads)[len(overheads) // 2]
        self.launches = sum(times.value for times in counts.values())
        # A kernel too short for a slope takes no time worth the mention.
        kernels_s = sum(times.value * seconds.get(k.fingerprint, 0.0) for k, times in counts.items())
        loops = Overheads(
            call_s=0.0, sequential_launch_s=0.0, dataflow_launch_s=0.0, iteration_s=self.iteration_s
        )
        self.seconds = (
            whole_seconds(timed.outcome) - kernels_s - overhead_seconds(program, loops).iterations_s
        )


def _chain(values: list[jax.Array]) -> list[jax.Array]:
    """Many tiny kernels: each value from itself and its neighbour, 200 times over."""

    def step(_: object, values: list[jax.Array]) -> list[jax.Array]:
        return [value * 0.5 + values[(n + 1) % len(values)] for n, value in enumerate(values)]

    return jax.lax.fori_loop(0, 200, step, values)


def _is_dataflow(computation: Computation) -> bool:
    thunks = [i for i in computation if i.opcode not in NOT_LAUNCHED or i.opcode in _CONTROL_FLOW]
    if len(thunks) <= _SEQUENTIAL_THUNKS:
        return False
    names = {name for thunk in thunks for name in (thunk.name, *thunk.operands)}
    leaves = (leaf for name in names for leaf in computation[name].shape.leaves())
    return any(leaf.byte_size > _SEQUENTIAL_BUFFER_BYTES for leaf in leaves)
