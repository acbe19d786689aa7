"""Batches of kernels with a few random tiles each, streamed from a folder of tile files in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernelcast.data.tpugraphs.tile_file import TileGraph, read_tile_file
from kernelcast.errors import SchemaError

PARTS = ("train", "valid", "test")
# Where the published archives unpack their parts, relative to the folder that they are unpacked in.
_PLACES = (".", "tile", "tile/xla", "npz/tile/xla")


def tile_files(folder: Path, part: str) -> tuple[Path, ...]:
    """The tile files of one part of a collection, by name.

    Args:
        folder: where the published archives were unpacked, or a folder inside that holds the parts.
        part: ``train``, ``valid`` or ``test``.

    Raises:
        SchemaError: there are none.
    """
    if part not in PARTS:
        raise SchemaError(f"expected a part among {', '.join(PARTS)}, got {part!r}")
    for place in _PLACES:
        found = tuple(sorted((folder / place / part).glob("*.npz")))
        if found:
            return found
    tried = ", ".join(str(folder / place / part) for place in _PLACES)
    raise SchemaError(f"{folder}: holds no tile files of part {part}; looked for .npz files in {tried}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What a batch holds, and how much memory the stream may keep.

    Attributes:
        graphs: kernels in a batch; the last one of an epoch may have fewer.
        tiles: drawn per kernel; all where it has fewer.
        cache_bytes: of decoded kernels kept for later epochs. The first ones read are kept until this is
            full; since each epoch reads every file once, keeping the latest instead would find none again.
    """

    graphs: int = 10
    tiles: int = 10
    cache_bytes: int = 512 << 20

    def __post_init__(self) -> None:
        if self.graphs < 1 or self.tiles < 1 or self.cache_bytes < 0:
            raise ValueError(
                f"a batch has at least one graph and one tile, and a cache no negative size; got {self}"
            )


@dataclass(slots=True, kw_only=True)
class TileStream:
    """Kernels in random order, each with random tiles in random order.

    One decoded file at a time is held, besides the batch and the cache. Published files list the
    default tile first; drawn rows are shuffled, so that no model can profit from it.

    Attributes:
        files: tile files with times.
        seed: of the order of kernels and the draw of tiles; the same seed and epoch give the same batches.
        options: what a batch holds.
    """

    files: Sequence[Path]
    seed: int
    options: StreamOptions = StreamOptions()
    _kept: dict[Path, TileGraph] = field(default_factory=dict[Path, TileGraph], init=False, repr=False)
    _kept_bytes: int = field(default=0, init=False, repr=False)

    def epoch(self, number: int) -> Iterator[tuple[TileGraph, ...]]:
        """Batches that hold every kernel once.

        Raises:
            SchemaError: a file is damaged, or has no times, as the published test files.
        """
        random = np.random.default_rng((self.seed, number))
        order = random.permutation(len(self.files))
        for start in range(0, len(order), self.options.graphs):
            chosen = order[start : start + self.options.graphs]
            yield tuple(_drawn(self._graph(self.files[n]), self.options.tiles, random) for n in chosen)

    def _graph(self, path: Path) -> TileGraph:
        held = self._kept.get(path)
        if held is not None:
            return held
        graph = read_tile_file(path)
        if not graph.is_timed.any():
            raise SchemaError(
                f"{path}: all its runtimes are missing, as in the published test files; train on another part"
            )
        size = graph.byte_size
        if self._kept_bytes + size <= self.options.cache_bytes:
            self._kept[path] = graph
            self._kept_bytes += size
        return graph


def _drawn(graph: TileGraph, tiles: int, random: np.random.Generator) -> TileGraph:
    """Some tiles that have times, none twice, in random order."""
    timed = np.flatnonzero(graph.is_timed)
    return graph.with_tiles(random.choice(timed, size=min(tiles, len(timed)), replace=False))
