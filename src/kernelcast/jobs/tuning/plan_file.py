"""A plan in a file: by itself, or as the answer of a tuning result."""

from __future__ import annotations

from pathlib import Path

from kernelcast.errors import PlanError
from kernelcast.jobs.as_json import Choice, decode_choice
from kernelcast.jobs.tuning.result_file import FORMAT, read_tuning
from kernelcast.report.files import read_text


def read_choice(path: Path) -> Choice:
    """The plan, or the default, that a file names.

    Args:
        path: of a plan's JSON, the word ``untouched`` or ``library-off``, or a tuning result.

    Raises:
        PlanError: the file holds none of these.
        SchemaError: a damaged tuning result.
        OSError: it cannot be read.
    """
    text = read_text(path).strip()
    if f'"format": "{FORMAT}"' in text[:200]:
        return read_tuning(path).answer
    try:
        return decode_choice(text)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error
