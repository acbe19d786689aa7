"""Timings: every statistic of raw samples by hand."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.core.timing import GATE, Clock, Failure, Reason, Sample, Statistic, Timing, joined

MEDIAN, MIN_DIFFERENCE = Statistic.GATED_MEDIAN, Statistic.GATED_MIN_DIFFERENCE


def sample(runs: int, seconds: float, round: int = 0, loudness: float = 1.0) -> Sample:
    return Sample(runs=runs, seconds=seconds, loudness=loudness, round=round)


def timing(samples: Iterable[Sample], overhead_s: float = 0.0) -> Timing:
    return Timing(samples=tuple(samples), clock=Clock.WALL, method="loop-slope", overhead_s=overhead_s)


def loops(slopes: Iterable[float], start: float = 5.0) -> list[Sample]:
    """A short loop of 10 and a long one of 110 runs in each round."""
    return [
        s
        for r, slope in enumerate(slopes)
        for s in (sample(10, start, r), sample(110, start + 100 * slope, r))
    ]


def test_a_slope_is_the_difference_of_a_long_and_a_short_loop() -> None:
    two = timing([sample(10, 3.0), sample(110, 5.0), sample(10, 4.0, 1), sample(110, 8.0, 1)])
    assert two.slopes_s().tolist() == [0.02, 0.04]
    assert two.seconds() == pytest.approx(0.03)


def test_the_order_within_a_round_and_between_rounds_does_not_matter() -> None:
    mixed = timing([sample(110, 8.0, 1), sample(110, 5.0), sample(10, 3.0), sample(10, 4.0, 1)])
    assert sorted(mixed.slopes_s().tolist()) == [0.02, 0.04]


def test_rounds_of_equal_runs_give_a_number_per_sample() -> None:
    whole = timing([sample(1, 2.0), sample(1, 4.0), sample(4, 12.0, 1)])
    assert whole.slopes_s().tolist() == [2.0, 4.0, 3.0]
    assert whole.seconds() == 3.0


def test_the_empty_iteration_is_subtracted_from_every_statistic() -> None:
    bare, with_overhead = (
        timing(loops([0.02, 0.03, 0.05])),
        timing(loops([0.02, 0.03, 0.05]), overhead_s=0.01),
    )
    for statistic in Statistic:
        assert with_overhead.seconds(statistic) == pytest.approx(bare.seconds(statistic) - 0.01)
    once = timing([sample(2, 6.0), sample(2, 8.0, 1)], overhead_s=1.0)
    assert (once.seconds(MEDIAN), once.seconds(MIN_DIFFERENCE)) == (2.5, 2.0)


def test_a_falling_slope_is_given_as_it_is() -> None:
    falling = timing([sample(10, 5.0), sample(110, 4.0)])
    assert falling.seconds() == pytest.approx(-0.01)


def test_the_minimum_difference_takes_the_least_of_each_length_over_all_rounds() -> None:
    rounds = [sample(10, 3.0), sample(110, 9.0), sample(10, 4.0, 1), sample(110, 6.0, 1)]
    assert timing(rounds).seconds(MIN_DIFFERENCE) == pytest.approx((6.0 - 3.0) / 100)
    assert timing(rounds).seconds(MEDIAN) == pytest.approx((0.06 + 0.02) / 2)


@pytest.mark.parametrize(
    ("loudness", "gated"),
    [(1.0, True), (GATE, True), (GATE + 1e-9, False), (math.inf, False), (math.nan, True)],
)
def test_the_gate_closes_above_eight_percent_and_is_open_without_a_sentinel(
    loudness: float, gated: bool
) -> None:
    assert sample(1, 1.0, loudness=loudness).gated is gated


def test_one_loud_sample_costs_its_whole_round() -> None:
    samples = [*loops([0.02, 0.03]), sample(10, 1.0, 2), sample(110, 9.0, 2, loudness=1.5)]
    assert timing(samples).slopes_s() == pytest.approx([0.02, 0.03])
    assert timing(samples).slopes_s(gated=False) == pytest.approx([0.02, 0.03, 0.08])
    assert timing(samples).quiet_share == pytest.approx(5 / 6)
    assert timing(samples).seconds(MEDIAN) == pytest.approx(0.025)


def test_without_a_quiet_round_there_is_no_number() -> None:
    loud = timing(replace(s, loudness=1.2) for s in loops([0.02, 0.03, 0.04]))
    assert all(math.isnan(loud.seconds(statistic)) for statistic in Statistic)
    assert all(map(math.isnan, loud.interval_s()))
    half = timing(
        [sample(10, 1.0), sample(110, 2.0, loudness=1.2), sample(10, 1.0, 1, 1.2), sample(110, 2.0, 1)]
    )
    assert math.isnan(half.seconds(MIN_DIFFERENCE)), "quiet samples, but no quiet round"
    assert half.quiet_share == 0.5


def test_the_interval_is_of_the_gated_slopes_less_the_overhead() -> None:
    eight = timing(loops([0.01 * n for n in range(1, 9)]), overhead_s=0.01)
    assert eight.interval_s() == pytest.approx((0.01, 0.06))
    assert all(map(math.isnan, timing(loops([0.01, 0.02])).interval_s()))


@pytest.mark.parametrize(
    ("runs", "seconds"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, -1.0), (1, math.nan), (1, math.inf)]
)
def test_samples_that_measure_nothing_are_refused(runs: int, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"runs >= 1 and finite seconds > 0, got Sample\("):
        timing([sample(1, 1.0), sample(runs, seconds)])


def test_no_sample_is_a_failure_not_a_timing() -> None:
    with pytest.raises(ValueError, match="at least one sample; what was not measured is a Failure"):
        timing([])


def test_joined_visits_keep_their_rounds_apart() -> None:
    first, second = (
        timing(loops([0.02, 0.04]), overhead_s=0.001),
        timing(loops([0.06], start=50.0), overhead_s=0.003),
    )
    both = joined([first, second])
    assert [s.round for s in both.samples] == [0, 0, 1, 1, 2, 2]
    assert both.overhead_s == pytest.approx(0.002)
    assert both.slopes_s() == pytest.approx([0.018, 0.038, 0.058])
    assert joined([first]) == first


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=4))
def test_joining_loses_no_sample_and_mixes_no_round(visits: list[list[int]]) -> None:
    timings = [timing(sample(1, 1.0 + n, n) for n in rounds) for rounds in visits]
    both = joined(timings)
    assert [s.seconds for s in both.samples] == [s.seconds for t in timings for s in t.samples]
    assert len({s.round for s in both.samples}) == sum(len(set(rounds)) for rounds in visits)


def test_only_timings_of_one_kind_are_joined() -> None:
    one = timing(loops([0.02]))
    for other in (
        replace(one, clock=Clock.DEVICE),
        replace(one, method="whole-program"),
        replace(one, cache="cold"),
    ):
        with pytest.raises(ValueError, match="one clock, method and cache state, got 2 of several"):
            joined([one, other])
    with pytest.raises(ValueError, match="got 0"):
        joined([])


def test_a_failure_says_its_reason_first() -> None:
    assert str(Failure(reason=Reason.TOO_LOUD, message="2 of 3 rounds")) == "too-loud: 2 of 3 rounds"
