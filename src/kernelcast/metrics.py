"""Errors, ranks and intervals by which estimates are judged.

Errors are in percent (10 means 10 %), gains and regrets are ratios. No function drops a value silently: NaN
is refused with its positions, so what is left out is left out, and counted, by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np


def absolute_percentage_errors(predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """100 · |predicted − measured| / measured, one per entry.

    >>> absolute_percentage_errors(np.array([1.1, 4.0]), np.array([1.0, 2.0])).round(6).tolist()
    [10.0, 100.0]
    """
    predicted, measured = _pair(predicted, measured)
    if np.any(measured <= 0):
        raise ValueError(f"measured times must be > 0, got {measured[measured <= 0][:3]}")
    return 100.0 * np.abs(predicted - measured) / measured


def mape(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Mean absolute percentage error; NaN of nothing.

    >>> round(mape(np.array([1.1, 4.0]), np.array([1.0, 2.0])), 6)
    55.0
    """
    errors = absolute_percentage_errors(predicted, measured)
    return float(errors.mean()) if errors.size else float("nan")


def kendall_tau(first: np.ndarray, second: np.ndarray) -> float:
    """Kendall's τ-b, in O(n log² n): 1 for the same order, −1 for the reverse, corrected for ties.

    Where either side is constant, there is no order to agree with and the result is 0 (SciPy gives NaN), so
    that a model which predicts one number for all is not left out of a mean. NaN of fewer than two entries.

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])).__round__(4)
    0.3333
    """
    first, second = _pair(first, second)
    n = first.size
    if n < 2:
        return float("nan")
    x = np.unique(first, return_inverse=True)[1]
    y = np.unique(second, return_inverse=True)[1]
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    pairs = n * (n - 1) // 2
    ties_x, ties_y = _tied_pairs(x), _tied_pairs(y)
    ties_both = _tied_pairs(x * (int(y.max()) + 1) + y)
    if ties_x == pairs or ties_y == pairs:
        return 0.0
    # With x ascending, and y ascending among equal x, an inversion of y is a discordant pair.
    discordant = _inversions(y)
    concordant_minus_discordant = pairs - ties_x - ties_y + ties_both - 2 * discordant
    return float(concordant_minus_discordant / np.sqrt(float(pairs - ties_x) * float(pairs - ties_y)))


def regret(chosen_s: float, times_s: np.ndarray) -> float:
    """Time of the chosen over time of the best: 1.0 where the best was chosen.

    To be unbiased, choose by some samples and give the times of others.

    >>> regret(3.0, np.array([2.0, 3.0]))
    1.5
    """
    best_s = float(np.min(times_s))
    if not best_s > 0 or not chosen_s > 0:
        raise ValueError(f"times must be > 0, got chosen {chosen_s} and best {best_s}")
    return chosen_s / best_s


def top_k_error(predicted: np.ndarray, measured: np.ndarray, k: int) -> float:
    """Percent by which the best of the ``k`` predicted fastest is slower than the best of all.

    Equal predictions are taken in the order given.

    >>> top_k_error(np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 4.0]), k=2)
    25.0
    """
    predicted, measured = _pair(predicted, measured)
    if not 1 <= k <= predicted.size:
        raise ValueError(f"k must be in 1..{predicted.size}, got {k}")
    chosen = np.argsort(predicted, kind="stable")[:k]
    return 100.0 * (regret(float(measured[chosen].min()), measured) - 1.0)


def tile_ape(chosen_s: np.ndarray, best_s: np.ndarray) -> float:
    """100 · Σ (chosen − best) / Σ best over the kernels of a program: what its chosen tiles cost it.

    >>> tile_ape(np.array([3.0, 9.0]), np.array([2.0, 8.0]))
    20.0
    """
    chosen_s, best_s = _pair(chosen_s, best_s)
    if not np.all(best_s > 0) or np.any(chosen_s < best_s):
        raise ValueError("times must be > 0, and no chosen one below the best")
    return float(100.0 * (chosen_s - best_s).sum() / best_s.sum())


def interval_coverage(lower: np.ndarray, upper: np.ndarray, measured: np.ndarray) -> float:
    """Fraction of the measured values inside their interval, bounds included; NaN of nothing.

    >>> interval_coverage(np.array([1.0, 1.0]), np.array([2.0, 2.0]), np.array([2.0, 3.0]))
    0.5
    """
    lower, measured = _pair(lower, measured)
    upper, _ = _pair(upper, measured)
    if np.any(lower > upper):
        raise ValueError(f"{int(np.sum(lower > upper))} intervals have their lower above their upper bound")
    inside = (lower <= measured) & (measured <= upper)
    return float(inside.mean()) if inside.size else float("nan")


def by_group(
    metric: Callable[[np.ndarray, np.ndarray], float],
    predicted: np.ndarray,
    measured: np.ndarray,
    groups: Sequence[Hashable],
    *,
    at_least: int = 1,
) -> dict[Hashable, float]:
    """The metric of each group, such as a program, in order of first appearance.

    Args:
        at_least: groups with fewer entries are left out, e.g. a τ of two kernels says nothing.

    >>> by_group(mape, np.array([1.5, 3.0, 2.0]), np.array([1.0, 2.0, 2.0]), ["a", "a", "b"])
    {'a': 50.0, 'b': 0.0}
    """
    predicted, measured = _pair(predicted, measured)
    if len(groups) != predicted.size:
        raise ValueError(f"{len(groups)} groups for {predicted.size} entries")
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    return {
        group: metric(predicted[indices], measured[indices])
        for group, indices in members.items()
        if len(indices) >= at_least
    }


def bootstrap_interval(
    values: np.ndarray,
    *,
    generator: np.random.Generator,
    statistic: Callable[[np.ndarray], float] = lambda sample: float(np.median(sample)),
    level: float = 0.95,
    draws: int = 2000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic over independent units, e.g. one value per program.

    Args:
        values: (unit,) or (unit, …): whole rows are drawn with replacement.

    >>> values = np.arange(1.0, 12.0)
    >>> low, high = bootstrap_interval(values, generator=np.random.default_rng(0))
    >>> 1 < low < 6 < high < 11
    True
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape[0] < 2:
        return (float("nan"), float("nan"))
    if np.isnan(values).any():
        raise ValueError("values hold NaN: leave those units out first, and say how many")
    picks = generator.integers(values.shape[0], size=(draws, values.shape[0]))
    statistics = [statistic(values[pick]) for pick in picks]
    low, high = np.quantile(statistics, [(1 - level) / 2, (1 + level) / 2])
    return (float(low), float(high))


def _pair(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"need two arrays of one length, got shapes {first.shape} and {second.shape}")
    missing = np.flatnonzero(np.isnan(first) | np.isnan(second))
    if missing.size:
        raise ValueError(f"{missing.size} entries are NaN, e.g. number {missing[0]}: leave them out first")
    return first, second


def _tied_pairs(ranks: np.ndarray) -> int:
    counts = np.unique(ranks, return_counts=True)[1].astype(np.int64)
    return int((counts * (counts - 1) // 2).sum())


def _inversions(ranks: np.ndarray) -> int:
    """Pairs i < j with ranks[i] > ranks[j], by merging sorted blocks of doubling width together."""
    values = ranks.astype(np.int64)
    position = np.arange(values.size)
    span = int(values.max()) + 1
    total, width = 0, 1
    while width < values.size:
        block = position // (2 * width)
        in_right = (position // width) % 2 == 1
        keys = block * span + values  # ascending within each half block, and over all right halves
        left, right = keys[~in_right], keys[in_right]
        smaller = np.searchsorted(right, left, "left")
        before_block = np.searchsorted(right, block[~in_right] * span, "left")
        total += int((smaller - before_block).sum())
        values = np.sort(keys) - block * span
        width *= 2
    return total
