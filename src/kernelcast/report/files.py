"""Small text files: read with a clear error, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from kernelcast.errors import SchemaError


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        SchemaError: where it is not UTF-8.
        OSError: where it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not a text file: byte {error.start} is not UTF-8") from None


def write_atomically(path: Path, text: str) -> None:
    """Writes a file such that a reader sees the old or the new text; a crash or a full disk loses neither."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
