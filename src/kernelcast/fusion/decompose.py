"""A final module as calls of kernels and what surrounds them: the terms of the sum that predicts its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kernelcast.core.kernel import Kernel, Kind
from kernelcast.fusion.extract import kernel_of, launched
from kernelcast.hlo.attributes import loop_computations
from kernelcast.hlo.program import Program
from kernelcast.hlo.trips import ASSUMED_TRIPS, TripCount, execution_counts


class Site(StrEnum):
    """Where time goes that is no kernel's own."""

    LAUNCH = "launch"  # of one kernel
    COPY = "copy"  # launch of one that only moves data
    LOOP_ITERATION = "loop-iteration"  # a run of a loop body, with the check of its condition
    CONDITIONAL = "conditional"
    CALL = "call"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """A launched instruction.

    Attributes:
        kernel: what it computes.
        computation, instruction: where it stands.
        times: how often it runs in one run of the program.
    """

    kernel: Kernel
    computation: str
    instruction: str
    times: TripCount

    @property
    def where(self) -> str:
        """Computation and instruction, for tables and messages."""
        return f"{self.computation}/%{self.instruction}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """The kernels of a final module with their multiplicities, and its overhead sites.

    ``program seconds ≈ f(temporary memory) · Σ times · kernel seconds + Σ times · overhead``, fitted per
    target. Left out: kernels that run at the same time (with more than one thread, thunks without a
    dependency overlap), the state of the caches from one kernel to the next, page faults of large temporary
    buffers, and what the host does between two runs.

    Attributes:
        calls: every launched instruction, in order of the text.
        overheads: how often each kind of site is passed in one run.
    """

    calls: tuple[KernelCall, ...]
    overheads: Mapping[Site, TripCount]

    def counts(self) -> dict[Kernel, TripCount]:
        """How often each distinct kernel runs, in order of first call."""
        found: dict[Kernel, TripCount] = {}
        for call in self.calls:
            found[call.kernel] = found[call.kernel] + call.times if call.kernel in found else call.times
        return found


def decompose(program: Program, *, assumed: float = ASSUMED_TRIPS) -> Decomposition:
    """The kernels and overhead sites of a final module.

    Args:
        program: final and scheduled, e.g. what ``apply`` makes.
        assumed: runs of the body of a loop whose length is not known.

    >>> from kernelcast.hlo.text import parse
    >>> program = parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[4] parameter(0)  y = f32[4] negate(x)  ROOT z = f32[4] negate(y) }''')
    >>> [count.value for count in decompose(program).counts().values()]
    [2.0]
    """
    counts = execution_counts(program, assumed=assumed)
    calls = tuple(
        KernelCall(
            kernel=kernel_of(program, computation, instruction),
            computation=computation.name,
            instruction=instruction.name,
            times=counts[computation.name],
        )
        for computation, instruction in launched(program)
    )
    return Decomposition(calls=calls, overheads=_overheads(program, calls, counts))


def _overheads(
    program: Program, calls: tuple[KernelCall, ...], counts: Mapping[str, TripCount]
) -> dict[Site, TripCount]:
    found: dict[Site, TripCount] = {}

    def add(site: Site, times: TripCount) -> None:
        found[site] = found[site] + times if site in found else times

    for call in calls:
        add(Site.COPY if call.kernel.kind is Kind.COPY else Site.LAUNCH, call.times)
    for computation in program.scheduled_computations():
        here = counts[computation.name]
        for instruction in computation:
            match instruction.opcode:
                case "while":
                    body, _ = loop_computations(instruction)
                    # Counted for the body as a whole: two loops never share one in a compiled module.
                    add(Site.LOOP_ITERATION, counts[body])
                case "conditional":
                    add(Site.CONDITIONAL, here)
                case "call":
                    add(Site.CALL, here)
                case _:
                    pass
    return found
