"""Batches of kernels with a few random tiles each, streamed from a folder of tile files in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from kernelcast.data.tpugraphs.tile_file import TileGraph, read_tile_file
from kernelcast.errors import SchemaError

PARTS = ("train", "valid", "test")
# Where the published archives unpack their parts, relative to the folder that they are unpacked in.
_PLACES = (".", "tile", "tile/xla", "npz/tile/xla")
CACHE_BYTES = 512 << 20

Form = TypeVar("Form")


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


class TileReader(Generic[Form]):
    """Kernels of tile files in a form of one's own; the first ones read are kept in memory.

    Kept are the first ones until the budget is spent: each epoch reads every file once, so that to keep the
    latest instead would find none again. A kept kernel is the same object in every epoch.
    """

    def __init__(
        self, files: Sequence[Path], form: Callable[[TileGraph], Form], *, cache_bytes: int = CACHE_BYTES
    ) -> None:
        """A reader of ``files``.

        Args:
            files: tile files with times.
            form: what is made of each kernel, and kept.
            cache_bytes: of decoded arrays, about what the kept kernels take.
        """
        if cache_bytes < 0:
            raise ValueError(f"a cache has no negative size, got {cache_bytes}")
        self.files = tuple(files)
        self._form = form
        self._left_bytes = cache_bytes
        self._kept: dict[Path, Form] = {}

    def read(self, path: Path) -> Form:
        """The kernel of one file.

        Raises:
            SchemaError: the file is damaged, or has no times, as the published test files.
        """
        held = self._kept.get(path)
        if held is not None:
            return held
        graph = read_tile_file(path)
        if not graph.is_timed.any():
            raise SchemaError(
                f"{path}: all its runtimes are missing, as in the published test files; train on another part"
            )
        made = self._form(graph)
        if graph.byte_size <= self._left_bytes:
            self._kept[path] = made
            self._left_bytes -= graph.byte_size
        return made

    def in_random_order(self, random: np.random.Generator) -> Iterator[Form]:
        """Every kernel once, one file decoded at a time."""
        for number in random.permutation(len(self.files)):
            yield self.read(self.files[number])


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What a batch holds, and how much memory the stream may keep.

    Attributes:
        graphs: kernels in a batch; the last one of an epoch may have fewer.
        tiles: drawn per kernel; all where it has fewer.
        cache_bytes: of decoded kernels kept for later epochs.
    """

    graphs: int = 10
    tiles: int = 10
    cache_bytes: int = CACHE_BYTES

    def __post_init__(self) -> None:
        if self.graphs < 1 or self.tiles < 1:
            raise ValueError(f"a batch has at least one graph and one tile; got {self}")


class TileStream:
    """Batches of kernels in random order, each with random tiles in random order.

    One decoded file at a time is held, besides the batch and the cache. Published files list the default tile
    first; drawn rows are shuffled, so that no model can profit from it.
    """

    def __init__(self, files: Sequence[Path], *, seed: int, options: StreamOptions | None = None) -> None:
        """A stream of ``files``.

        Args:
            files: tile files with times.
            seed: of the order of kernels and the draw of tiles; seed and epoch decide the batches.
            options: what a batch holds; ``StreamOptions()`` for None.
        """
        self._seed = seed
        self._options = options or StreamOptions()
        self._reader = TileReader(files, lambda graph: graph, cache_bytes=self._options.cache_bytes)

    def epoch(self, number: int) -> Iterator[tuple[TileGraph, ...]]:
        """Batches that hold every kernel once.

        Raises:
            SchemaError: a file is damaged, or has no times, as the published test files.
        """
        random = np.random.default_rng((self._seed, number))
        batch: list[TileGraph] = []
        for graph in self._reader.in_random_order(random):
            batch.append(_drawn(graph, self._options.tiles, random))
            if len(batch) == self._options.graphs:
                yield tuple(batch)
                batch.clear()
        if batch:
            yield tuple(batch)


def _drawn(graph: TileGraph, tiles: int, random: np.random.Generator) -> TileGraph:
    """Some tiles that have times, none twice, in random order."""
    timed = np.flatnonzero(graph.is_timed)
    return graph.with_tiles(random.choice(timed, size=min(tiles, len(timed)), replace=False))
