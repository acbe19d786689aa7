"""The 24 published features of a tile, from a ``Tile`` and back.

The published bounds are *physical, major → minor*, the two minor dimensions counted in hardware tiles;
``Tile`` holds the same bounds minor → major. So one order is the reverse of the other, level by level.
Nothing published says so; it is inferred: of 19 published pairs of a kernel and a window, the largest bounds
of all fit inside some value of the kernel in this order, of three in the other order (a test counts them).
"""

from __future__ import annotations

import math

import numpy as np

from kernelcast.core.tile import Tile
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs_schema import CONFIG_WIDTH, SLOTS, TILE_LEVELS

UNIT = "hardware-tile"
_LEVEL_WIDTH = SLOTS + 2


def tile_features(tile: Tile) -> np.ndarray:
    """(24,) float32: bounds major → minor, sum and product of kernel, output and input windows; 0 for none.

    Raises:
        SchemaError: a level that the published features lack, one that is there twice, or another unit.

    >>> tile = Tile(levels=(("output", (3, 4, 4, 12)),), unit="hardware-tile")
    >>> tile_features(tile)[8:16].astype(int).tolist()
    [12, 4, 4, 3, 0, 0, 23, 576]
    """
    names = [name for name, _ in tile.levels]
    if tile.unit != UNIT or len(set(names)) != len(names) or not set(names) <= set(TILE_LEVELS):
        raise SchemaError(
            f"expected a tile in unit {UNIT} with levels among {', '.join(TILE_LEVELS)}, each at most once; "
            f"got {tile} in unit {tile.unit}"
        )
    row = np.zeros(CONFIG_WIDTH, dtype=np.float32)
    for name, bounds in tile.levels:
        if bounds:
            start = _LEVEL_WIDTH * TILE_LEVELS.index(name)
            row[start : start + len(bounds)] = bounds[::-1]
            row[start + SLOTS : start + _LEVEL_WIDTH] = (sum(bounds), math.prod(bounds))
    return row


def tile_of(features: np.ndarray) -> Tile:
    """The tile that a row of 24 published features describes; levels without bounds are left out.

    Raises:
        SchemaError: bounds after an absent one, no whole numbers, or another sum or product than stated.
    """
    if features.shape != (CONFIG_WIDTH,):
        raise SchemaError(f"a tile has {CONFIG_WIDTH} features, got an array of shape {features.shape}")
    levels: list[tuple[str, tuple[int, ...]]] = []
    for number, name in enumerate(TILE_LEVELS):
        row = features[_LEVEL_WIDTH * number : _LEVEL_WIDTH * (number + 1)]
        bounds = tuple(int(value) for value in row[:SLOTS] if value)
        if bounds:
            levels.append((name, bounds[::-1]))
    if any(bound < 1 for _, bounds in levels for bound in bounds):
        raise SchemaError(f"the bounds of a tile are at least 1, got {features.tolist()}")
    tile = Tile(levels=tuple(levels), unit=UNIT)
    if not np.array_equal(tile_features(tile), features):
        raise SchemaError(
            f"{features.tolist()} are no features of a tile: bounds stand first, then zeros, then their sum "
            "and product"
        )
    return tile
