"""The peaks of a machine, as `kernelcast doctor` wrote them."""

from __future__ import annotations

import json
from pathlib import Path

from kernelcast.core.analytical import Peaks
from kernelcast.errors import SchemaError
from kernelcast.report.files import read_text


def read_peaks(path: Path) -> Peaks:
    """The peaks in a report of `kernelcast doctor`.

    Raises:
        SchemaError: the file has none.
        OSError: it cannot be read.
    """
    try:
        record = json.loads(read_text(path))
        return Peaks(flops_per_s=float(record["flops_per_s"]), bytes_per_s=float(record["bytes_per_s"]))
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaError(
            f"{path} holds no peaks ({type(error).__name__}: {error}); `kernelcast doctor --out` writes them"
        ) from error
