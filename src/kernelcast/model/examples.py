"""Kernels with times: one time each for the fusion task, one per tile for the tile task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from kernelcast.features.graph import KernelGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Kernels with their times.

    Attributes:
        graphs: raw graphs.
        seconds: (kernel,) labels, > 0.
    """

    graphs: Sequence[KernelGraph]
    seconds: np.ndarray

    def __post_init__(self) -> None:
        if len(self.graphs) != len(self.seconds):
            raise ValueError(f"{len(self.graphs)} graphs cannot have {len(self.seconds)} times")
        if not bool(np.all(self.seconds > 0)):
            raise ValueError("every training time must be > 0; leave out kernels that failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledKernel:
    """One kernel with its tiles, or some of them.

    Attributes:
        graph: raw, without a tile.
        tiles: (tile, tile column) float32 raw values in the schema's tile columns.
        seconds: (tile,) labels, > 0. Only ratios within a kernel matter to rank losses, so times relative to
            the kernel's default will do for them.
        analytical: (tile,) cost by the compiler's own model, in any unit of its own; NaN where it has none.
    """

    graph: KernelGraph
    tiles: np.ndarray
    seconds: np.ndarray
    analytical: np.ndarray

    def __post_init__(self) -> None:
        count = len(self.tiles)
        if self.seconds.shape != (count,) or self.analytical.shape != (count,):
            raise ValueError(
                f"{count} tiles cannot have {len(self.seconds)} times and {len(self.analytical)} costs"
            )
        if not bool(np.all(self.seconds > 0)):
            raise ValueError("every training time must be > 0; leave out tiles that failed")

    def __len__(self) -> int:
        return len(self.tiles)

    def taken(self, rows: np.ndarray) -> TiledKernel:
        """The same kernel with the tiles of these numbers, in this order."""
        return replace(
            self, tiles=self.tiles[rows], seconds=self.seconds[rows], analytical=self.analytical[rows]
        )


class TileSource(Protocol):
    """What tile training reads: kernels with a few tiles drawn anew in each epoch."""

    def sample(self, kernels: int) -> Sequence[TiledKernel]:
        """Up to so many kernels with some of their tiles, to fit the scaling on; the same at each call."""
        ...

    def group_count(self, *, tiles: int, groups: int) -> int:
        """How many groups one epoch has."""
        ...

    def epoch(self, random: np.random.Generator, *, tiles: int, groups: int) -> Iterator[TiledKernel]:
        """Kernels, each with 2 to ``tiles`` tiles drawn at random, at most ``groups`` times each."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TileExamples:
    """Kernels with tiles, in memory; a ``TileSource``."""

    kernels: Sequence[TiledKernel]

    def __len__(self) -> int:
        return len(self.kernels)

    def sample(self, kernels: int) -> Sequence[TiledKernel]:
        """Evenly spread over the kernels, and over the tiles of each."""
        return [
            self.kernels[n].taken(evenly_spread(len(self.kernels[n]), _SCALING_TILES))
            for n in evenly_spread(len(self.kernels), kernels)
        ]

    def group_count(self, *, tiles: int, groups: int) -> int:
        """How many groups one epoch has."""
        return sum(groups_of(len(kernel), tiles=tiles, groups=groups) for kernel in self.kernels)

    def epoch(self, random: np.random.Generator, *, tiles: int, groups: int) -> Iterator[TiledKernel]:
        """Groups of all kernels in random order."""
        drawn = [
            (number, rows)
            for number, kernel in enumerate(self.kernels)
            for rows in draw_groups(len(kernel), random, tiles=tiles, groups=groups)
        ]
        for at in random.permutation(len(drawn)):
            number, rows = drawn[at]
            yield self.kernels[number].taken(rows)


# Enough to tell the range and spread of the tile columns of one kernel.
_SCALING_TILES = 64


def groups_of(count: int, *, tiles: int, groups: int) -> int:
    """How many groups a kernel with so many tiles gives in an epoch; none where it has no two tiles.

    >>> [groups_of(n, tiles=10, groups=4) for n in (1, 2, 10, 11, 12, 500)]
    [0, 1, 1, 1, 2, 4]
    """
    whole, left = divmod(count, tiles)
    return min(groups, whole + (left >= 2))


def draw_groups(count: int, random: np.random.Generator, *, tiles: int, groups: int) -> list[np.ndarray]:
    """Numbers of the tiles of each group, in random order, none twice."""
    order = random.permutation(count)
    starts = range(0, groups_of(count, tiles=tiles, groups=groups) * tiles, tiles)
    return [order[start : start + tiles] for start in starts]


def evenly_spread(count: int, most: int) -> np.ndarray:
    """Up to ``most`` numbers below ``count``, evenly spread, first and last among them.

    >>> evenly_spread(3, 10).tolist(), evenly_spread(101, 3).tolist()
    ([0, 1, 2], [0, 50, 100])
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
