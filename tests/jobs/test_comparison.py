"""Comparing two programs round by round."""

import math

from kernelcast.core.timing import Clock, Sample, Timing
from kernelcast.jobs.comparison import time_ratio


def timing(seconds: dict[int, float], loud: frozenset[int] = frozenset(), runs: int = 1) -> Timing:
    return Timing(
        samples=tuple(
            Sample(runs=runs, seconds=s * runs, loudness=2.0 if r in loud else 1.0, round=r)
            for r, s in seconds.items()
        ),
        clock=Clock.WALL,
        method="whole-program",
    )


def test_a_loud_stretch_cancels_inside_its_rounds() -> None:
    base = {r: 1.0 if r < 10 else 1.9 for r in range(20)}
    found = time_ratio(timing({r: 0.5 * s for r, s in base.items()}), timing(base, runs=4))
    assert (found.value, found.lower, found.upper, found.rounds) == (0.5, 0.5, 0.5, 20)


def test_parities_see_their_rounds_only() -> None:
    ours = timing({r: 1.0 if r % 2 else 2.0 for r in range(12)})
    theirs = timing(dict.fromkeys(range(12), 1.0))
    assert time_ratio(ours, theirs, rounds="even").value == 2
    assert time_ratio(ours, theirs, rounds="odd").value == 1
    assert time_ratio(ours, theirs).rounds == 12


def test_loud_rounds_count_only_where_too_few_are_quiet() -> None:
    theirs = timing(dict.fromkeys(range(12), 1.0))
    some = timing({r: 3.0 if r > 6 else 1.0 for r in range(12)}, loud=frozenset(range(7, 12)))
    assert time_ratio(some, theirs).value == 1
    assert time_ratio(some, theirs).quiet
    few = timing({r: 3.0 if r > 2 else 1.0 for r in range(12)}, loud=frozenset(range(3, 12)))
    found = time_ratio(few, theirs)
    assert (found.value, found.rounds, found.quiet) == (3, 12, False)
    assert "loud" in str(found)


def test_no_common_round_has_no_ratio() -> None:
    found = time_ratio(timing({0: 1.0}), timing({1: 1.0}))
    assert math.isnan(found.value)
    assert found.rounds == 0
    assert math.isnan(time_ratio(timing({0: 1.0}), timing({0: 2.0})).lower)


def test_inverse_is_the_gain() -> None:
    gain = time_ratio(timing(dict.fromkeys(range(9), 0.5)), timing(dict.fromkeys(range(9), 1.0))).inverse
    assert (gain.value, gain.lower, gain.upper) == (2, 2, 2)
