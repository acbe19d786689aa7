"""How fast tiles are learned from and ranked: pairs of graph and tile over whole training steps, and the time
to rank thousands of tiles of one kernel.

Tiles and times are made up: speed does not depend on them. A step has everything: drawing and scaling tiles,
padding, gradient, optimiser, averaging. Seconds are of the wall, since all processors work on each step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.tiles import tile_rows
from kernelcast.model.checkpoint import Provenance
from kernelcast.model.config import GNN_RANK
from kernelcast.model.examples import TiledKernel, TileExamples
from kernelcast.model.rank import TileRanker
from kernelcast.model.train_tiles import train_tiles

RANKED_TILES = 5_800
# Four groups of ten, all that one epoch takes of a kernel.
_TILES = 40
_ROUNDS = 5
_NOTHING = Provenance(name="speed", data_digest="", target={}, target_digest="", statistic="", versions={})


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSpeed:
    """What was found; medians of five rounds, the compiling one before them not counted.

    Attributes:
        kernels: trained on.
        nodes_mean: of their graphs, before padding.
        pairs_per_s: pairs of graph and tile, over whole epochs with ten kernels of ten tiles a batch.
        ranked_nodes: of the kernel whose tiles were ranked.
        rank_s: seconds to rank ``RANKED_TILES`` tiles of it, featurising included.
    """

    kernels: int
    nodes_mean: float
    pairs_per_s: float
    ranked_nodes: int
    rank_s: float


def tile_speed(kernels: Sequence[Kernel], ranked: Kernel, *, seed: int = 0) -> TileSpeed:
    """The speed of training on some kernels, and of ranking tiles of one.

    Args:
        kernels: trained on; ten and more of similar sizes fill batches.
        ranked: the kernel whose tiles are ranked.
        seed: of tiles, times and weights.
    """
    random = np.random.default_rng(seed)
    examples = [_tiled(graph, random) for graph in Featuriser().graphs(kernels)]
    ends = [time.perf_counter()]
    trained = train_tiles(
        TileExamples(kernels=examples),
        TileExamples(kernels=examples[:1]),
        schema=KERNELCAST_1,
        config=replace(GNN_RANK, epochs=_ROUNDS + 1, patience=_ROUNDS + 1),
        seed=seed,
        on_epoch=lambda epoch: ends.append(time.perf_counter()),
    )
    epochs_s = np.diff(ends)[1:].tolist()
    ranker = TileRanker(trained, _NOTHING)
    tiles = [Tile(levels=(("output", (1 + n % 64, 1 + n // 64)),)) for n in range(RANKED_TILES)]
    return TileSpeed(
        kernels=len(examples),
        nodes_mean=float(np.mean([example.graph.node_count for example in examples])),
        pairs_per_s=len(examples) * _TILES / median(epochs_s),
        ranked_nodes=Featuriser().graph(ranked).node_count,
        rank_s=median(_seconds(lambda: ranker.rank(ranked, tiles))),
    )


def _tiled(graph: KernelGraph, random: np.random.Generator) -> TiledKernel:
    bounds = random.integers(1, 64, size=(_TILES, 3))
    return TiledKernel(
        graph=graph,
        tiles=tile_rows([Tile(levels=(("output", tuple(row)),)) for row in bounds.tolist()]),
        seconds=random.uniform(1e-6, 1e-3, _TILES),
        analytical=np.full(_TILES, np.nan),
    )


def _seconds(work: Callable[[], object]) -> list[float]:
    found: list[float] = []
    for _ in range(_ROUNDS + 1):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return found[1:]
