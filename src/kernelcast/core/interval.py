"""How surely a median is known: an interval from the order of the values alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Distribution-free interval that holds the median of independent values with at least 90 %.

    Its ends are values. Of three or four the extremes are given, although they hold it with 75 and 87.5 %
    only; NaN under three.

    >>> median_interval([3, 1, 4, 1, 5, 9, 2, 6])
    (1, 6)
    """
    if len(values) < 3:
        return (math.nan, math.nan)
    ordered = sorted(values)
    outside = _values_outside(len(values))
    return (ordered[outside], ordered[-1 - outside])


@lru_cache
def _values_outside(count: int) -> int:
    """How many values at either end may lie outside: each end misses the median with at most 5 %.

    The median is below the value with k smaller ones where at most k of ``count`` fair coins show heads.
    """
    outside, outcomes = 0, 1 + count
    while 20 * outcomes <= 2**count:
        outside += 1
        outcomes += math.comb(count, outside + 1)
    return outside
