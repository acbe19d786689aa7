"""Tables in Markdown files, made from the records between two markers, each at the start of a line.

``<!-- results:cpu.tune.gain.* -->`` … ``<!-- /results -->`` lists the records whose names match the pattern;
``<!-- results-by:cpu.tune.gain*.* -->`` … gives a row per last-but-one and a column per last word of the
names that match, word for word;
``<!-- results-history -->`` … lists the values that newer ones replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kernelcast.data.durable import write_durably
from kernelcast.errors import SchemaError
from kernelcast.report.files import read_text
from kernelcast.report.results import Record, read_history, read_records

_BLOCK = re.compile(
    r"^(?P<open><!-- (?P<kind>results(?:-by|-history)?)(?::(?P<what>\S+))? -->\n)"
    r".*?^(?P<close><!-- /results -->)",
    re.DOTALL | re.MULTILINE,
)
_OPEN = re.compile(r"^<!-- results", re.MULTILINE)
_CLOSE = re.compile(r"^<!-- /results -->", re.MULTILINE)


def rewrite(documents: Sequence[Path], results: Path) -> list[Path]:
    """Makes the tables of some documents anew and returns the documents that changed."""
    changed: list[Path] = []
    for document in documents:
        old = read_text(document)
        new = with_tables(old, results, place=str(document))
        if new != old:
            write_durably(document, new.encode())
            changed.append(document)
    return changed


def stale(documents: Sequence[Path], results: Path) -> list[Path]:
    """The documents whose tables differ from the records."""
    return [d for d in documents if with_tables(text := read_text(d), results, place=str(d)) != text]


def with_tables(text: str, results: Path, *, place: str) -> str:
    """The text of a document with each table made anew."""
    records, history = read_records(results), read_history(results)
    if len(_OPEN.findall(text)) != len(_CLOSE.findall(text)):
        raise SchemaError(f"{place}: each <!-- results… --> needs one <!-- /results --> after it")

    def fill(block: re.Match[str]) -> str:
        kind, what = block["kind"], block["what"] or ""
        if kind == "results-history":
            table = history_table(history)
        elif kind == "results-by":
            table = pivot([r for r in records if _matches_by_word(r.name, what)])
        else:
            table = listing([r for r in records if fnmatchcase(r.name, what)])
        return f"{block['open']}{table}{block['close']}"

    return _BLOCK.sub(fill, text)


def listing(records: Sequence[Record]) -> str:
    """One row per record."""
    if not records:
        return _NOTHING
    rows = [["result", "value", "noise", "split", "date"]]
    rows += [[f"`{r.name}`", with_unit(r.value, r.unit), r.noise, r.split, r.date[:10]] for r in records]
    return markdown(rows) + sources(records)


def pivot(records: Sequence[Record]) -> str:
    """One row and one column per last-but-one and last word of the names."""
    if not records:
        return _NOTHING
    cells: dict[tuple[str, str], str] = {}
    for record in records:
        row, column = record.name.split(".")[-2:]
        cells[row, column] = with_unit(record.value, record.unit)
    columns = list(dict.fromkeys(column for _, column in cells))
    rows = [["", *columns]]
    for name in dict.fromkeys(row for row, _ in cells):
        rows.append([name, *(cells.get((name, column), "") for column in columns)])
    return markdown(rows) + sources(records)


def _matches_by_word(name: str, pattern: str) -> bool:
    words, wanted = name.split("."), pattern.split(".")
    return len(words) == len(wanted) and all(map(fnmatchcase, words, wanted))


def history_table(history: Sequence[Record]) -> str:
    """One row per replaced record, the newest first; figures of single programs are left to the file."""
    shown = [r for r in reversed(history) if ".program." not in r.name]
    if not shown:
        return "\nNothing has been replaced yet.\n\n"
    rows = [["result", "value", "noise", "commit", "date"]]
    rows += [[f"`{r.name}`", with_unit(r.value, r.unit), r.noise, r.commit, r.date[:10]] for r in shown]
    return markdown(rows)


def sources(records: Sequence[Record]) -> str:
    """One line per command that made the records: how to get them again, where they were got."""
    lines = dict.fromkeys(
        f"`{r.command}` at {r.commit}, seeds {', '.join(map(str, r.seeds)) or 'none'}, {r.machine}, "
        f"{' '.join(f'{k} {v}' for k, v in r.versions.items() if k in ('python', 'jax'))}"
        for r in records
    )
    return "\n".join(["Made by " + line + ".\n" for line in lines]) + "\n"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is the head."""
    head, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def with_unit(value: float, unit: str) -> str:
    """A value with four significant digits and its unit, e.g. ``12.34 %``, ``1.25×``, ``10,213``."""
    if unit == "count":
        return f"{value:,.0f}"
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return {"%": f"{number} %", "ratio": f"{number}×", "fraction": number}.get(unit, f"{number} {unit}")


_NOTHING = "\nNot measured yet.\n\n"
