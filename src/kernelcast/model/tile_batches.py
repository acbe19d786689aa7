"""Batches of the tile task: a few kernels, each graph once, with a few tiles of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kernelcast.features.graph import KernelGraph
from kernelcast.features.scaling import ColumnScaling, Scaling
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.batch import GraphBatch, ScaledGraph, TileBatch, batch, scaled_graphs
from kernelcast.model.config import TileTask
from kernelcast.model.examples import TiledKernel

# Groups that wait per size class, in batches; two groups of one kernel then rarely share a batch.
_WAITING_BATCHES = 4
# Graphs that were scaled once are kept for later epochs up to this many nodes, one or two kilobytes each.
_KEPT_NODES = 200_000


class LabelledTiles(NamedTuple):
    """One batch of training.

    Attributes:
        graphs: of the kernels.
        tiles: of each kernel.
        target: (kernel, tile) standardised log seconds.
        present: (kernel, tile) whether a tile is real.
    """

    graphs: GraphBatch
    tiles: TileBatch
    target: np.ndarray
    present: np.ndarray


def close_size_class(node_count: int) -> int:
    """Nodes that a kernel is padded to: a power of two or one and a half of it, at least 8.

    Finer than ``size_class``, because padding is paid once for each tile.

    >>> [close_size_class(n) for n in (3, 9, 17, 30, 33, 50, 65)]
    [8, 16, 24, 32, 48, 64, 96]
    """
    power = max(8, 1 << max(0, node_count - 1).bit_length())
    between = power * 3 // 4
    return between if between >= max(node_count, 16) else power


class TileBatcher:
    """Makes batches of drawn groups under one scaling; remembers the graphs that it has scaled."""

    def __init__(
        self, scaling: Scaling, schema: FeatureSchema, task: TileTask, *, centre: float, spread: float
    ) -> None:
        self._scaling = scaling
        self._task = task
        self._centre, self._spread = centre, spread
        self._tiles = TileInput(scaling, schema)
        self._scaled: dict[int, tuple[KernelGraph, ScaledGraph]] = {}
        self._kept_nodes = 0

    def batches(self, groups: Iterable[TiledKernel], random: np.random.Generator) -> Iterator[LabelledTiles]:
        """Batches of one size class each; what is left over at the end is batched by size.

        Args:
            groups: kernels with at most as many tiles as the task's batches have.
            random: of which of the waiting groups come next.
        """
        size = self._task.kernels
        waiting: dict[int, list[TiledKernel]] = {}
        for group in groups:
            held = waiting.setdefault(close_size_class(group.graph.node_count), [])
            held.append(group)
            if len(held) >= size * _WAITING_BATCHES:
                yield self._batch(_pick(held, size, random))
        left: list[TiledKernel] = []
        for held in waiting.values():
            while len(held) >= size:
                yield self._batch(_pick(held, size, random))
            left.extend(held)
        left.sort(key=lambda group: group.graph.node_count)
        for start in range(0, len(left), size):
            yield self._batch(left[start : start + size])

    def _batch(self, groups: Sequence[TiledKernel]) -> LabelledTiles:
        kernels, width = self._task.kernels, self._task.tiles
        graphs = [self._scale(group.graph) for group in groups]
        nodes = close_size_class(max(graph.node_count for graph in graphs))
        values = np.zeros((kernels, width, len(self._tiles.columns)), dtype=np.float32)
        target = np.zeros((kernels, width), dtype=np.float32)
        present = np.zeros((kernels, width), dtype=np.bool_)
        for k, group in enumerate(groups):
            values[k, : len(group)] = self._tiles.values(group.tiles)
            target[k, : len(group)] = (np.log(group.seconds) - self._centre) / self._spread
            present[k, : len(group)] = True
        return LabelledTiles(
            graphs=batch(graphs, nodes=nodes, kernels=kernels),
            tiles=TileBatch(values=values, columns=self._tiles.columns),
            target=target,
            present=present,
        )

    def _scale(self, graph: KernelGraph) -> ScaledGraph:
        held = self._scaled.get(id(graph))
        if held is not None:
            return held[1]
        (scaled,) = scaled_graphs([graph], self._scaling)
        if self._kept_nodes + graph.node_count <= _KEPT_NODES:
            # The graph is held as well, so that its identity stays its own.
            self._scaled[id(graph)] = (graph, scaled)
            self._kept_nodes += graph.node_count
        return scaled


class TileInput:
    """What a network reads of tiles: their scaled columns, and which of its node features these are."""

    def __init__(self, scaling: Scaling, schema: FeatureSchema) -> None:
        self._scaling: ColumnScaling = scaling.node.restricted(schema.tile_columns)
        self.columns = np.flatnonzero(np.isin(scaling.node.columns, schema.tile_columns)).astype(np.int32)

    def values(self, tiles: np.ndarray) -> np.ndarray:
        """(tile, column) float32 of (tile, tile column) raw values."""
        return self._scaling.apply(tiles)


def _pick(held: list[TiledKernel], count: int, random: np.random.Generator) -> list[TiledKernel]:
    """Takes so many out of a list at random."""
    random.shuffle(held)  # pyright: ignore[reportArgumentType] (a list is shuffled in place as well)
    picked = held[-count:]
    del held[-count:]
    return picked
