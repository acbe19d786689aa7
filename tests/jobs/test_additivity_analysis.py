"""The arithmetic of additivity on times that are known."""

import math

import numpy as np
import pytest

from kernelcast.core.timing import Clock, Sample, Timing
from kernelcast.jobs.comparison import whole_seconds
from kernelcast.jobs.programs.memory_factor import CACHED_BYTES, NO_FACTOR, MemoryFactor, fit_memory_factor
from kernelcast.jobs.studies.additivity_analysis import TimedPlan, analyse

MIB = 1 << 20


def timing(seconds: float, *, rounds: int = 20, loudness: float = 1.0, odd: float | None = None) -> Timing:
    return Timing(
        samples=tuple(
            Sample(
                runs=1, seconds=odd if odd and r % 2 else seconds, loudness=loudness, round=r
            )
            for r in range(rounds)
        ),
        clock=Clock.WALL,
        method="whole-program",
    )  # fmt: skip


def plan(name: str, whole: Timing, sum_s: float, temporary: int = 0) -> TimedPlan:
    return TimedPlan(plan=name, whole=whole, sum_s=sum_s, coverage=1.0, temporary_bytes=temporary)


def test_sums_that_are_right_rank_perfectly() -> None:
    plans = [plan(str(n), timing(n * 1e-3), n * 1e-3) for n in range(1, 7)]
    found = analyse("p", timing(1e-3), plans, NO_FACTOR)
    assert (found.plans, found.tau, found.repeat_tau, found.regret) == (6, 1, 1, 1)
    assert found.slope == pytest.approx(1)
    assert found.abs_error == pytest.approx(0)
    assert found.quiet_share == 1


def test_a_wrong_pick_costs_regret_judged_on_rounds_that_did_not_choose() -> None:
    plans = [
        plan("picked by the sum", timing(2e-3, odd=1.5e-3), 1e-3),
        plan("best on even rounds", timing(1e-3, odd=1.2e-3), 2e-3),
    ]
    found = analyse("p", timing(1e-3), plans, NO_FACTOR)
    assert found.regret == pytest.approx(1.25)
    assert found.tau == -1
    # Each plan is compared with the default of its own rounds.
    assert found.repeat_error == pytest.approx(np.mean([2 / 1.5 - 1, 1 - 1 / 1.2]))


def test_slow_and_uncovered_plans_are_dropped_and_counted() -> None:
    plans = [
        plan("a", timing(1e-3), 1e-3),
        plan("b", timing(2e-3), 2e-3),
        plan("slow", timing(40e-3), 1e-3),
        plan("slow but under 32 ms", timing(30e-3), 30e-3),
        plan("uncovered", timing(1e-3), math.nan),
    ]
    found = analyse("p", timing(1e-3), plans, NO_FACTOR)
    assert (found.plans, found.dropped_slow, found.dropped_uncovered) == (3, 1, 1)


def test_a_program_without_plans_has_no_figures() -> None:
    found = analyse("p", timing(1e-3), [], NO_FACTOR)
    assert found.plans == 0
    assert all(map(math.isnan, (found.tau, found.regret, found.slope, found.abs_error)))


def test_loud_samples_stand_in_where_none_is_quiet() -> None:
    assert whole_seconds(timing(3e-3, loudness=2.0)) == 3e-3
    found = analyse("p", timing(1e-3, loudness=2.0), [plan("a", timing(2e-3), 2e-3)] * 2, NO_FACTOR)
    assert found.plans == 2


def test_the_factor_is_found_again() -> None:
    true = MemoryFactor(scale=0.95, slope=0.2)
    temporary = [0, MIB, 4 * MIB, 8 * MIB, 16 * MIB, 24 * MIB]
    sums = [1e-3, 2e-3, 3e-3, 1e-3, 5e-3, 1e-3]
    whole = [s * true(b) for s, b in zip(sums, temporary, strict=True)]
    found = fit_memory_factor(whole, sums, temporary, list("aabbcc"))
    assert found.scale == pytest.approx(true.scale)
    assert found.slope == pytest.approx(true.slope)
    assert true(8 * MIB) == pytest.approx(0.95 * 2**0.2)
    assert true(CACHED_BYTES) == true(0) == 0.95


def test_each_program_weighs_the_same_in_the_factor() -> None:
    found = fit_memory_factor([2.0] * 9 + [8.0], [1.0] * 10, [0] * 10, ["many"] * 9 + ["one"])
    assert found == MemoryFactor(scale=pytest.approx(4.0), slope=0.0)  # pyright: ignore[reportArgumentType]


def test_a_factor_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one plan"):
        fit_memory_factor([], [], [], [])
    with pytest.raises(ValueError, match="equally long"):
        fit_memory_factor([1.0], [], [], [])
