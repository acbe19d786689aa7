"""Searching with an estimator and choosing on a device, on a target of known prices."""

import math
import random
from dataclasses import replace

import pytest
from tests.jobs.tuning_fakes import MODULE, PriceEstimator, PriceTarget, chain_space, price_s

from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Statistic, Timing
from kernelcast.errors import SchemaError, TargetError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.moves import Extensions
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.sample import all_fused
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.format import format_program
from kernelcast.hlo.text import parse
from kernelcast.jobs.tuning.autotune import TuningOptions, autotune
from kernelcast.jobs.tuning.kernel_prices import KernelPrices
from kernelcast.jobs.tuning.plan_search import (
    SearchOptions,
    Start,
    priced_costs,
    propose,
    search_plans,
    start_plans,
    unlike_candidates,
)
from kernelcast.jobs.tuning.refine import RefineOptions
from kernelcast.jobs.tuning.replay import replay
from kernelcast.jobs.tuning.result import TuningResult
from kernelcast.jobs.tuning.trial_search import TrialOptions
from kernelcast.search.anneal import AnnealingOptions, TraceStep, improvements
from kernelcast.search.costs import SumOfParts

FEW = SearchOptions(
    chains=4, annealing=AnnealingOptions(steps=40, pool=64), extensions=Extensions(emissions=False)
)


def tuned(
    target: PriceTarget,
    *,
    estimator: PriceEstimator | None = None,
    search: SearchOptions = FEW,
    device_s: float = 60.0,
    trials: TrialOptions = TrialOptions(),  # noqa: B008 (immutable)
    refine: RefineOptions = RefineOptions(),  # noqa: B008 (immutable)
) -> TuningResult:
    ticks = iter(range(10**6))
    return autotune(
        target,
        estimator or PriceEstimator(),
        program="chain",
        stablehlo=MODULE,
        estimator_name="prices",
        options=TuningOptions(search=search, candidates=4, device_s=device_s, trials=trials, refine=refine),
        seed=0,
        clock=lambda: float(next(ticks)),
    )


def estimated_costs(space: FusionSpace, estimator: PriceEstimator) -> SumOfParts[FusionPlan]:
    prices = KernelPrices(estimator, statistic=Statistic.GATED_MEDIAN, optimism=1.0)
    return priced_costs(space, prices.price)


@pytest.mark.parametrize("start", list(Start))
def test_finds_the_best_plan_from_any_start(start: Start) -> None:
    space = chain_space()
    estimator = PriceEstimator()
    found = search_plans(space, estimated_costs(space, estimator), options=replace(FEW, start=start), seed=3)
    assert found.best.state == all_fused(space)
    assert found.best.cost == pytest.approx(
        sum(price_s(space.kernel(g)) for g in space.groups(found.best.state))
    )
    # Eight plans exist; their kernels are the ten intervals of the chain, each asked once.
    assert estimator.asked <= 10
    assert len(found.pool) >= 4


def test_costs_updated_by_moves_equal_costs_from_scratch() -> None:
    space = chain_space()
    costs = estimated_costs(space, PriceEstimator())
    rng = random.Random(0)
    plan, cost = default(space), costs.of_states([default(space)], [None])[0]
    for _ in range(50):
        proposal = propose(space, plan, rng, Extensions())
        assert proposal is not None
        cost = costs.of_proposals([cost], [proposal])[0]
        plan = proposal.state
        assert cost == pytest.approx(costs.of_states([plan], [None])[0])


def test_the_default_can_be_forbidden() -> None:
    space = chain_space()
    found = search_plans(
        space,
        estimated_costs(space, PriceEstimator()),
        options=replace(
            FEW,
            start=Start.UNFUSED,
            forbid_default=True,
            extensions=Extensions(reverts=False, emissions=False),
        ),
        seed=0,
    )
    assert default(space) not in [f.state for f in found.pool]
    assert found.best.state == all_fused(space)


def test_random_starts_differ_by_chain_and_repeat_by_seed() -> None:
    space = chain_space()
    options = SearchOptions(start=Start.RANDOM, chains=8)
    assert start_plans(space, options, 1) == start_plans(space, options, 1)
    assert len(set(start_plans(space, options, 1))) > 1
    assert set(start_plans(space, replace(options, start=Start.UNFUSED), 1)) == {unfused(space)}


def test_kernels_without_an_estimate_are_not_entered() -> None:
    space = chain_space()

    def has_two_transcendentals(kernel: Kernel) -> bool:
        opcodes = {i.opcode for c in kernel.program.computations for i in c}
        return {"exponential", "tanh"} <= opcodes

    costs = estimated_costs(space, PriceEstimator(has_two_transcendentals))
    found = search_plans(space, costs, options=FEW, seed=0)
    assert all_fused(space) not in [f.state for f in found.pool]


def test_candidates_differ_in_kernels_that_matter() -> None:
    space = chain_space()
    costs = estimated_costs(space, PriceEstimator())
    found = search_plans(space, costs, options=FEW, seed=0)
    chosen = unlike_candidates(space, costs, found.pool, 3)
    assert [f.state for f in chosen] == [f.state for f in found.pool[:3]]
    assert len(unlike_candidates(space, costs, found.pool, 100)) == len(found.pool)


def test_the_answer_is_the_plan_that_is_faster_on_the_device() -> None:
    target = PriceTarget(noise=0.01)
    result = tuned(target)
    assert result.answer == all_fused(chain_space())
    assert result.judgement.over_default is not None
    assert result.judgement.over_default.value > 1.3
    assert [str(c) for c in target.calls[-1][:3]] == ["untouched", "untouched", "library-off"]
    assert [t.choice for t in result.tried] == target.calls[-1]
    assert result.device_s == 0.5 * sum(map(len, target.calls))
    assert result.answer == result.explored[0].plan
    assert result.explored[0].batches > 1
    assert result.model_s > 0
    assert all(step.cost <= step.best for step in result.trace)
    assert result.kernels_timed > 0


def test_a_model_that_errs_costs_nothing_but_time() -> None:
    """Every plan is slower than the estimator thought: the default stays, and the result says so."""
    slower = PriceTarget(noise=0.01, factor=lambda c: 5.0 if isinstance(c, FusionPlan) else 1.0)
    result = tuned(slower)
    assert not isinstance(result.answer, FusionPlan)
    assert result.explored[0].ratio > 1.5


def test_library_off_may_be_the_answer() -> None:
    target = PriceTarget(noise=0.01, factor=lambda c: 0.1 if isinstance(c, LibraryOff) else 1.0)
    result = tuned(target)
    assert result.answer == LibraryOff()
    assert result.judgement.over_library_off is not None
    assert result.judgement.over_library_off.value == pytest.approx(1)


def test_wrong_values_are_never_the_answer() -> None:
    target = PriceTarget(factor=lambda c: math.nan if isinstance(c, FusionPlan) else 1.0)
    result = tuned(target)
    assert result.answer == Untouched()
    assert not any(isinstance(t.outcome, Timing) for t in result.tried[3:])


def test_plans_without_the_library_are_candidates_too() -> None:
    """The compiler fuses nothing there; what the search makes of that is the answer if it is the fastest."""
    other = format_program(apply(chain_space(), unfused(chain_space())))
    target = PriceTarget(
        noise=0.01,
        library_off=other,
        factor=lambda c: 3.0 if isinstance(c, FusionPlan) and c.space == chain_space().digest else 1.0,
    )
    result = tuned(target)
    other_space = space_of(parse(other))
    assert result.answer == all_fused(other_space)
    spaces = [t.choice.space for t in result.tried if isinstance(t.choice, FusionPlan)]
    assert spaces.count(other_space.digest) >= 2
    assert {e.plan.space for e in result.explored} == {chain_space().digest, other_space.digest}
    assert replay(result, target).answer == result.answer


def test_a_spent_budget_leaves_time_to_decide_between_two() -> None:
    result = tuned(PriceTarget(), device_s=1.0)
    assert [str(t.choice) for t in result.tried[:3]] == ["untouched", "untouched", "library-off"]
    assert len(result.tried) == 5
    assert all(isinstance(t.outcome, Timing) for t in result.tried)
    assert result.answer == all_fused(chain_space())
    assert result.device_s <= 1.0 + 0.5 + 5 * 0.5


def test_without_a_share_for_it_the_device_explores_nothing() -> None:
    result = tuned(PriceTarget(), refine=RefineOptions(share=0.0))
    assert result.explored == ()
    assert result.answer == all_fused(chain_space())


def test_a_default_that_fails_is_an_error() -> None:
    with pytest.raises(TargetError, match="nothing to compare: wrong-result"):
        tuned(PriceTarget(factor=lambda c: math.nan))


def test_only_improvements_of_the_trace_are_kept() -> None:
    steps = [
        TraceStep(step=n, chain=0, move="", cost=cost, accepted=True, best=best)
        for n, (cost, best) in enumerate([(5, 5), (6, 5), (4, 4), (4, 4), (3, 3)])
    ]
    assert [s.step for s in improvements(steps)] == [0, 2, 4]


def test_a_replay_measures_the_answer_again() -> None:
    result = tuned(PriceTarget(noise=0.01))
    target = PriceTarget(noise=0.01, factor=lambda c: 1.1 if isinstance(c, FusionPlan) else 1.0)
    again = replay(result, target)
    assert result.judgement.over_default is not None
    assert again.recorded_over_default == result.judgement.over_default
    assert again.over_default.value == pytest.approx(result.judgement.over_default.value / 1.1, rel=0.03)
    assert again.same_machine
    assert again.answer == result.answer


def test_a_result_of_another_compiler_or_rules_is_refused() -> None:
    result = tuned(PriceTarget())
    assert isinstance(result.answer, FusionPlan)
    with pytest.raises(SchemaError, match="for fusion space other of none 1; here none 1 makes"):
        replay(replace(result, answer=replace(result.answer, space="other")), PriceTarget())
    with pytest.raises(SchemaError, match="under rules other, this Kernelcast has"):
        replay(replace(result, rules="other"), PriceTarget())


def test_a_replay_whose_answer_fails_says_so() -> None:
    result = tuned(PriceTarget())
    with pytest.raises(TargetError, match="the answer cannot be timed: wrong-result"):
        replay(result, PriceTarget(factor=lambda c: math.nan if isinstance(c, FusionPlan) else 1.0))
