"""A journal of finished work: JSON lines, appended one by one, so that a killed study goes on where it was.

The first line says which study wrote the file and on what; a study never appends to another's journal. A line
that a crash cut short is dropped when the journal is opened again: the work it stood for is done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kernelcast.data.durable import store_error
from kernelcast.errors import SchemaError


class Journal:
    """An open journal: the entries found, and a place to append. Use as a context manager.

    Args:
        path: of the file, made where it is missing.
        header: names the study, its schema version and everything that its entries depend on.

    Raises:
        SchemaError: the file belongs to another study, version or input.
        StoreError: the file cannot be written.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            found = path.read_bytes() if path.exists() else b""
            whole = found[: found.rfind(b"\n") + 1]
            if whole:
                self._check(whole, header)
            elif not _line(header).startswith(found):  # else a header that a crash cut short
                raise SchemaError(f"{path} is not a journal; choose another file")
            # O_APPEND: two processes that share a journal by mistake interleave lines, never bytes.
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            if len(whole) < len(found):
                os.ftruncate(self._file, len(whole))
        except OSError as error:
            raise store_error(path, error) from error
        if not whole:
            self._write(dict(header))

    def append(self, entry: Mapping[str, Any]) -> None:
        """Adds an entry; when it returns, the entry survives a crash.

        Raises:
            StoreError: e.g. on a full disk; the entries before are kept.
        """
        self._write(dict(entry))
        self.entries.append(dict(entry))

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, whole: bytes, header: Mapping[str, Any]) -> None:
        rows: list[Any] = []
        try:
            for line in whole.split(b"\n")[:-1]:
                rows.append(json.loads(line))
        except ValueError:
            raise SchemaError(f"{self.path}, line {len(rows) + 1}: not JSON; is this a journal?") from None
        expected = json.loads(json.dumps(dict(header)))
        if rows[0] != expected:
            raise SchemaError(
                f"{self.path} was written for {rows[0]}, not for {expected}; choose another file or remove it"
            )
        self.entries = rows[1:]

    def _write(self, row: Mapping[str, Any]) -> None:
        line = _line(row)
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(28, os.strerror(28))
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)
            raise store_error(self.path, error) from error


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(row), ensure_ascii=False, allow_nan=True) + "\n").encode()
