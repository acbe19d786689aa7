"""The target XLA:TPU ahead of time: compiles programs and kernels for a chip that is not here."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Self

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile, TileSet
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.errors import TargetError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.rules_tpu import XLA_TPU
from kernelcast.fusion.space import FusionSpace, space_of
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.text import parse
from kernelcast.targets.lowering import lower
from kernelcast.targets.pjrt.options import usable_cpu
from kernelcast.targets.protocol import Candidate
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.chip import TpuChip, chip
from kernelcast.targets.tpu.compiled import (
    CompiledKernel,
    CompiledProgram,
    compiled_kernel,
    compiled_program,
)
from kernelcast.targets.tpu.compiler import Compiled, CompileKernel, CompileProgram, TpuBoot, TpuCompiler
from kernelcast.targets.tpu.dump_folder import new_dump_folder
from kernelcast.targets.tpu.imposed import difference
from kernelcast.targets.tpu.isolation import ROOT, isolated
from kernelcast.targets.tpu.schedule.constants import ENGINES
from kernelcast.targets.tpu.schedule.simulate import SimulatedTime
from kernelcast.targets.tpu.windows import tile_of, tiles_of
from kernelcast.targets.worker import Worker

# Tiles of one kernel are compiled one after the other; a convolution has thousands.
_REMEMBERED_KERNELS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaTpuOptions:
    """How compiles are bounded.

    Attributes:
        kernel_limit_s: for one kernel; listing the tiles of a large convolution takes ten seconds.
        program_limit_s: for a whole program; train steps with convolutions take up to a minute.
        memory_limit_bytes: of the worker.
    """

    kernel_limit_s: float = 60.0
    program_limit_s: float = 300.0
    memory_limit_bytes: int = 8 << 30


class XlaTpu:
    """XLA:TPU ahead of time, in a worker process pinned to one CPU.

    Opens fusion spaces (``Fuses``), lists the tiles of a kernel (``Tiles``) and simulates times of kernels
    (``TimesKernels``). A context manager: the worker ends with it. Not thread-safe; two targets on two CPUs
    may work at the same time.

    Attributes:
        chip: what is compiled for.
        options: as given.
        dump_folder: of the worker, empty between requests of its own; gone when closed.
    """

    def __init__(
        self, name: str = "tpu_v3", *, cpu: int | None = None, options: XlaTpuOptions | None = None
    ) -> None:
        """
        Args:
            name: of the chip, ``tpu_v3`` and others.
            cpu: one that this process may use; None for the last of them.

        Raises:
            MissingExtraError: libtpu is not installed.
            TargetError: there is no such chip, or processes cannot be pinned to this CPU.
        """
        self.chip = chip(name)
        libtpu.require(f"the target {name}")
        self.options = options or XlaTpuOptions()
        self.dump_folder = new_dump_folder()
        self._stablehlo: dict[str, str] = {}  # by space
        self._listed: dict[str, frozenset[Tile]] = {}
        self._worker: Worker[TpuCompiler] = Worker(
            TpuBoot(topology=self.chip.topology, dump_folder=self.dump_folder),
            cpu=usable_cpu(cpu),
            memory_limit_bytes=self.options.memory_limit_bytes,
            environment=libtpu.environment(self.dump_folder),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the worker and removes its dumps."""
        self._worker.close()
        shutil.rmtree(self.dump_folder, ignore_errors=True)  # gone already where it was closed before

    @property
    def identity(self) -> TargetIdentity:
        """What simulated times of this target have in common."""
        engine = ENGINES.get(self.chip.name)
        return TargetIdentity(
            kind="xla-tpu-aot",
            chip=self.chip.name,
            compiler=f"libtpu {libtpu.installed_version()}",
            flags=tuple(f"{k}={v}" for k, v in asdict(engine).items()) if engine is not None else (),
            clock=Clock.SIMULATED,
        )

    @property
    def worker(self) -> Worker[TpuCompiler]:
        """The worker process, for requests of other parts of this target."""
        return self._worker

    def compile_program(self, source: object, *arguments: object) -> CompiledProgram | Failure:
        """A program as the compiler makes it by itself, or why it cannot.

        Args:
            source: as ``lower`` takes it; a function is lowered for TPUs.

        Raises:
            KernelcastError: the source holds no program.
        """
        stablehlo = lower(source, *arguments, platform="tpu").stablehlo
        answer = self._worker.ask(CompileProgram(stablehlo=stablehlo), limit_s=self.options.program_limit_s)
        if isinstance(answer, Failure):
            return answer
        return compiled_program(parse(answer.final), answer.listings)

    def space(self, source: object, *arguments: object) -> FusionSpace:
        """The fusion space of a program as the compiler fuses it for this chip.

        Args:
            source: as ``compile_program`` takes it.

        Raises:
            TargetError: the compiler cannot compile the program.
            KernelcastError: the source holds no program.
        """
        stablehlo = lower(source, *arguments, platform="tpu").stablehlo
        request = CompileProgram(stablehlo=stablehlo, capture_only=True)
        answer = self._worker.ask(request, limit_s=self.options.program_limit_s)
        if isinstance(answer, Failure):
            raise TargetError(f"XLA:TPU cannot compile the program: {answer}")
        space = space_of(parse(answer.captured), XLA_TPU)
        self._stablehlo[space.digest] = stablehlo
        return space

    def compile_plan(self, space: FusionSpace, plan: FusionPlan) -> CompiledProgram | Failure:
        """A program under a fusion plan, or why it cannot be compiled so.

        Args:
            space: captured by this target.

        Returns:
            A failure NOT_AS_ASKED where the final module has not the fusions of the plan.

        Raises:
            PlanError: the plan is of another space, or illegal.
            TargetError: the space is of another target.
        """
        stablehlo = self._stablehlo.get(space.digest)
        if stablehlo is None:
            raise TargetError(
                f"space {space.digest} was not captured by this target; make it with target.space(program)"
            )
        asked = apply(space, plan)
        request = CompileProgram(stablehlo=stablehlo, replacement=format_program(asked))
        answer = self._worker.ask(request, limit_s=self.options.program_limit_s)
        if isinstance(answer, Failure):
            return answer
        final = parse(answer.final)
        wrong = difference(asked, final)
        if wrong:
            return Failure(reason=Reason.NOT_AS_ASKED, message=wrong)
        return compiled_program(final, answer.listings)

    def compile_kernel(
        self, kernel: Kernel, tile: Tile | None = None, *, is_timed: bool = False
    ) -> CompiledKernel | Failure:
        """One kernel compiled alone, or why it cannot be.

        Args:
            tile: one of ``valid_tiles``; None for the compiler's choice. Where its tiles have not been listed
                yet, they are, since libtpu takes any window and may hang on it or make wrong code.
            is_timed: simulate it in the worker; the listing stays there.
        """
        if tile is not None:
            refused = self._refused(kernel, tile)
            if refused is not None:
                return refused
        answer = self._compile(kernel, tile, time_on=self.chip if is_timed else None)
        if isinstance(answer, Failure):
            return answer
        compiled, name, root = answer
        config = libtpu.read_window_config(root.attribute("backend_config"))
        found = compiled_kernel(kernel, compiled.listings[name], config)
        if tile is not None and found.tile != tile:
            return Failure(
                reason=Reason.NOT_AS_ASKED, message=f"the window {tile} was asked for, {found.tile} came out"
            )
        return replace(found, time=compiled.times.get(name))

    def time_kernels(self, candidates: Iterable[Candidate]) -> Iterator[tuple[str, Timing | Failure]]:
        """(key, outcome) of each candidate in order: one *simulated* time, or why there is none."""
        for candidate in candidates:
            found = self.compile_kernel(candidate.kernel, candidate.tile, is_timed=True)
            time = found if isinstance(found, Failure) else found.time
            assert time is not None
            yield candidate.key, time if isinstance(time, Failure) else _timing(time)

    def valid_tiles(self, kernel: Kernel) -> TileSet | Failure:
        """All windows that the compiler considers for a kernel, with its own estimates."""
        answer = self._compile(kernel, None, with_windows=True)
        if isinstance(answer, Failure):
            return answer
        compiled, _, root = answer
        config = libtpu.read_window_config(root.attribute("backend_config"))
        default = None if config is None else tile_of(config)
        listed = tiles_of(compiled.windows, default, is_complete=compiled.is_log_complete)
        while len(self._listed) >= _REMEMBERED_KERNELS:
            self._listed.pop(next(iter(self._listed)))
        self._listed[kernel.fingerprint] = frozenset(listed.tiles)
        return listed

    def _refused(self, kernel: Kernel, tile: Tile) -> Failure | None:
        if kernel.fingerprint not in self._listed:
            listed = self.valid_tiles(kernel)
            if isinstance(listed, Failure):
                return listed
        valid = self._listed[kernel.fingerprint]
        if tile in valid:
            return None
        message = f"{tile.text} is none of the {len(valid)} valid tiles of this kernel; list them first"
        return Failure(reason=Reason.UNSUPPORTED, message=message)

    def _compile(
        self,
        kernel: Kernel,
        tile: Tile | None,
        *,
        with_windows: bool = False,
        time_on: TpuChip | None = None,
    ) -> tuple[Compiled, str, Instruction] | Failure:
        """What came of a compile, and the kernel's name and instruction in it."""
        made = isolated(kernel, tile)
        request = CompileKernel(
            carrier=made.carrier, module=made.module, with_windows=with_windows, time_on=time_on
        )
        answer = self._worker.ask(request, limit_s=self.options.kernel_limit_s)
        if isinstance(answer, Failure):
            return answer
        # Copies may stand beside it where it works in place. A custom fusion takes another name.
        names = [ROOT] if ROOT in answer.listings else list(answer.listings)
        entry = parse(answer.final).entry_computation
        if len(names) != 1 or names[0] not in entry:
            return Failure(
                reason=Reason.UNSUPPORTED,
                message="expected the schedule of one kernel, got "
                f"{', '.join(f'%{name}' for name in names) or 'none: scalars belong to no kernel'}",
            )
        return answer, names[0], entry[names[0]]


def _timing(time: SimulatedTime) -> Timing:
    sample = Sample(runs=1, seconds=time.seconds, loudness=float("nan"), round=0)
    return Timing(samples=(sample,), clock=time.clock, method="final-schedule")
