"""A collection of published TpuGraphs tile files as what tile training reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from kernelcast.data.tpugraphs.stream import CACHE_BYTES, TileReader, tile_files
from kernelcast.data.tpugraphs.tile_file import TileGraph, timed_tile_count
from kernelcast.features.tpugraphs import kernel_graph
from kernelcast.model.examples import TiledKernel, TileExamples, draw_groups, groups_of

# Groups drawn ahead, so that those of one kernel come apart; about ten kilobytes each, without the graph.
_WAITING = 256


class PublishedTiles:
    """The kernels of tile files, read anew in each epoch as far as they are not kept; a ``TileSource``.

    Their schema is ``tpugraphs-140``, their times are relative to the default tile's on the same machine.
    """

    def __init__(self, files: Sequence[Path], *, cache_bytes: int = CACHE_BYTES) -> None:
        """A source of ``files``; counts the tiles of each.

        Raises:
            SchemaError: a file is damaged or of another layout.
        """
        self._counts = [timed_tile_count(path) for path in files]
        self._reader = TileReader(files, tiled_kernel, cache_bytes=cache_bytes)

    def __len__(self) -> int:
        return len(self._counts)

    def sample(self, kernels: int) -> Sequence[TiledKernel]:
        """Evenly spread over the files, and over the tiles of each."""
        numbers = np.linspace(0, len(self) - 1, min(len(self), kernels)).astype(np.int64)
        files = [self._reader.files[n] for n in np.unique(numbers)]
        return [k for path in files for k in TileExamples(kernels=(self._reader.read(path),)).sample(1)]

    def group_count(self, *, tiles: int, groups: int) -> int:
        """How many groups one epoch has."""
        return sum(groups_of(count, tiles=tiles, groups=groups) for count in self._counts)

    def epoch(self, random: np.random.Generator, *, tiles: int, groups: int) -> Iterator[TiledKernel]:
        """Groups of all kernels; a kernel's own are spread over some hundred others."""
        waiting: list[TiledKernel] = []
        for kernel in self._reader.in_random_order(random):
            drawn = draw_groups(len(kernel), random, tiles=tiles, groups=groups)
            waiting.extend(kernel.taken(rows) for rows in drawn)
            while len(waiting) > _WAITING:
                yield _popped(waiting, random)
        while waiting:
            yield _popped(waiting, random)


def published_examples(folder: Path, part: str) -> TileExamples:
    """All kernels of a part in memory, for validation: the published one takes some 150 MB.

    Args:
        folder: of the collection, as for ``tile_files``.
        part: ``train`` or ``valid``; the published ``test`` has no times.

    Raises:
        SchemaError: there are none, or one is damaged or has no times.
    """
    reader = TileReader(tile_files(folder, part), tiled_kernel, cache_bytes=0)
    return TileExamples(kernels=tuple(reader.read(path) for path in reader.files))


def tiled_kernel(graph: TileGraph) -> TiledKernel:
    """A published kernel with its timed tiles, times relative to the default's; costs are not published."""
    timed = graph.with_tiles(np.flatnonzero(graph.is_timed))
    return TiledKernel(
        graph=kernel_graph(node_feat=graph.node_feat, opcode=graph.opcode, edges=graph.edges),
        tiles=timed.config_feat,
        seconds=timed.relative_time,
        analytical=np.full(timed.tile_count, np.nan),
    )


def _popped(waiting: list[TiledKernel], random: np.random.Generator) -> TiledKernel:
    """One of the waiting groups, taken out."""
    place = int(random.integers(len(waiting)))
    waiting[place], waiting[-1] = waiting[-1], waiting[place]
    return waiting.pop()
