"""A dataset folder: read by anybody, written by one process at a time.

Layout: ``manifest.json``, ``parts/*.parquet``, ``lock``. See ``docs/file-formats.md``.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from kernelcast.core.identity import TargetIdentity
from kernelcast.data.durable import TEMPORARY_SUFFIX, store_error, write_durably
from kernelcast.data.manifest import (
    MANIFEST,
    PARTS,
    Manifest,
    Part,
    check_target,
    new_manifest,
    read_manifest,
    write_manifest,
)
from kernelcast.data.parquet import decode, decode_columns, encode
from kernelcast.data.rule import LabelRule
from kernelcast.data.schema import ROW_TYPES, Row, RowT, columns_digest
from kernelcast.errors import SchemaError, StoreError

_LOG = logging.getLogger(__name__)
LOCK = "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset as it was when opened; later commits by others are not seen."""

    folder: Path
    manifest: Manifest

    @staticmethod
    def open(folder: Path, *, target: TargetIdentity | None = None) -> Dataset:
        """The dataset in a folder.

        Args:
            target: what the times must have been measured on; None accepts any.

        Raises:
            StoreError: not a dataset, or one that cannot be read.
            SchemaError: another schema or another target.
        """
        manifest = read_manifest(folder)
        if target is not None:
            check_target(folder, manifest, target)
        return Dataset(folder=folder, manifest=manifest)

    def rows(self, row_type: type[RowT]) -> Iterator[RowT]:
        """The rows of a table in the order written, a part at a time in memory."""
        for content in self._contents(row_type):
            yield from decode(row_type, content)

    def columns(self, row_type: type[Row], *names: str) -> Iterator[tuple[Any, ...]]:
        """The values of some columns, row by row; far cheaper than ``rows`` where few columns matter."""
        for content in self._contents(row_type):
            yield from zip(*decode_columns(row_type, content, names).values(), strict=True)

    def count(self, row_type: type[Row]) -> int:
        """How many rows a table has."""
        return sum(part.rows for part in self.manifest.of_table(row_type.TABLE))

    def _contents(self, row_type: type[Row]) -> Iterator[bytes]:
        for part in self.manifest.of_table(row_type.TABLE):
            yield read_part(self.folder, part)


def read_part(folder: Path, part: Part) -> bytes:
    """The content of one part, checked against the manifest.

    Raises:
        StoreError: the part is missing, cut short or changed.
    """
    path = folder / PARTS / part.file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}; {_REMEDY}") from error
    if len(content) != part.bytes:
        raise StoreError(f"{path} has {len(content)} bytes where the manifest says {part.bytes}; {_REMEDY}")
    if _digest(content) != part.digest:
        raise StoreError(f"{path} was changed after it was written: its digest differs; {_REMEDY}")
    return content


_SURVEY_TABLES = frozenset({"kernels", "programs", "plans", "occurrences", "surveys"})
_REMEDY = (
    "restore it from a copy, or drop it with `kernelcast collect --drop-damaged` and measure those again"
)


def verify(folder: Path) -> list[str]:
    """What is wrong with a dataset, in words; empty where nothing is.

    Reads every part: bytes against the manifest, unique keys, and that each measured kernel has a row.
    """
    dataset = Dataset.open(folder)
    problems: list[str] = []
    keys: dict[str, Counter[tuple[object, ...]]] = {t.TABLE: Counter() for t in ROW_TYPES}
    for row_type in ROW_TYPES:
        for part in dataset.manifest.of_table(row_type.TABLE):
            try:
                columns = decode_columns(row_type, read_part(folder, part), row_type.KEY)
            except (StoreError, SchemaError) as error:
                problems.append(str(error))
                continue
            keys[row_type.TABLE].update(zip(*columns.values(), strict=True))
        repeated = [key for key, count in keys[row_type.TABLE].items() if count > 1]
        if repeated:
            problems.append(f"{row_type.TABLE}: {len(repeated)} keys are there twice, e.g. {repeated[0]}")
    missing = sorted({str(key[1]) for key in keys["measurements"]} - {str(key[0]) for key in keys["kernels"]})
    if missing:
        problems.append(f"measurements: {len(missing)} kernels have no text, e.g. {missing[0]}")
    return problems


class Writer:
    """The one process that may write a dataset; holds its lock from opening to closing.

    Every commit is a transaction over tables: after a crash either all its rows are there or none.
    """

    def __init__(self, folder: Path, manifest: Manifest, lock: IO[str]) -> None:
        """Use ``Writer.open``."""
        self.folder = folder
        self.manifest = manifest
        self._lock = lock

    @staticmethod
    def open(folder: Path, *, target: TargetIdentity, rule: LabelRule) -> Writer:
        """Opens a dataset for writing, or creates it.

        Leftovers of a killed writer are removed: files that no manifest names.

        Raises:
            StoreError: the folder cannot be written, another process writes it, or it holds parts of which no
                manifest says whose they are.
            SchemaError: it was made with another schema, target or rule.
        """
        try:
            (folder / PARTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise store_error(folder, error) from error
        lock = _take_lock(folder)
        try:
            if not (folder / MANIFEST).exists():
                _refuse_orphans(folder)
                write_manifest(folder, new_manifest(target, rule))
            manifest = read_manifest(folder)
            check_target(folder, manifest, target)
            if manifest.rule != rule:
                raise SchemaError(
                    f"{folder} was made with {manifest.rule}, not {rule}: "
                    "leave the rule out to use the dataset's own, or use another folder"
                )
            _remove_leftovers(folder, manifest)
        except BaseException:
            lock.close()
            raise
        return Writer(folder, manifest, lock)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.close()

    def dataset(self) -> Dataset:
        """What is committed so far."""
        return Dataset(folder=self.folder, manifest=self.manifest)

    def commit(self, *tables: Sequence[Row]) -> None:
        """Adds rows, all of them or none; each argument holds rows of one table, and may be empty.

        Raises:
            StoreError: nothing of this commit was added.
        """
        added = [_write_part(self.folder, rows) for rows in tables if rows]
        if added:
            self._publish(replace(self.manifest, parts=(*self.manifest.parts, *added)))

    def rewrite(self, parts: Iterable[Sequence[Row]]) -> None:
        """Replaces the whole content, atomically; the old parts go once the new manifest is in place.

        Args:
            parts: the rows of each new part.
        """
        written = [_write_part(self.folder, rows) for rows in parts if rows]
        self._publish(replace(self.manifest, parts=tuple(written)))
        _remove_leftovers(self.folder, self.manifest)

    def drop_damaged(self) -> list[str]:
        """Takes the damaged parts out of the dataset, so that what they held is collected again.

        Plans and their occurrences only make sense together: where a part of a survey is damaged, all surveys
        go, and the next collection of the same programs makes the same ones again.

        Returns:
            What was wrong with each.
        """
        kept: list[Part] = []
        problems: list[str] = []
        tables: set[str] = set()
        for part in self.manifest.parts:
            try:
                read_part(self.folder, part)
                kept.append(part)
            except StoreError as error:
                problems.append(str(error))
                tables.add(part.table)
        if tables & _SURVEY_TABLES:
            kept = [part for part in kept if part.table not in _SURVEY_TABLES - {"kernels", "programs"}]
        if problems:
            self._publish(replace(self.manifest, parts=tuple(kept)))
        return problems

    def _publish(self, manifest: Manifest) -> None:
        manifest = replace(manifest, columns=columns_digest())  # an older dataset may now hold newer tables
        write_manifest(self.folder, manifest)
        self.manifest = manifest


def _refuse_orphans(folder: Path) -> None:
    # A new dataset gets its manifest before its first part, so these are not leftovers of one.
    if any((folder / PARTS).glob("*.parquet")):
        raise StoreError(
            f"{folder / PARTS} holds Parquet files and {folder} no {MANIFEST}: restore that file, or choose "
            "another folder"
        )


def _take_lock(folder: Path) -> IO[str]:
    # flock is released by the kernel when the process ends, however it ends: no stale locks.
    try:
        lock = (folder / LOCK).open("a+")
    except OSError as error:
        raise store_error(folder / LOCK, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        raise StoreError(
            f"{folder} is being written by another process (id {owner}): wait for it, or use another folder"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def _write_part(folder: Path, rows: Sequence[Row]) -> Part:
    content = encode(type(rows[0]), rows)
    table, digest = rows[0].TABLE, _digest(content)
    file = f"{table}-{digest[:16]}.parquet"
    write_durably(folder / PARTS / file, content)
    return Part(table=table, file=file, rows=len(rows), bytes=len(content), digest=digest)


def _remove_leftovers(folder: Path, manifest: Manifest) -> None:
    named = {part.file for part in manifest.parts}
    for path in sorted((folder / PARTS).iterdir()):
        if path.name not in named and (path.suffix == ".parquet" or path.name.endswith(TEMPORARY_SUFFIX)):
            _LOG.info("removed %s, left by a writer that was killed", path.name)
            path.unlink()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
