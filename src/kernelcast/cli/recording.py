"""``--record``: writing what a command measured into ``docs/results.json`` of a checkout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelcast.cli.output import stderr

if TYPE_CHECKING:
    from kernelcast.report.provenance import Provenance
    from kernelcast.report.results import Record

RecordOption = Annotated[
    bool, typer.Option("--record", help="Write the figures to docs/results.json and renew the docs' tables.")
]
RepositoryOption = Annotated[
    Path, typer.Option("--repository", help="Root of the checkout whose docs are meant.", file_okay=False)
]


def record(
    command: str, repository: Path, make: Callable[[Provenance], Iterable[Record]], *, wanted: bool
) -> None:
    """Writes the records of a command, where that is wanted.

    Args:
        command: as a reader would type it, without options that change no figure.
        make: from provenance to records.
    """
    if not wanted:
        return
    from kernelcast.report.provenance import provenance
    from kernelcast.report.results import write_records
    from kernelcast.report.tables import rewrite

    results = repository / "docs" / "results.json"
    found = list(make(provenance(f"{command} --record", repository=repository, now=datetime.now(UTC))))
    write_records(results, found)
    documents = [repository / "README.md", *sorted((repository / "docs").glob("*.md"))]
    rewrite([path for path in documents if path.exists()], results)
    stderr().print(f"{len(found)} records written to {results}")
