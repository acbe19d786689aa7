"""Scores of all tiles of a kernel, by a network: the graph is embedded once, tiles go through in pieces."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kernelcast.features.graph import KernelGraph
from kernelcast.features.scaling import Scaling
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.batch import GraphBatch, TileBatch, batch, scaled_graphs
from kernelcast.model.tile_batches import TileInput, close_size_class
from kernelcast.model.trained import Network

# Nodes times tiles of one compiled call: its arrays stay in a core's cache of a few megabytes. Of 512 to
# 32,768 the middle ones were fastest, by a factor of up to four.
_SMALL, _LARGE = 512, 4_096


class TileScorer:
    """Scores tiles under one scaling."""

    def __init__(self, scaling: Scaling, schema: FeatureSchema) -> None:
        self._scaling = scaling
        self._tiles = TileInput(scaling, schema)

    def scores(self, network: Network, graph: KernelGraph, tiles: np.ndarray) -> np.ndarray:
        """(tile,) float64 scores of (tile, tile column) raw tiles; lower is faster."""
        made = batch(
            scaled_graphs([graph], self._scaling), nodes=close_size_class(graph.node_count), kernels=1
        )
        nodes = made.mask.shape[1]
        values = self._tiles.values(tiles)
        # Few tiles go through a small compiled shape, many through a large one.
        at_once = max(1, (_SMALL if len(tiles) * nodes <= _SMALL else _LARGE) // nodes)
        found = np.zeros(len(tiles), dtype=np.float64)
        for start in range(0, len(tiles), at_once):
            piece = values[start : start + at_once]
            padded = np.zeros((1, at_once, values.shape[1]), dtype=np.float32)
            padded[0, : len(piece)] = piece
            held = TileBatch(values=padded, columns=self._tiles.columns)
            found[start : start + len(piece)] = np.asarray(_forward(network, made, held))[0, : len(piece)]
        return found


@eqx.filter_jit
def _forward(network: Network, graphs: GraphBatch, tiles: TileBatch) -> Float[Array, "kernel tile"]:
    return network(graphs, tiles)
