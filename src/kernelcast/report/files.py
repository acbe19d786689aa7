"""Text files of users: read with a clear error."""

from __future__ import annotations

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
