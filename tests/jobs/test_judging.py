"""Choosing on even rounds, judging on odd ones."""

import numpy as np
import pytest

from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.jobs.tuning.judging import fastest, judge

FAILED = Failure(reason=Reason.WRONG_RESULT, message="output 0 differs")


def timing(even: float, odd: float | None = None, *, noise: float = 0.0, seed: int = 0) -> Timing:
    draw = np.random.default_rng(seed)
    return Timing(
        samples=tuple(
            Sample(
                runs=1,
                seconds=(even if r % 2 == 0 or odd is None else odd) * (1 + noise * draw.standard_normal()),
                loudness=1.0,
                round=r,
            )
            for r in range(40)
        ),
        clock=Clock.WALL,
        method="whole-program",
    )


def test_a_real_gain_is_the_answer() -> None:
    found = judge(
        default=timing(1.0),
        control=timing(1.0),
        library_off=timing(0.9),
        candidates=[timing(0.95), timing(0.6)],
    )
    assert (found.winner, found.answer) == (1, 1)
    assert found.over_default is not None
    assert found.over_default.value == pytest.approx(1 / 0.6)
    assert found.over_library_off is not None
    assert found.over_library_off.value == pytest.approx(1.5)
    assert found.over_best_default == found.over_library_off
    assert "1.667×" in found.why


def test_the_better_default_is_chosen_on_even_rounds() -> None:
    found = judge(
        default=timing(1.0), control=timing(1.0), library_off=timing(1.1, 0.5), candidates=[timing(0.8)]
    )
    assert found.over_best_default == found.over_default


def test_luck_on_even_rounds_does_not_pass_the_guard() -> None:
    found = judge(
        default=timing(1.0),
        control=timing(1.0),
        library_off=None,
        candidates=[timing(0.7, 1.02), timing(0.9)],
    )
    assert (found.winner, found.answer) == (0, None)
    assert "the default stays" in found.why
    assert found.over_library_off is None


def test_an_answer_is_never_slower_than_the_default_beyond_the_noise() -> None:
    answered = 0
    for seed in range(60):
        found = judge(
            default=timing(1.0, noise=0.05, seed=1000 + seed),
            control=timing(1.0, noise=0.05, seed=2000 + seed),
            library_off=FAILED,
            candidates=[timing(1.03, noise=0.05, seed=seed * 10 + k) for k in range(4)],
        )
        if found.answer is not None:
            answered += 1
            assert found.over_default is not None
            assert found.over_default.value > 1
    assert answered <= 6


def test_failed_candidates_are_passed_over() -> None:
    assert fastest(timing(1.0), [FAILED, timing(2.0), FAILED]) == 1
    found = judge(default=timing(1.0), control=timing(1.0), library_off=FAILED, candidates=[FAILED])
    assert (found.winner, found.answer, found.over_default) == (None, None, None)
    assert found.why == "none of 1 candidates ran; the default stays"
    assert found.control.value == 1
