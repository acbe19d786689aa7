"""A search whose model errs, on a device that knows better, kernel by kernel."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.jobs.tuning_fakes import PriceTarget, chain_space, price_s

from kernelcast.core.estimate import Estimates, estimates_of
from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Statistic, Timing
from kernelcast.errors import PlanError
from kernelcast.fusion.moves import Extensions
from kernelcast.fusion.sample import all_fused
from kernelcast.fusion.space import default, unfused
from kernelcast.jobs.tuning.kernel_prices import KernelPrices
from kernelcast.jobs.tuning.plan_search import SearchOptions
from kernelcast.jobs.tuning.spaces import space_of_plan, spaces_of
from kernelcast.jobs.tuning.trial_search import Quest, TrialOptions, search_with_trials
from kernelcast.search.anneal import AnnealingOptions
from kernelcast.targets.protocol import DeviceBudget

FEW = SearchOptions(
    chains=4, annealing=AnnealingOptions(steps=40, pool=64), extensions=Extensions(emissions=False)
)


class WrongEstimator:
    """The true prices times an error."""

    def __init__(self, error: Callable[[Kernel], float]) -> None:
        self._error = error

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        return estimates_of(np.array([price_s(kernel) * self._error(kernel) for kernel in kernels]))


def large_are_overrated(kernel: Kernel) -> float:
    """Three times too slow where several operations are fused: the model would fuse nothing."""
    return 3.0 if kernel.program.instruction_count > 7 else 1.0


def searched(
    error: Callable[[Kernel], float],
    trials: TrialOptions,
    *,
    target: PriceTarget | None = None,
    limit_s: float = 100.0,
) -> tuple[Quest, KernelPrices, DeviceBudget]:
    prices = KernelPrices(WrongEstimator(error), statistic=Statistic.GATED_MIN_DIFFERENCE, optimism=0.9)
    budget = DeviceBudget(limit_s=limit_s)
    (quest,) = search_with_trials(
        [chain_space()],
        target or PriceTarget(),
        prices,
        options=FEW,
        trials=trials,
        budget=budget,
        seed=0,
    )
    return quest, prices, budget


def test_trials_mend_a_model_that_errs() -> None:
    space = chain_space()
    alone, untouched, _ = searched(large_are_overrated, TrialOptions(share=0.0))
    assert alone.pool[0].state != all_fused(space)
    assert untouched.timed == 0
    quest, prices, _ = searched(large_are_overrated, TrialOptions())
    assert quest.pool[0].state == all_fused(space)
    best = sum(price_s(space.kernel(g)) for g in space.groups(all_fused(space)))
    assert quest.pool[0].cost == pytest.approx(best)
    assert prices.timed > 0
    assert [f.cost for f in quest.pool] == sorted(f.cost for f in quest.pool)


def test_no_kernel_is_tried_twice_and_the_search_ends() -> None:
    target = PriceTarget()
    _, prices, _ = searched(lambda kernel: 1.0, TrialOptions(rounds=1000), target=target)
    assert len(target.kernels) == len(set(target.kernels)) == prices.timed <= 10


def test_trials_take_no_more_than_their_share() -> None:
    target = PriceTarget(kernel_s=1.0)
    _, prices, budget = searched(
        lambda kernel: 1.0, TrialOptions(share=0.3, kernels=2), target=target, limit_s=10
    )
    assert prices.timed == budget.spent_s == 3


def test_steps_of_all_rounds_are_numbered_on() -> None:
    quest, _, _ = searched(large_are_overrated, TrialOptions())
    steps = [step.step for step in quest.trace]
    assert steps == sorted(steps)
    assert quest.steps > FEW.annealing.steps


def outcome(seconds: float) -> Timing:
    samples = tuple(
        Sample(runs=runs, seconds=runs * seconds, loudness=1.0, round=round_)
        for round_ in range(3)
        for runs in (1, 5)
    )
    return Timing(samples=samples, clock=Clock.WALL, method="loop-slope")


def test_estimates_are_scaled_as_they_erred() -> None:
    space = chain_space()
    kernels = [space.kernel(g) for g in space.groups(unfused(space))]
    other = space.kernel(space.groups(all_fused(space))[0])
    prices = KernelPrices(
        WrongEstimator(lambda kernel: 0.5), statistic=Statistic.GATED_MIN_DIFFERENCE, optimism=0.9
    )
    assert prices.price([other]) == [pytest.approx(0.9 * 0.5 * price_s(other))]
    prices.price(kernels)
    prices.learn({kernel.fingerprint: outcome(price_s(kernel)) for kernel in kernels})
    assert prices.price(kernels) == [pytest.approx(price_s(kernel)) for kernel in kernels]
    assert prices.price([other]) == [pytest.approx(0.9 * price_s(other))]
    assert all(prices.was_tried(kernel) for kernel in kernels)
    assert not prices.was_tried(other)


@pytest.mark.parametrize(
    ("reason", "known"), [(Reason.CRASH, True), (Reason.WRONG_RESULT, True), (Reason.TOO_LOUD, False)]
)
def test_a_kernel_that_fails_is_not_entered(reason: Reason, known: bool) -> None:
    space = chain_space()
    kernel = space.kernel(space.groups(all_fused(space))[0])
    prices = KernelPrices(
        WrongEstimator(lambda kernel: 1.0), statistic=Statistic.GATED_MIN_DIFFERENCE, optimism=1.0
    )
    prices.learn({kernel.fingerprint: Failure(reason=reason, message="")})
    assert math.isinf(prices.price([kernel])[0]) == known
    assert prices.was_tried(kernel)
    assert prices.timed == 0


def test_a_plan_finds_its_space() -> None:
    spaces = spaces_of(PriceTarget(), "")
    assert [s.digest for s in spaces] == [chain_space().digest]
    assert space_of_plan(spaces, default(spaces[0])) is spaces[0]
    with pytest.raises(PlanError, match="the plan is of space elsewhere"):
        space_of_plan(spaces, replace(default(spaces[0]), space="elsewhere"))
