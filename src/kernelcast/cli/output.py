"""What commands print: results on stdout, for people or as JSON; progress and errors on stderr."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]

# The fonts that rich names lie on other machines; a viewer's own monospace font does.
_FONT_FACE = re.compile(r"@font-face \{.*?\}", re.DOTALL)

# A pipe has no width; rich would cut tables at 80 columns there.
_PIPE_WIDTH = 140
_PICTURE_WIDTH = 110


def stdout(*, record: bool = False) -> Console:
    """A console for results; with ``record`` it remembers them, for ``picture``."""
    width = _PICTURE_WIDTH if record else None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(highlight=False, width=width, record=record)


def picture(console: Console, title: str) -> str:
    """What a recording console printed, as an SVG that loads nothing from elsewhere."""
    return _FONT_FACE.sub("", console.export_svg(title=title))


def stderr() -> Console:
    """A console for progress and errors."""
    return Console(stderr=True, highlight=False)


def emit(result: object, *, as_json: bool, render: RenderableType | Sequence[RenderableType]) -> None:
    """Prints a result: the whole of it as JSON, or what is made of it for people."""
    if as_json:
        print(json.dumps(plain(result), ensure_ascii=False, indent=1))
        return
    console = stdout()
    for item in render if isinstance(render, list | tuple) else (render,):
        console.print(item)


@contextmanager
def progress() -> Generator[Progress]:
    """A progress display on stderr, with rate of finish and time left; silent where stderr is no terminal."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr(), transient=True, disable=not sys.stderr.isatty()) as display:
        yield display


def table(title: str, columns: Mapping[str, str], rows: Sequence[Sequence[str]]) -> Table:
    """A table for people.

    Args:
        columns: heading → justification (``left`` or ``right``).
    """
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for heading, justify in columns.items():
        made.add_column(heading, justify="right" if justify == "right" else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def facts(title: str, pairs: Mapping[str, object]) -> Table:
    """A table of names and values, without a head."""
    made = Table(title=title, title_justify="left", title_style="bold", show_header=False)
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name, value in pairs.items():
        made.add_row(name, str(value))
    return made


def duration(seconds: float) -> str:
    """Seconds in a readable unit, three significant digits: ``1.23 µs``, ``45.6 ms``; ``–`` for NaN."""
    if not math.isfinite(seconds):
        return "–"
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= factor:
            return f"{_three_digits(seconds / factor)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def percent(fraction: float) -> str:
    """A fraction as a percentage: ``12 %``, ``1.2 %``; ``–`` for NaN."""
    if not math.isfinite(fraction):
        return "–"
    return f"{100 * fraction:.0f} %" if abs(fraction) >= 0.1 else f"{100 * fraction:.1f} %"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def plain(value: object) -> Any:
    """A value made of what JSON can hold: dataclasses as objects, NaN and infinity as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name))
            for field in fields(value)
            if not field.name.startswith("_")
        }
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value.value, int) else value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = cast("Sequence[object]", value)
        return [
            plain(item) for item in (sorted(items, key=str) if isinstance(value, set | frozenset) else items)
        ]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Path):
        return str(value)
    as_list = getattr(value, "tolist", None)  # NumPy scalars and arrays, without importing NumPy
    return plain(as_list()) if callable(as_list) else str(value)
