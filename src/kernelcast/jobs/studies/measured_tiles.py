"""Rankers against published runs of real TPU kernels: an outside test of models that learned from simulated
times. Nothing is fitted here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelcast import metrics
from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.core.timing import Failure, Timing
from kernelcast.data.tpugraphs.op_tuning import OpTuning, read_op_tuning
from kernelcast.data.tpugraphs.tuning import TileSizes
from kernelcast.errors import SchemaError
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.model.rank import TileRanker
from kernelcast.targets.protocol import Tiles

ANALYTICAL = "analytical"
# Of fewer runs a τ says little; these kernels are listed and no part of the mean.
LEAST_RUNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredKernel:
    """One kernel that was measured on a real chip.

    Attributes:
        name: the publisher's.
        runs: tiles with a measured time that all models can order.
        without_analytical: tiles left out because the compiler here does not list them.
        tau: Kendall's τ-b with the measured times, by model; mean over seeds.
    """

    name: str
    runs: int
    without_analytical: int
    tau: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTiles:
    """All kernels.

    Attributes:
        kernels: by name; those whose tiles have one time only are left out.
        device: that measured, in the publisher's words.
        problems: why a kernel has no row, by name.
        seeds: of the rankers.
    """

    kernels: tuple[MeasuredKernel, ...]
    device: str
    problems: Mapping[str, str]
    seeds: tuple[int, ...]

    @property
    def judged(self) -> tuple[MeasuredKernel, ...]:
        """The kernels with runs enough for the mean."""
        return tuple(kernel for kernel in self.kernels if kernel.runs >= LEAST_RUNS)

    def tau_mean(self, model: str) -> float:
        """Mean over the judged kernels; NaN where there is none."""
        return float(np.mean([k.tau[model] for k in self.judged])) if self.judged else math.nan


def judge_on_measured(
    folder: Path, rankers: Mapping[str, Sequence[TileRanker]], target: Tiles | None
) -> MeasuredTiles:
    """How well rankers order the tiles of measured kernels.

    Args:
        folder: of ``<kernel>.json`` and ``<kernel>.hlo``.
        rankers: by model, one per seed.
        target: lists each kernel's tiles with analytical cycles, which are judged beside; None for no such
            column.

    Raises:
        SchemaError: no kernel in the folder, or one that cannot be read.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise SchemaError(f"{folder} holds no <kernel>.json with its <kernel>.hlo; name TpuGraphs' op_tuning")
    kernels: list[MeasuredKernel] = []
    problems: dict[str, str] = {}
    tunings = [read_op_tuning(path) for path in paths]
    for tuning in tunings:
        found = _judged(tuning, rankers, target)
        if isinstance(found, MeasuredKernel):
            kernels.append(found)
        else:
            problems[tuning.name] = found
    return MeasuredTiles(
        kernels=tuple(kernels),
        device=", ".join(sorted({tuning.device for tuning in tunings})),
        problems=problems,
        seeds=tuple(sorted({r.trained.seed for held in rankers.values() for r in held})),
    )


def _judged(
    tuning: OpTuning, rankers: Mapping[str, Sequence[TileRanker]], target: Tiles | None
) -> MeasuredKernel | str:
    """The row of a kernel, or why it has none."""
    kernel = kernel_from_text(tuning.text)
    timed = _timed(tuning)
    costs = _analytical(kernel, target)
    if isinstance(costs, Failure):
        return str(costs)
    pairs = [(tile if costs is None else _listed(tile, costs), s) for tile, s in timed.items()]
    tiles = [tile for tile, _ in pairs if tile is not None]
    seconds = np.array([s for tile, s in pairs if tile is not None], dtype=np.float64)
    if np.unique(seconds).size < 2:
        return f"{len(timed)} tiles ran, {len(tiles)} that all models can order, no two different times"
    tau = {
        name: float(np.mean([metrics.kendall_tau(ranker.rank(kernel, tiles), seconds) for ranker in held]))
        for name, held in rankers.items()
    }
    if costs is not None:
        cycles = np.array([costs[tile] for tile in tiles], dtype=np.float64)
        tau[ANALYTICAL] = metrics.kendall_tau(cycles, seconds)
    return MeasuredKernel(
        name=tuning.name, runs=len(tiles), without_analytical=len(timed) - len(tiles), tau=tau
    )


def _timed(tuning: OpTuning) -> dict[Tile, float]:
    """Seconds of each tile that ran; of a tile that ran twice the faster."""
    found: dict[Tile, float] = {}
    for run in tuning.runs:
        outcome = run.outcome
        if isinstance(run.config, TileSizes) and isinstance(outcome, Timing):
            tile = run.config.tile
            found[tile] = min(outcome.seconds(), found.get(tile, math.inf))
    return found


def _listed(tile: Tile, costs: Mapping[Tile, int]) -> Tile | None:
    """The listed tile with the levels of a published one, the cheapest of several; None where there is none.

    Of convolutions and dots the input's window is not published, since the other two decide it; a compiler
    lists it, and models have learned from tiles that have it.
    """
    levels = set(tile.levels)
    alike = [listed for listed in costs if levels <= set(listed.levels) and listed.unit == tile.unit]
    # Of a tile without levels every one would be alike.
    return min(alike, key=lambda listed: costs[listed], default=None) if levels else None


def _analytical(kernel: Kernel, target: Tiles | None) -> dict[Tile, int] | Failure | None:
    if target is None:
        return None
    listed = target.valid_tiles(kernel)
    if isinstance(listed, Failure):
        return listed
    pairs = zip(listed.tiles, listed.analytical_cycles, strict=True)
    return {tile: cycles for tile, cycles in pairs if cycles is not None}
