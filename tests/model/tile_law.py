"""Random kernels with random tiles and a simple law for their times: what tile training is tested on."""

from __future__ import annotations

import math

import numpy as np

from kernelcast.core.tile import Tile
from kernelcast.features.graph import KernelGraph
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.tiles import tile_rows
from kernelcast.model.examples import TiledKernel

_EXTENTS = [KERNELCAST_1.node_index[f"extent_{n}"] for n in range(2)]


def random_tiles(graph: KernelGraph, generator: np.random.Generator, *, most: int) -> list[Tile]:
    """Distinct output windows of a kernel's parameter: powers of two up to its extents."""
    extents = [max(1, int(graph.rows[0, column])) for column in _EXTENTS]
    choices = [(2**a, 2**b) for a in range(extents[0].bit_length()) for b in range(extents[1].bit_length())]
    picked = generator.permutation(len(choices))[:most]
    return [Tile(levels=(("output", choices[n]),)) for n in picked]


def law_seconds(graph: KernelGraph, tiles: list[Tile]) -> np.ndarray:
    """Each window costs a start and its area; windows too large for a small fast memory cost thrice."""
    extents = [max(1.0, float(graph.rows[0, column])) for column in _EXTENTS]
    seconds: list[float] = []
    for tile in tiles:
        area = math.prod(tile.levels[0][1])
        count = math.prod(math.ceil(e / b) for e, b in zip(extents, tile.levels[0][1], strict=True))
        seconds.append(count * (1e-7 + area * 1e-9 * (3.0 if area > 1024 else 1.0)))
    return np.array(seconds)


def tiled_kernel(graph: KernelGraph, generator: np.random.Generator, *, most: int = 24) -> TiledKernel:
    """A kernel with tiles and times; the analytical model does not know of the small memory."""
    tiles = random_tiles(graph, generator, most=most)
    seconds = law_seconds(graph, tiles)
    extents = [max(1.0, float(graph.rows[0, column])) for column in _EXTENTS]
    counts = [
        math.prod(math.ceil(e / b) for e, b in zip(extents, tile.levels[0][1], strict=True)) for tile in tiles
    ]
    return TiledKernel(
        graph=graph, tiles=tile_rows(tiles), seconds=seconds, analytical=np.array(counts, dtype=np.float64)
    )
