"""Kernels measured on a real TPU, compiled again with the same windows, and what their schedules do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile, TileSet
from kernelcast.core.timing import Failure, Timing
from kernelcast.data.tpugraphs.op_tuning import OpTuning, read_op_tuning
from kernelcast.data.tpugraphs.tuning import TileSizes
from kernelcast.errors import SchemaError
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.jobs.studies.journal import Journal
from kernelcast.targets.tpu.chip import TpuChip
from kernelcast.targets.tpu.schedule.constants import CLOCKS
from kernelcast.targets.tpu.schedule.execute import trace_of
from kernelcast.targets.tpu.schedule.packed import pack, unpack
from kernelcast.targets.tpu.schedule.trace import Event

_log = logging.getLogger(__name__)


class Compiled(Protocol):
    """A compiled kernel with the listing of its final schedule."""

    @property
    def listing(self) -> str: ...


class SchedulesKernels(Protocol):
    """A target that compiles kernels ahead of time and lists their windows."""

    @property
    def chip(self) -> TpuChip: ...

    def compile_kernel(self, kernel: Kernel, tile: Tile | None = None) -> Compiled | Failure: ...

    def valid_tiles(self, kernel: Kernel) -> TileSet | Failure: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One window of a kernel, measured on a chip and scheduled here.

    Attributes:
        measured_s: published.
        events: of the schedule.
        analytical_cycles: the compiler's own estimate; None where it has none for this window.
    """

    measured_s: float
    events: tuple[Event, ...]
    analytical_cycles: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRuns:
    """All runs of a kernel.

    Attributes:
        name: the publisher's. has_windows: whether it was run with windows at all.
        is_convolution: whether it is one over space, which nothing is fitted on.
        runs: those that were measured and scheduled.
        problems: why others are missing.
    """

    name: str
    has_windows: bool
    is_convolution: bool
    runs: tuple[Run, ...]
    problems: tuple[str, ...]


def scheduled_runs(
    folder: Path,
    target: SchedulesKernels,
    *,
    journal: Path,
    compiler: str,
    progress: Callable[[str, int, int], None] = lambda kernel, done, total: None,
) -> tuple[KernelRuns, ...]:
    """The kernels of a folder; what the journal holds is not compiled again.

    Args:
        folder: of ``<kernel>.json`` and ``<kernel>.hlo``.
        compiler: names its version; schedules of another do not count.
        progress: gets the kernel, and how many of how many runs are done.

    Raises:
        SchemaError: no kernel in the folder, or one that cannot be read.
    """
    tunings = [read_op_tuning(path) for path in sorted(folder.glob("*.json"))]
    if not tunings:
        raise SchemaError(f"{folder} holds no <kernel>.json with its <kernel>.hlo; name TpuGraphs' op_tuning")
    header = {"study": "schedule", "schema": 1, "chip": target.chip.name, "compiler": compiler}
    total, before = sum(len(tuning.runs) for tuning in tunings), 0
    found: list[KernelRuns] = []
    with Journal(journal, header) as log:
        known = {(entry["kernel"], entry["tile"]): entry for entry in log.entries}
        for tuning in tunings:
            for done, entry in enumerate(_scheduled(tuning, target, known)):
                progress(tuning.name, before + done, total)
                if (tuning.name, entry["tile"]) not in known:
                    known[tuning.name, entry["tile"]] = entry
                    log.append(entry)
            before += len(tuning.runs)
            found.append(_runs(tuning, known))
    return tuple(found)


def _scheduled(
    tuning: OpTuning, target: SchedulesKernels, known: Mapping[tuple[str, str], Any]
) -> Iterator[dict[str, Any]]:
    """An entry for each window of a kernel that the journal lacks."""
    kernel: Kernel | None = None
    listed: dict[str, tuple[Tile, int | None]] | Failure = {}
    for key, tile in _windows(tuning).items():
        if (tuning.name, key) in known:
            continue
        if kernel is None:
            kernel = kernel_from_text(tuning.text)
            listed = _listed(target, kernel)
        if isinstance(listed, Failure):
            yield {"kernel": tuning.name, "tile": key, "problem": str(listed)}
            continue
        whole, cycles = listed.get(key, (tile, None))
        compiled = target.compile_kernel(kernel, whole)
        trace = (
            compiled
            if isinstance(compiled, Failure)
            else trace_of(compiled.listing, delay_slots=CLOCKS[target.chip.name].delay_slots)
        )
        if isinstance(trace, Failure):
            yield {"kernel": tuning.name, "tile": key, "problem": str(trace)}
        else:
            yield {
                "kernel": tuning.name, "tile": key, "problem": "", "cycles": cycles,
                "trace": pack(trace.events),
            }  # fmt: skip


def _listed(target: SchedulesKernels, kernel: Kernel) -> dict[str, tuple[Tile, int | None]] | Failure:
    """The compiler's windows by what the published runs say of a window, which is all but the input's."""
    tiles = target.valid_tiles(kernel)
    if isinstance(tiles, Failure):
        return tiles
    listed = zip(tiles.tiles, tiles.analytical_cycles, strict=True)
    return {_published(tile): (tile, cycles) for tile, cycles in listed}


def _published(tile: Tile) -> str:
    levels = tuple((name, bounds) for name, bounds in tile.levels if name != "input")
    return Tile(levels=levels, unit=tile.unit).text


def _windows(tuning: OpTuning) -> dict[str, Tile | None]:
    """The windows that were tried, each once; None stands for a kernel without."""
    found: dict[str, Tile | None] = {}
    for run in tuning.runs:
        if isinstance(run.config, TileSizes):
            tile = run.config.tile
            found[_published(tile)] = tile if tile.levels else None
    return found


def _runs(tuning: OpTuning, known: Mapping[tuple[str, str], Mapping[str, Any]]) -> KernelRuns:
    runs: list[Run] = []
    problems: list[str] = []
    traces: dict[str, tuple[Event, ...]] = {}
    for run in tuning.runs:
        outcome = run.outcome
        if not isinstance(run.config, TileSizes) or not isinstance(outcome, Timing):
            problems.append(f"{run.config}: {outcome if isinstance(outcome, Failure) else 'no window'}")
            continue
        key = _published(run.config.tile)
        entry = known[tuning.name, key]
        if entry["problem"]:
            problems.append(f"{key}: {entry['problem']}")
            continue
        if key not in traces:
            traces[key] = unpack(entry["trace"])
        runs.append(
            Run(
                measured_s=outcome.seconds(),
                events=traces[key],
                analytical_cycles=entry["cycles"],
            )
        )
    for problem in problems:
        _log.warning("%s: %s", tuning.name, problem)
    entry_text = tuning.program.computations
    return KernelRuns(
        name=tuning.name,
        has_windows=any(tile is not None for tile in _windows(tuning).values()),
        is_convolution=any("window" in dict(i.attributes) for c in entry_text for i in c
                           if i.opcode == "convolution"),
        runs=tuple(runs),
        problems=tuple(problems),
    )  # fmt: skip
