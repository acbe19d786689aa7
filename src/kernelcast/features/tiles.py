"""The paper's tile feature: sizes minor to major, then their sum and product, for each level of a tile.

Every level has its own slot, whatever other levels a tile has: a network that has seen output windows beside
kernel windows must find them at the same place where there is no kernel window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernelcast.core.tile import MAX_BOUNDS, MAX_LEVELS, Tile
from kernelcast.features.schema import KERNELCAST_1

LEVEL_SLOTS = {"kernel": 0, "output": 1, "input": 2}
_COLUMNS = KERNELCAST_1.tile_columns
_FIRST = int(_COLUMNS[0])
_SLOT_WIDTH = MAX_BOUNDS + 2
_HAS = KERNELCAST_1.node_index["has_tile_0"] - _FIRST
_IN_HARDWARE_TILES = KERNELCAST_1.node_index["tile_counts_hardware_tiles"] - _FIRST


def tile_rows(tiles: Sequence[Tile]) -> np.ndarray:
    """(tile, tile column) float32 raw values in the order of the schema's tile columns.

    A level without bounds is as good as absent: zeros and no mark.

    Raises:
        ValueError: a level that has no slot.

    >>> row = tile_rows([Tile(levels=(("output", (4, 2)),))])[0]
    >>> names = [KERNELCAST_1.node[n].name for n in KERNELCAST_1.tile_columns]
    >>> [(name, float(value)) for name, value in zip(names, row, strict=True) if value][:3]
    [('tile_1_bound_0', 4.0), ('tile_1_bound_1', 2.0), ('tile_1_sum', 6.0)]
    """
    rows = np.zeros((len(tiles), len(_COLUMNS)), dtype=np.float32)
    for row, tile in zip(rows, tiles, strict=True):
        for name, bounds in tile.levels:
            slot = LEVEL_SLOTS.get(name)
            if slot is None:
                raise ValueError(
                    f"tile {tile} has a level {name!r}; a model knows {', '.join(LEVEL_SLOTS)}, "
                    f"at most {MAX_LEVELS}"
                )
            if bounds:
                start = slot * _SLOT_WIDTH
                row[start : start + len(bounds)] = bounds
                row[start + MAX_BOUNDS] = sum(bounds)
                row[start + MAX_BOUNDS + 1] = math.prod(bounds)
                row[_HAS + slot] = 1
        row[_IN_HARDWARE_TILES] = tile.unit == "hardware-tile"
    return rows
