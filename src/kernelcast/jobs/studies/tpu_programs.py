"""What of whole programs the TPU target can compile, simulate and impose plans on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelcast.core.timing import Failure
from kernelcast.errors import KernelcastError
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.sample import random_plan
from kernelcast.fusion.space import FusionSpace, default
from kernelcast.targets.tpu.compiled import CompiledKernel, CompiledProgram
from kernelcast.targets.tpu.schedule.simulate import SimulatedTime, simulate
from kernelcast.targets.tpu.xla_tpu import XlaTpu
from kernelcast.zoo import Variant

# What a program needs to count as simulated: a share of its kernels, and of its estimated cycles.
KERNEL_SHARE, CYCLE_SHARE = 0.95, 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuProgram:
    """What became of one program.

    Attributes:
        name: of the zoo.
        kernels: with a schedule of their own.
        windows: kernels that the compiler cuts.
        simulated: kernels with a simulated time.
        cycle_share: of the program's estimated cycles, what those kernels carry.
        unsimulated: why the others have no time, with how many.
        kept_whole: fusions that no plan takes apart.
        is_default_in_space: whether the default plan, imposed, gives the compiler's own kernels.
        tried: random plans compiled.
        failures: reasons of those that failed, with how many.
    """

    name: str
    kernels: int
    windows: int
    simulated: int
    cycle_share: float
    unsimulated: Mapping[str, int]
    kept_whole: int
    is_default_in_space: bool
    tried: int
    failures: Mapping[str, int]

    @property
    def is_simulated(self) -> bool:
        """Whether enough of it has a simulated time."""
        return self.simulated >= KERNEL_SHARE * self.kernels and self.cycle_share >= CYCLE_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuProgramsReport:
    """What became of all of them.

    Attributes:
        programs: those that compile.
        not_compiled: why the others do not.
    """

    programs: tuple[TpuProgram, ...]
    not_compiled: Mapping[str, str]

    def default_in_space(self, names: Sequence[str]) -> int:
        """Of how many of these programs the space holds the compiler's default."""
        return sum(p.is_default_in_space for p in self.programs if p.name in names)


def study_programs(
    variants: Sequence[Variant],
    target: XlaTpu,
    *,
    plans_each: int,
    seed: int,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> TpuProgramsReport:
    """Compiles each program, simulates its kernels, imposes its default and random plans.

    Args:
        plans_each: random plans of each program.
        progress: called with the name of a program that begins, how many are done, and how many there are.
    """
    found: list[TpuProgram] = []
    broken: dict[str, str] = {}
    for done, variant in enumerate(variants):
        progress(variant.id, done, len(variants))
        try:
            found.append(_study(variant, target, plans_each, random.Random(f"{seed} {variant.id}")))
        except KernelcastError as error:
            broken[variant.id] = str(error)
    return TpuProgramsReport(programs=tuple(found), not_compiled=broken)


def _study(variant: Variant, target: XlaTpu, plans_each: int, rng: random.Random) -> TpuProgram:
    function, arguments = variant.build()
    compiled = target.compile_program(function, *arguments)
    if isinstance(compiled, Failure):
        raise KernelcastError(str(compiled))
    space = target.space(function, *arguments)
    kernels = [kernel for _, kernel in compiled.kernels]
    times = _times(kernels, target)
    timed = [k for k, time in zip(kernels, times, strict=True) if isinstance(time, SimulatedTime)]
    outcomes = [target.compile_plan(space, plan) for plan in _plans(space, plans_each, rng)]
    return TpuProgram(
        name=variant.id,
        kernels=len(kernels),
        windows=sum(kernel.tile is not None for kernel in kernels),
        simulated=len(timed),
        cycle_share=_cycles(timed) / (_cycles(kernels) or 1),
        unsimulated=Counter(str(time)[:200] for time in times if isinstance(time, Failure)),
        kept_whole=len(space.kept_whole),
        is_default_in_space=_has_same_kernels(target.compile_plan(space, default(space)), compiled),
        tried=len(outcomes),
        failures=Counter(outcome.reason.value for outcome in outcomes if isinstance(outcome, Failure)),
    )


def _times(kernels: Sequence[CompiledKernel], target: XlaTpu) -> list[SimulatedTime | Failure]:
    """Simulated times, in order; a schedule that several kernels share is simulated once."""
    known: dict[str, SimulatedTime | Failure] = {}
    for kernel in kernels:
        if kernel.listing not in known:
            known[kernel.listing] = simulate(kernel.listing, target.chip)
    return [known[kernel.listing] for kernel in kernels]


def _plans(space: FusionSpace, count: int, rng: random.Random) -> Iterator[FusionPlan]:
    for _ in range(count):
        yield random_plan(space, rng)


def _cycles(kernels: Sequence[CompiledKernel]) -> int:
    return sum(kernel.estimated_cycles or 0 for kernel in kernels)


def _has_same_kernels(imposed: CompiledProgram | Failure, untouched: CompiledProgram) -> bool:
    """Whether both have the same kernels with the same windows, as often."""
    if isinstance(imposed, Failure):
        return False
    counts = [Counter((k.kernel, k.tile) for _, k in made.kernels) for made in (imposed, untouched)]
    return counts[0] == counts[1]
