"""``kernelcast report``: the tables in the docs that are made from ``docs/results.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcast.cli.output import JsonOption, emit, table
from kernelcast.cli.recording import RepositoryOption

app = typer.Typer(help="Recorded results and the tables made from them.", no_args_is_help=True)


@app.command()
def tables(
    repository: RepositoryOption = Path(),
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail where a table is stale.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Makes the tables of README.md and docs/*.md anew from docs/results.json."""
    from kernelcast.report.tables import rewrite, stale

    documents = [
        p for p in (repository / "README.md", *sorted((repository / "docs").glob("*.md"))) if p.exists()
    ]
    results = repository / "docs" / "results.json"
    if not documents:
        raise typer.BadParameter(f"{repository} has neither README.md nor docs/*.md")
    changed = stale(documents, results) if check else rewrite(documents, results)
    word = "stale" if check else "rewritten"
    lines = [f"{word}: {path}" for path in changed] or [
        f"all tables of {len(documents)} files are up to date"
    ]
    emit({word: changed}, as_json=as_json, render="\n".join(lines))
    if check and changed:
        raise typer.Exit(1)


@app.command()
def results(
    pattern: Annotated[str, typer.Argument(help="Names to list, e.g. 'cpu.tune.*'.")] = "*",
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """The records of docs/results.json."""
    from fnmatch import fnmatchcase

    from kernelcast.report.results import read_records
    from kernelcast.report.tables import with_unit

    found = [r for r in read_records(repository / "docs" / "results.json") if fnmatchcase(r.name, pattern)]
    emit(
        found,
        as_json=as_json,
        render=table(
            f"{len(found)} results",
            {"name": "left", "value": "right", "noise": "left", "date": "left", "command": "left"},
            [[r.name, with_unit(r.value, r.unit), r.noise, r.date[:10], r.command] for r in found],
        ),
    )
