"""``--record``: writing what a command measured into ``docs/results.json`` of a checkout."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
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
        command: words that name it, e.g. ``kernelcast evaluate plans``.
        make: from provenance to records.
    """
    if not wanted:
        return
    from kernelcast.report.provenance import provenance
    from kernelcast.report.results import write_records
    from kernelcast.report.tables import rewrite

    results = repository / "docs" / "results.json"
    typed = as_typed(command, sys.argv[1:], repository)
    found = list(make(provenance(typed, repository=repository, now=datetime.now(UTC))))
    write_records(results, found)
    documents = [repository / "README.md", *sorted((repository / "docs").glob("*.md"))]
    rewrite([path for path in documents if path.exists()], results)
    stderr().print(f"{len(found)} records written to {results}")


def as_typed(command: str, words: Sequence[str], repository: Path) -> str:
    """The command line that makes a record, for readers: with what changes its figures.

    Args:
        words: of the command line, without the program.
        repository: paths inside it are shown from its root, other absolute ones by their last name.
    """
    name = command.split()[1:]
    left = [word for word in words if word not in ("-v", "--verbose")]
    shown = [*command.split(), "--record"]
    if left[: len(name)] == name:  # else another program calls the command line as a library
        rest = iter(left[len(name) :])
        for word in rest:
            if word == "--repository":
                next(rest, None)
            elif word not in ("--record", "--json") and not word.startswith("--repository="):
                shown.append(_without_machine(word, repository))
    return shlex.join(shown)


def _without_machine(word: str, repository: Path) -> str:
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    path = Path(value)
    if not path.is_absolute():
        return word
    root = repository.resolve()
    shown = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return f"{option}{equals}{shown}"
