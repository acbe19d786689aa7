"""The roofline: a kernel takes as long as its arithmetic or its memory traffic, whichever is longer."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelcast.errors import SchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What a machine can do at most; measured once by ``kernelcast doctor``.

    Attributes:
        flops_per_s: floating-point operations per second of one thread.
        bytes_per_s: bytes per second between one thread and main memory.
    """

    flops_per_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value}")


def roofline_seconds(flops: float, bytes_accessed: float, peaks: Peaks) -> float:
    """max(FLOPs / peak, bytes / bandwidth) in seconds.

    >>> roofline_seconds(2e9, 1e9, Peaks(flops_per_s=1e10, bytes_per_s=1e10))
    0.2
    """
    return max(flops / peaks.flops_per_s, bytes_accessed / peaks.bytes_per_s)


def read_peaks(path: Path) -> Peaks:
    """The peaks in a JSON file, ``{"flops_per_s": …, "bytes_per_s": …}`` among other fields.

    Raises:
        SchemaError: no such file, or no positive numbers in it.
    """
    try:
        held: Any = json.loads(path.read_text(encoding="utf-8"))
        return Peaks(flops_per_s=float(held["flops_per_s"]), bytes_per_s=float(held["bytes_per_s"]))
    except OSError as error:
        raise SchemaError(
            f"cannot read the peaks {path}: {error.strerror}; run `kernelcast doctor`"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise SchemaError(
            f"{path} does not hold the positive numbers flops_per_s and bytes_per_s: run `kernelcast doctor`"
        ) from None
