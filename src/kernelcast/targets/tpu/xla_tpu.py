"""The target XLA:TPU ahead of time: compiles programs and kernels for a chip that is not here."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Self

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile, TileSet
from kernelcast.core.timing import Failure, Reason
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.text import parse
from kernelcast.targets.pjrt.options import usable_cpu
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.chip import chip
from kernelcast.targets.tpu.compiler import Compiled, CompileKernel, TpuBoot, TpuCompiler
from kernelcast.targets.tpu.dump_folder import new_dump_folder
from kernelcast.targets.tpu.isolation import ROOT, isolated
from kernelcast.targets.tpu.windows import tile_of, tiles_of
from kernelcast.targets.worker import Worker

_GIBIBYTE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaTpuOptions:
    """How compiles are bounded.

    Attributes:
        kernel_limit_s: for one kernel.
        program_limit_s: for a whole program.
        memory_limit_bytes: of the worker.
    """

    kernel_limit_s: float = 60.0
    program_limit_s: float = 300.0
    memory_limit_bytes: int = 8 * _GIBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """One kernel, compiled alone.

    Attributes:
        kernel: as given.
        listing: its final schedule, as libtpu prints it.
        tile: the window that it has; None where the compiler cuts nothing.
        iteration_bounds: how often its loops go round, major → minor.
        estimated_cycles: the compiler's estimate; None where it is missing, as for forced windows.
    """

    kernel: Kernel
    listing: str
    tile: Tile | None
    iteration_bounds: tuple[int, ...]
    estimated_cycles: int | None


class XlaTpu:
    """XLA:TPU ahead of time, in a worker process pinned to one CPU.

    Lists the tiles of a kernel (``Tiles``). A context manager: the worker ends with it. Not thread-safe; two
    targets on two CPUs may work at the same time.

    Attributes:
        chip: what is compiled for.
        options: as given.
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
        self._dump_folder = new_dump_folder()
        self._worker: Worker[TpuCompiler] = Worker(
            TpuBoot(topology=self.chip.topology, dump_folder=self._dump_folder),
            cpu=usable_cpu(cpu),
            memory_limit_bytes=self.options.memory_limit_bytes,
            environment=libtpu.environment(self._dump_folder),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the worker and removes its dumps."""
        self._worker.close()
        shutil.rmtree(self._dump_folder, ignore_errors=True)  # gone already where it was closed before

    def compile_kernel(self, kernel: Kernel, tile: Tile | None = None) -> CompiledKernel | Failure:
        """One kernel compiled alone, or why it cannot be.

        Args:
            tile: a window from ``valid_tiles``, others may hang libtpu until the time limit; None for the
                compiler's choice.
        """
        answer = self._compile(kernel, tile)
        if isinstance(answer, Failure):
            return answer
        compiled, root = answer
        config = libtpu.read_window_config(root.attribute("backend_config"))
        window = None if config is None else tile_of(config)
        if tile is not None and window != tile:
            return Failure(
                reason=Reason.NOT_AS_ASKED, message=f"the window {tile} was asked for, {window} came out"
            )
        return CompiledKernel(
            kernel=kernel,
            listing=compiled.listings[root.name],
            tile=window,
            iteration_bounds=() if config is None else config.iteration_bounds,
            estimated_cycles=None if config is None else config.estimated_cycles,
        )

    def valid_tiles(self, kernel: Kernel) -> TileSet | Failure:
        """All windows that the compiler considers for a kernel, with its own estimates."""
        answer = self._compile(kernel, None, with_windows=True)
        if isinstance(answer, Failure):
            return answer
        compiled, root = answer
        config = libtpu.read_window_config(root.attribute("backend_config"))
        default = None if config is None else tile_of(config)
        return tiles_of(compiled.windows, default, is_complete=compiled.is_log_complete)

    def _compile(
        self, kernel: Kernel, tile: Tile | None, *, with_windows: bool = False
    ) -> tuple[Compiled, Instruction] | Failure:
        made = isolated(kernel, tile)
        request = CompileKernel(carrier=made.carrier, module=made.module, with_windows=with_windows)
        answer = self._worker.ask(request, limit_s=self.options.kernel_limit_s)
        if isinstance(answer, Failure):
            return answer
        entry = parse(answer.final).entry_computation
        if ROOT not in entry or ROOT not in answer.listings:
            return Failure(
                reason=Reason.NOT_AS_ASKED,
                message=f"no schedule of %{ROOT} came out, but those of "
                f"{', '.join(f'%{name}' for name in answer.listings) or 'nothing'}",
            )
        return answer, entry[ROOT]
