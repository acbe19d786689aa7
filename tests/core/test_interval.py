"""Intervals of medians: exact ranks, and what few values can say."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.core.interval import median_interval


@pytest.mark.parametrize(
    ("count", "outside"),
    [(3, 0), (4, 0), (5, 0), (7, 0), (8, 1), (11, 2), (12, 2), (13, 3), (20, 5), (100, 41)],
)
def test_ranks_are_those_of_the_sign_test(count: int, outside: int) -> None:
    assert median_interval(range(1, count + 1)) == (outside + 1, count - outside)


@given(st.integers(5, 200))
def test_the_interval_is_the_narrowest_that_misses_a_median_with_at_most_a_tenth(count: int) -> None:
    lower, _ = median_interval(range(count))
    misses = [Fraction(math.comb(count, k), 2**count) for k in range(count)]
    assert 2 * sum(misses[: int(lower) + 1]) <= Fraction(1, 10)
    assert 2 * sum(misses[: int(lower) + 2]) > Fraction(1, 10)


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=60))
def test_the_interval_holds_the_sample_median_in_any_order(values: list[float]) -> None:
    lower, upper = median_interval(values)
    middle = sorted(values)[(len(values) - 1) // 2 : len(values) // 2 + 1]
    assert lower <= middle[0]
    assert middle[-1] <= upper
    assert median_interval(values[::-1]) == (lower, upper)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_interval_of_too_few_is_not_known(count: int) -> None:
    assert all(map(math.isnan, median_interval([1.0] * count)))
