"""The roofline: a kernel takes as long as its arithmetic or its memory traffic, whichever is longer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass


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
