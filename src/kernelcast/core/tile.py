"""A tile: how a kernel's output is cut for the fast memory, level by level."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LEVELS = 3
MAX_BOUNDS = 6
_LEVEL = re.compile(r"([^\[\]\s]+)\[([0-9,]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Window bounds of one kernel.

    Attributes:
        levels: up to three (name, bounds minor → major), e.g. kernel, output and input windows on TPU.
        unit: what a bound counts: ``element`` or ``hardware-tile``.

    >>> str(Tile(levels=(("kernel", (128, 8)), ("output", (128, 4)))))
    'kernel[128,8] output[128,4]'
    """

    levels: tuple[tuple[str, tuple[int, ...]], ...]
    unit: str = "element"

    def __post_init__(self) -> None:
        if len(self.levels) > MAX_LEVELS:
            raise ValueError(f"a tile has at most {MAX_LEVELS} levels, got {len(self.levels)}")
        for name, bounds in self.levels:
            if len(bounds) > MAX_BOUNDS or any(b < 1 for b in bounds):
                raise ValueError(f"level {name}: at most {MAX_BOUNDS} bounds, each >= 1; got {bounds}")

    def __str__(self) -> str:
        return " ".join(f"{name}[{','.join(map(str, bounds))}]" for name, bounds in self.levels)

    @property
    def text(self) -> str:
        """The tile with its unit, as datasets and results hold it; ``parse_tile`` reads it.

        >>> Tile(levels=(("output", (4, 2)),), unit="hardware-tile").text
        'output[4,2] in hardware-tile'
        """
        return f"{self} in {self.unit}".strip()


def parse_tile(text: str) -> Tile:
    """The tile of a text that ``Tile.text`` made.

    Raises:
        ValueError: another text.

    >>> parse_tile("output[4,2] in element").levels
    (('output', (4, 2)),)
    """
    levels, separator, unit = text.rpartition("in ")
    matches = list(_LEVEL.finditer(levels))
    if not separator or not unit or " ".join(m.group() for m in matches) != levels.strip():
        raise ValueError(f"a tile is written like 'kernel[128,8] output[4,2] in element', got {text!r}")
    return Tile(levels=tuple((m[1], tuple(int(b) for b in m[2].split(",") if b)) for m in matches), unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSet:
    """The valid tiles of one kernel, as its compiler lists them.

    Attributes:
        tiles: each once.
        analytical_cycles: the compiler's own estimate of each; None where it has none.
        default: the compiler's choice, one of ``tiles``; None for a kernel that it does not cut.
        is_complete: whether every valid tile is listed.

    >>> small, large = (Tile(levels=(("output", (n, 1)),), unit="hardware-tile") for n in (1, 8))
    >>> listed = TileSet(tiles=(small, large), analytical_cycles=(900, 400), default=large, is_complete=True)
    >>> str(listed.analytical_best), listed.cycles_of(small)
    ('output[8,1]', 900)
    """

    tiles: tuple[Tile, ...]
    analytical_cycles: tuple[int | None, ...]
    default: Tile | None
    is_complete: bool

    def __post_init__(self) -> None:
        if len(self.tiles) != len(self.analytical_cycles):
            raise ValueError(
                f"each tile needs its cycles or None, got {len(self.tiles)} tiles and "
                f"{len(self.analytical_cycles)} numbers"
            )
        if len(set(self.tiles)) != len(self.tiles):
            raise ValueError("a tile is listed twice")
        if self.default is not None and self.default not in self.tiles:
            raise ValueError(f"the default {self.default} is not among the {len(self.tiles)} tiles")

    def __len__(self) -> int:
        return len(self.tiles)

    def cycles_of(self, tile: Tile) -> int | None:
        """The compiler's estimate of a tile.

        Raises:
            ValueError: the tile is not listed.
        """
        if tile not in self.tiles:
            raise ValueError(f"{tile} is none of the {len(self)} valid tiles")
        return self.analytical_cycles[self.tiles.index(tile)]

    @property
    def analytical_best(self) -> Tile | None:
        """The first of the tiles with the lowest estimate; None where none has one."""
        known = [(c, i) for i, c in enumerate(self.analytical_cycles) if c is not None]
        return self.tiles[min(known)[1]] if known else None
