"""What a target can do: an identity, and small capabilities that are each optional."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from kernelcast.core.identity import TargetIdentity as TargetIdentity
from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile, TileSet
from kernelcast.core.timing import Failure, Timing
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.space import FusionSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One thing to time: a kernel, with a tile or none. ``key`` comes back with the result."""

    key: str
    kernel: Kernel
    tile: Tile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTiming:
    """The outcome of one plan on one program.

    Attributes:
        plan: a plan, or the compiler's own default, or the default with library fusions off.
        outcome: samples of whole calls, or why there are none.
        output_error: largest error of any output against the untouched program, as a fraction of that
            output's largest magnitude; NaN where nothing ran.
        temporary_bytes: what the executable allocates besides inputs and outputs.
        final_text: the compiler's final module, as it ran.
    """

    plan: FusionPlan | Untouched | LibraryOff
    outcome: Timing | Failure
    output_error: float = float("nan")
    temporary_bytes: int = 0
    final_text: str = ""


@dataclass(slots=True)
class DeviceBudget:
    """Counts device seconds: wall seconds in which workers compile and run candidates and defaults,
    waiting for quiet included. The model's own seconds are not counted here.
    """

    limit_s: float
    spent_s: float = field(default=0.0)

    @property
    def left_s(self) -> float:
        return max(0.0, self.limit_s - self.spent_s)

    def spend(self, seconds: float) -> None:
        self.spent_s += seconds


@runtime_checkable
class Fuses(Protocol):
    """Captures a program as this target compiles it, and opens the space of its fusion plans."""

    def space(self, source: object, *arguments: object, library: bool = True) -> FusionSpace:
        """The fusion space of a program as captured by this target's compiler.

        Args:
            library: whether the compiler may use its library; without it, generated loops stand in its
                place, and the space is another one wherever the library had a part.
        """
        ...


@runtime_checkable
class TimesKernels(Protocol):
    """Times kernels, each alone."""

    def time_kernels(
        self, candidates: Iterable[Candidate], *, budget: DeviceBudget | None = None
    ) -> Iterator[tuple[str, Timing | Failure]]:
        """(key, outcome) as they become final; a crash costs one candidate.

        Args:
            budget: device seconds; when they are spent, what was not begun is left out.
        """
        ...


@runtime_checkable
class TimesPrograms(Protocol):
    """Times one program under several plans, interleaved, outputs compared with the untouched program."""

    def time_programs(
        self,
        space: FusionSpace,
        plans: Sequence[FusionPlan | Untouched | LibraryOff],
        *,
        budget: DeviceBudget | None = None,
        inputs: Mapping[int, np.ndarray] | None = None,
        gated_rounds: int | None = None,
    ) -> list[ProgramTiming]:
        """One entry per plan, in order; an A/A control of the default is always among the rounds.

        Args:
            space: of the program, captured by this target. Plans may be of its other space too, with or
                without the library, once that was captured.
            gated_rounds: quiet rounds wanted, in place of the target's own rule.
        """
        ...


@runtime_checkable
class Tiles(Protocol):
    """Lists the tiles that its compiler may cut a kernel with."""

    def valid_tiles(self, kernel: Kernel) -> TileSet | Failure:
        """All valid tiles with the compiler's own estimates; a crash is a failure."""
        ...
