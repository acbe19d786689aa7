"""A tile: how a kernel's output is cut for the fast memory, level by level."""

from __future__ import annotations

from dataclasses import dataclass

MAX_LEVELS = 3
MAX_BOUNDS = 6


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
