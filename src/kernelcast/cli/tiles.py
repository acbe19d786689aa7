"""``kernelcast tiles``: how a kernel may be cut."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from kernelcast.cli.output import JsonOption, emit, stderr, table

if TYPE_CHECKING:
    from kernelcast.jobs.tiles import TileReport


def tiles(
    kernel: Annotated[Path, typer.Argument(help="HLO of a kernel, or of a module compiled for the target.")],
    target: Annotated[str, typer.Option(help="tpu_v3, or another chip of the extra tpu.")] = "tpu_v3",
    instruction: Annotated[
        str | None, typer.Option(help="Name of the kernel, where the file holds several.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Tiles to show; --json gives all.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Lists the valid tiles of a kernel with the compiler's analytical cycles; nothing is run."""
    from kernelcast.jobs.tiles import list_tiles
    from kernelcast.targets.tpu.xla_tpu import XlaTpu

    with XlaTpu(target) as chip, stderr().status(f"asking the compiler of {target}"):
        report = list_tiles(kernel, chip, name=target, instruction=instruction)
    emit(_plain(report), as_json=as_json, render=_readable(report, limit))


def _plain(report: TileReport) -> dict[str, object]:
    listed = report.tiles
    return {
        "target": report.target,
        "instruction": report.instruction,
        "fingerprint": report.fingerprint,
        "is_complete": listed.is_complete,
        "tiles": [
            {
                "tile": dict(tile.levels),
                "unit": tile.unit,
                "analytical_cycles": cycles,
                "is_default": tile == listed.default,
            }
            for tile, cycles in zip(listed.tiles, listed.analytical_cycles, strict=True)
        ],
    }


def _readable(report: TileReport, limit: int) -> list[RenderableType]:
    """The tiles with the lowest estimates, and the default."""
    listed = report.tiles
    pairs = list(zip(listed.tiles, listed.analytical_cycles, strict=True))
    shown = heapq.nsmallest(limit, pairs, key=lambda pair: (pair[1] is None, pair[1] or 0))
    if listed.default is not None and all(tile != listed.default for tile, _ in shown):
        shown.append((listed.default, listed.cycles_of(listed.default)))
    rows = [
        [str(tile), "–" if cycles is None else f"{cycles:,}", "default" if tile == listed.default else ""]
        for tile, cycles in shown
    ]
    columns = {"tile": "left", "analytical cycles": "right", "": "left"}
    count = f"{len(shown)} of {len(listed)} valid tiles" + ("" if listed.is_complete else ", and others")
    return [
        table(f"%{report.instruction} on {report.target}", columns, rows),
        f"{count}; bounds minor → major, in hardware tiles. The cycles are the compiler's own estimate.",
    ]
