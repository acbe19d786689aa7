"""A trained model of the tile task as a ranker: one kernel and its tiles in, scores out, with no device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.errors import SchemaError
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.tiles import tile_rows
from kernelcast.model.checkpoint import Provenance, load_checkpoint
from kernelcast.model.score import TileScorer
from kernelcast.model.trained import Promise, Trained


class TileRanker:
    """A trained network of the tile task with its scaling; implements ``Ranker``.

    Attributes:
        trained: network and scaling.
        provenance: where the model comes from.

    >>> ranker = TileRanker.load(Path("checkpoints/gnn_rank-0"))  # doctest: +SKIP
    >>> tiles[ranker.rank(kernel, tiles).argmin()]  # doctest: +SKIP
    Tile(levels=(('output', (4, 16)),), unit='hardware-tile')
    """

    def __init__(self, trained: Trained, provenance: Provenance) -> None:
        if trained.promise is not Promise.RANKER:
            raise ValueError(f"a ranker needs a model of the tile task, got an {trained.promise}")
        self.trained = trained
        self.provenance = provenance
        self._featuriser = Featuriser()
        self._scorer = TileScorer(trained.scaling, KERNELCAST_1)

    @staticmethod
    def load(folder: Path) -> TileRanker:
        """The ranker of a checkpoint folder.

        Raises:
            SchemaError: not a checkpoint, damaged, of another schema, or one that estimates times.
        """
        checkpoint = load_checkpoint(folder, KERNELCAST_1)
        if checkpoint.trained.promise is not Promise.RANKER:
            raise SchemaError(
                f"{folder} holds a model that estimates times of kernels; to order tiles, name one that "
                "`kernelcast train --task tile` made"
            )
        return TileRanker(checkpoint.trained, checkpoint.provenance)

    def rank(self, kernel: Kernel, tiles: Sequence[Tile]) -> np.ndarray:
        """(tile,) float64 scores; lower is faster; comparable only within this call."""
        return self.rank_graph(self._featuriser.graph(kernel), tile_rows(tiles))

    def rank_graph(self, graph: KernelGraph, tiles: np.ndarray) -> np.ndarray:
        """The same for a kernel that is a graph already, and (tile, tile column) raw tiles."""
        return self._scorer.scores(self.trained.network, graph, tiles)
