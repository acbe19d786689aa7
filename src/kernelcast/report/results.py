"""Records of results: one JSON file, one record per name, written only by the command that it names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

from kernelcast.data.durable import write_durably
from kernelcast.errors import SchemaError
from kernelcast.report.files import read_text

_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_-]+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One number with where it comes from.

    Attributes:
        name: dotted, lower case, e.g. ``cpu.additivity.tau_median``.
        value: errors in percent (10 = 10 %), fractions 0–1, gains and regret as ratios, times in seconds.
        unit: ``%``, ``ratio``, ``fraction``, ``count``, ``1/s``, ``s`` …
        command: the command line that writes it; no other may.
        commit: of the code that ran, with ``+changes`` where the checkout was not clean.
        machine: processor and number of CPUs.
        versions: of Python and the libraries that matter.
        seeds: all that the number depends on.
        split: the split or the file that fixed what was measured, or "none".
        noise: interval, A/A control or spread, in words.
        date: ISO, UTC.

    >>> record = Record(
    ...     name="cpu.tune.gain.rbf", value=1.6, unit="ratio", command="kernelcast evaluate tuning --record",
    ...     commit="0123456789ab", machine="A CPU, 2 CPUs", versions={"python": "3.11.2"}, seeds=(0,),
    ...     split="none", noise="A/A 1.003", date="2026-01-01T00:00:00Z",
    ... )
    >>> record.value, record.unit
    (1.6, 'ratio')
    """

    name: str
    value: float
    unit: str
    command: str
    commit: str
    machine: str
    versions: Mapping[str, str]
    seeds: tuple[int, ...]
    split: str
    noise: str
    date: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a record's name is dotted and lower case, e.g. cpu.tune.gain.rbf; got {self.name!r}"
            )
        if not math.isfinite(self.value):
            raise ValueError(f"{self.name}: a record's value is a finite number, got {self.value}")


def read_records(path: Path) -> list[Record]:
    """The records of a file, in file order; none where the file does not exist.

    Raises:
        SchemaError: on a file that holds something else.
    """
    if not path.exists():
        return []
    try:
        rows: Any = json.loads(read_text(path))
    except ValueError as error:
        raise SchemaError(f"{path} is not a results file: {error}") from None
    if not isinstance(rows, list):
        raise SchemaError(f"{path} is not a results file: expected a list of records")
    records = [_record(row, path) for row in rows]
    names = [record.name for record in records]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"{path} holds two records named {', '.join(twice)}; keep the newer one")
    return records


def write_records(path: Path, new: Iterable[Record]) -> None:
    """Puts records into a file in place of those of the same name, which move to the history beside it.

    Raises:
        SchemaError: where a record of that name belongs to another command.
    """
    old = {record.name: record for record in read_records(path)}
    new = list(new)
    for record in new:
        before = old.get(record.name)
        if before is not None and _owner(before.command) != _owner(record.command):
            raise SchemaError(
                f"{record.name} in {path} is written by `{_owner(before.command)}`, "
                f"not by `{_owner(record.command)}`"
            )
    replaced = [old[record.name] for record in new if record.name in old]
    if replaced:
        history = read_history(path)
        _write(history_path(path), [*history, *replaced])
    merged = old | {record.name: record for record in new}
    _write(path, [merged[name] for name in sorted(merged)])


def history_path(path: Path) -> Path:
    """Where the replaced records of a results file are kept."""
    return path.with_name(f"{path.stem}-history{path.suffix}")


def read_history(path: Path) -> list[Record]:
    """The replaced records of a results file, the oldest first."""
    file = history_path(path)
    return [_record(row, file) for row in json.loads(read_text(file))] if file.exists() else []


def _owner(command: str) -> str:
    """The words of a command line before its first option: who may write the record."""
    words = command.split()
    return " ".join(words[: next((i for i, word in enumerate(words) if word.startswith("-")), len(words))])


def _record(row: Any, path: Path) -> Record:
    expected = [field.name for field in fields(Record)]
    if not isinstance(row, dict) or sorted(cast("dict[str, Any]", row)) != sorted(expected):
        raise SchemaError(f"{path}: a record has the fields {', '.join(expected)}; got {_brief(row)}")
    values = cast("dict[str, Any]", row)
    try:
        converted: dict[str, Any] = {"value": float(values["value"]), "seeds": tuple(values["seeds"])}
        return Record(**{**values, **converted})
    except (TypeError, ValueError) as error:
        raise SchemaError(f"{path}: {error}") from None


def _brief(row: object) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _write(path: Path, records: Sequence[Record]) -> None:
    rows = [{**asdict(record), "seeds": list(record.seeds)} for record in records]
    write_durably(path, (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode())
