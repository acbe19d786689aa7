"""Options that several studies share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JournalOption = Annotated[
    Path, typer.Option(help="File of finished work; run again with it, a study goes on where it was.")
]
SeedOption = Annotated[int, typer.Option(help="Of everything random.")]
CpuOption = Annotated[int | None, typer.Option(help="Processor to work on; the last one if not given.")]
ProgramOption = Annotated[
    list[str] | None, typer.Option(help="Zoo program or variant, may be repeated; all if not given.")
]
