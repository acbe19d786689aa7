"""Windows of the TPU compiler as tiles, and back."""

from __future__ import annotations

from collections.abc import Iterable

from kernelcast.core.tile import Tile, TileSet
from kernelcast.errors import TargetError
from kernelcast.features.tpugraphs_tile import UNIT
from kernelcast.hlo.program import Instruction
from kernelcast.targets.tpu import libtpu

LEVELS = ("kernel", "output", "input")


def tile_of(window: libtpu.LoggedWindow | libtpu.WindowConfig) -> Tile | None:
    """The window as a tile, minor → major; None where the compiler cuts nothing."""
    bounds = zip(LEVELS, (window.kernel, window.output, window.input), strict=True)
    levels = tuple((name, b[::-1]) for name, b in bounds if b)
    return Tile(levels=levels, unit=UNIT) if levels else None


def tiles_of(
    windows: Iterable[libtpu.LoggedWindow], default: Tile | None, *, is_complete: bool = True
) -> TileSet:
    """The valid tiles of a kernel, in the order in which the compiler considered them, each once.

    A window that is considered twice keeps its lower estimate: two emitters may take it.

    Args:
        default: the compiler's own choice.
        is_complete: whether all that it considered is here.
    """
    cycles: dict[Tile, int | None] = {}
    for window in windows:
        tile = tile_of(window)
        if tile is None:
            continue
        known = cycles.get(tile)
        new = window.cycles if 0 < window.cycles < libtpu.INT64_MAX else None
        cycles[tile] = new if known is None else known if new is None else min(known, new)
    if default is not None and default not in cycles:
        cycles[default], is_complete = None, False
    return TileSet(
        tiles=tuple(cycles),
        analytical_cycles=tuple(cycles.values()),
        default=default,
        is_complete=is_complete,
    )


def with_tile(instruction: Instruction, tile: Tile | None) -> Instruction:
    """The instruction with its windows forced, or left to the compiler for None.

    Raises:
        TargetError: the tile is none of a TPU.
    """
    if tile is None:
        return instruction.with_attribute("backend_config", None)
    bounds = dict(tile.levels)
    if tile.unit != UNIT or not set(bounds) <= set(LEVELS):
        raise TargetError(f"a TPU tile has levels {', '.join(LEVELS)} in {UNIT}, got {tile.text}")
    config = libtpu.write_window_config(**{name: b[::-1] for name, b in bounds.items()})
    return instruction.with_attribute("backend_config", config)
