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
