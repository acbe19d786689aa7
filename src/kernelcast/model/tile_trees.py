"""Boosted trees for the tile task: summed features of the kernel beside the columns of the tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.features.tiles import tile_rows
from kernelcast.model.examples import TiledKernel, TileExamples
from kernelcast.model.trees import TreesConfig, boosted, summed_features


class TileTrees:
    """A fitted booster; implements ``Ranker``."""

    def __init__(self, booster: Any) -> None:
        self._booster = booster
        self._featuriser = Featuriser()

    def rank(self, kernel: Kernel, tiles: Sequence[Tile]) -> np.ndarray:
        """(tile,) scores; lower is faster; comparable only within this call."""
        return self.rank_graph(self._featuriser.graph(kernel), tile_rows(tiles))

    def rank_graph(self, graph: KernelGraph, tiles: np.ndarray) -> np.ndarray:
        """The same for a kernel that is a graph already, and (tile, tile column) raw tiles."""
        if not len(tiles):
            return np.zeros(0)
        return np.asarray(self._booster.predict(_inputs(graph, tiles), num_threads=1), dtype=np.float64)


def fit_tile_trees(
    training: TileExamples, validation: TileExamples, *, config: TreesConfig, seed: int
) -> TileTrees:
    """Trees on log seconds relative to the kernel's own mean, each kernel counting the same.

    What differs between kernels is not asked for, so no leaf is spent on it.

    Raises:
        MissingExtraError: LightGBM is not installed.
    """
    return TileTrees(boosted(_rows(training), _rows(validation), config=config, seed=seed))


def _rows(examples: TileExamples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    inputs = np.concatenate([_inputs(kernel.graph, kernel.tiles) for kernel in examples.kernels])
    targets = np.concatenate([_relative(kernel) for kernel in examples.kernels])
    weights = np.concatenate([np.full(len(kernel), 1.0 / len(kernel)) for kernel in examples.kernels])
    return inputs, targets, weights / weights.mean()


def _relative(kernel: TiledKernel) -> np.ndarray:
    logs = np.log(kernel.seconds)
    return logs - logs.mean()


def _inputs(graph: KernelGraph, tiles: np.ndarray) -> np.ndarray:
    summed = summed_features([graph])
    return np.concatenate([tiles, np.repeat(summed, len(tiles), axis=0)], axis=1).astype(np.float32)
