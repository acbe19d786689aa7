"""Metrics against closed forms, SciPy and brute force."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kernelcast import metrics

_PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=60)


def test_errors_in_percent() -> None:
    predicted, measured = np.array([1.0, 3.0, 2.0]), np.array([2.0, 2.0, 2.0])
    assert metrics.absolute_percentage_errors(predicted, measured).tolist() == [50.0, 50.0, 0.0]
    assert metrics.mape(predicted, measured) == pytest.approx(100 / 3)
    assert np.isnan(metrics.mape(np.array([]), np.array([])))


@pytest.mark.parametrize(
    ("predicted", "measured", "message"),
    [
        ([1.0, np.nan], [1.0, 1.0], "1 entries are NaN, e.g. number 1"),
        ([1.0], [1.0, 1.0], r"shapes \(1,\) and \(2,\)"),
        ([1.0], [0.0], "must be > 0"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    predicted: list[float], measured: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.mape(np.array(predicted), np.array(measured))


def test_tau_by_hand() -> None:
    up = np.arange(5.0)
    assert metrics.kendall_tau(up, up * 3) == 1.0
    assert metrics.kendall_tau(up, -up) == -1.0
    # 5 of 6 pairs: x has one tie, so 5 are comparable in x and 6 in y; 4 agree, 1 does not.
    assert metrics.kendall_tau(np.array([1, 1, 2, 3]), np.array([2, 1, 4, 3])) == pytest.approx(
        3 / np.sqrt(30)
    )


def test_tau_of_a_constant_is_zero_and_of_nothing_is_nan() -> None:
    assert metrics.kendall_tau(np.ones(4), np.arange(4.0)) == 0.0
    assert metrics.kendall_tau(np.arange(4.0), np.ones(4)) == 0.0
    assert np.isnan(metrics.kendall_tau(np.array([1.0]), np.array([1.0])))
    with pytest.raises(ValueError, match="NaN"):
        metrics.kendall_tau(np.array([1.0, np.nan]), np.array([1.0, 2.0]))


@given(_PAIRS)
def test_tau_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert metrics.kendall_tau(x, y) == 0.0
    else:
        assert metrics.kendall_tau(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@given(_PAIRS)
def test_tau_is_symmetric_and_ignores_monotone_maps(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    assert metrics.kendall_tau(x, y) == pytest.approx(metrics.kendall_tau(y, x), abs=1e-12)
    assert metrics.kendall_tau(x, np.exp(y)) == metrics.kendall_tau(x, y)
    assert metrics.kendall_tau(x, -y) == pytest.approx(-metrics.kendall_tau(x, y), abs=1e-12)


def test_tau_of_many_is_fast() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=200_000)
    begin = time.perf_counter()
    value = metrics.kendall_tau(x, x + generator.normal(size=x.size))
    assert time.perf_counter() - begin < 5
    assert value == pytest.approx(0.5, abs=0.01)  # 2/π · arcsin(1/√2)


def test_regret_and_top_k() -> None:
    measured = np.array([2.0, 1.0, 4.0])
    assert metrics.regret(2.0, measured) == 2.0
    assert metrics.top_k_error(np.array([1.0, 2.0, 3.0]), measured, 1) == 100.0
    assert metrics.top_k_error(np.array([1.0, 2.0, 3.0]), measured, 2) == 0.0
    assert metrics.top_k_error(np.zeros(3), measured, 1) == 100.0
    with pytest.raises(ValueError, match=r"k must be in 1\.\.3, got 4"):
        metrics.top_k_error(measured, measured, 4)
    with pytest.raises(ValueError, match="must be > 0"):
        metrics.regret(1.0, np.array([0.0, 1.0]))


def test_coverage_counts_bounds_as_inside() -> None:
    assert metrics.interval_coverage(np.array([1, 2, 3]), np.array([2, 3, 4]), np.array([2, 4, 3])) == 2 / 3
    with pytest.raises(ValueError, match="1 intervals"):
        metrics.interval_coverage(np.array([3.0]), np.array([2.0]), np.array([2.0]))


def test_groups_keep_their_order_and_drop_small_ones() -> None:
    predicted, measured = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    assert metrics.by_group(metrics.mape, predicted, measured, ["b", "a", "b"]) == {"b": 50.0, "a": 100.0}
    assert metrics.by_group(metrics.mape, predicted, measured, ["b", "a", "b"], at_least=2) == {"b": 50.0}


def test_bootstrap_interval_covers_the_median() -> None:
    inside = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        low, high = metrics.bootstrap_interval(generator.normal(size=40), generator=generator, draws=300)
        assert low < high
        inside += low <= 0 <= high
    assert inside >= 50  # 95 % of 60 are 57
    assert np.isnan(metrics.bootstrap_interval(np.array([1.0]), generator=np.random.default_rng(0))).all()


def test_bootstrap_is_reproducible_and_takes_rows() -> None:
    rows = np.random.default_rng(1).normal(size=(20, 2))
    mean_difference = lambda sample: float((sample[:, 0] - sample[:, 1]).mean())  # noqa: E731
    first, second = (
        metrics.bootstrap_interval(rows, generator=np.random.default_rng(7), statistic=mean_difference)
        for _ in range(2)
    )
    assert first == second


def test_tile_ape_weighs_kernels_by_their_best_time():
    assert metrics.tile_ape(np.array([2.0, 100.0]), np.array([1.0, 100.0])) == pytest.approx(100 / 101)
    assert metrics.tile_ape(np.array([1.0]), np.array([1.0])) == 0
    for chosen, best in (([1.0], [2.0]), ([1.0], [0.0])):
        with pytest.raises(ValueError, match="no chosen one below the best"):
            metrics.tile_ape(np.array(chosen), np.array(best))
