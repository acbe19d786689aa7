"""How temporary memory stretches a program's time beyond the sum of its warm kernels.

A kernel timed alone finds its inputs in the cache; inside a program whose intermediates exceed the cache it
does not. The sum of warm kernels is right where a plan needs little temporary memory and falls short by a
quarter where it needs more than the cache holds, so the factor grows with the logarithm of that memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Below this a plan's intermediates live in the caches of the processors that we met, and nothing grows.
CACHED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFactor:
    """whole ≈ Σ · scale · 2^(slope · log₂(max(1, temporary / 4 MiB))).

    Attributes:
        scale: whole over Σ of plans with little temporary memory.
        slope: growth per doubling above 4 MiB, as a power of two.
    """

    scale: float
    slope: float

    def __call__(self, temporary_bytes: float) -> float:
        """The factor for one plan."""
        return self.scale * 2 ** (self.slope * doublings(temporary_bytes))


NO_FACTOR = MemoryFactor(scale=1.0, slope=0.0)


def doublings(temporary_bytes: float) -> float:
    """How often 4 MiB must double to hold the temporary memory; 0 below."""
    return math.log2(max(1.0, temporary_bytes / CACHED_BYTES))


def fit_memory_factor(
    whole_s: Sequence[float], sums_s: Sequence[float], temporary_bytes: Sequence[int], programs: Sequence[str]
) -> MemoryFactor:
    """Least squares of log₂(whole / Σ) on the doublings; every program weighs the same.

    Where no plan exceeds 4 MiB the slope cannot be seen and is 0.
    """
    if not len(whole_s) == len(sums_s) == len(temporary_bytes) == len(programs):
        raise ValueError("whole times, sums, temporary bytes and programs must be equally long")
    if not whole_s:
        raise ValueError("a memory factor needs at least one plan")
    plans_of = Counter(programs)
    weight = np.sqrt([1 / plans_of[program] for program in programs])
    grown = np.array([doublings(b) for b in temporary_bytes])
    target = np.log2(np.asarray(whole_s) / np.asarray(sums_s))
    columns = np.stack([np.ones_like(grown), grown], axis=1)
    if not grown.any():
        columns = columns[:, :1]
    solution = np.linalg.lstsq(columns * weight[:, None], target * weight, rcond=None)[0]
    return MemoryFactor(scale=float(2 ** solution[0]), slope=float(solution[1]) if grown.any() else 0.0)
