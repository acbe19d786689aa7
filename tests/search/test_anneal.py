"""Annealing on spaces small enough to be listed."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.search.anneal import AnnealingOptions, anneal
from kernelcast.search.costs import Part, Proposal, SumOfParts, WholeCosts

Bits = tuple[int, ...]


def flip(bits: Bits, rng: random.Random) -> Proposal[Bits]:
    at = rng.randrange(len(bits))
    new = (*bits[:at], 1 - bits[at], *bits[at + 1 :])
    return Proposal(
        state=new,
        key=new,
        move=f"flip {at}",
        removed=(Part(key=(at, bits[at])),),
        added=(Part(key=(at, new[at])),),
    )


def rugged(width: int, seed: int) -> dict[Bits, float]:
    rng = random.Random(seed)
    return {bits: rng.uniform(1, 2) for bits in itertools.product((0, 1), repeat=width)}


def start(width: int, chains: int = 4) -> list[tuple[Bits, Bits]]:
    return [((0,) * width, (0,) * width)] * chains


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_finds_the_optimum_of_a_listed_space(seed: int) -> None:
    table = rugged(6, seed)
    found = anneal(
        start(6, chains=8),
        propose=flip,
        costs=WholeCosts(lambda states: [table[s] for s in states]),
        options=AnnealingOptions(steps=600, hot=0.5, cold=0.05),
        seed=seed,
    )
    best = min(table, key=table.__getitem__)
    assert found.best.state == best
    assert found.best.cost == table[best]
    assert [f.cost for f in found.pool] == sorted(table.values())[: len(found.pool)]


def test_temperature_zero_is_descent() -> None:
    table = rugged(8, 3)
    found = anneal(
        start(8),
        propose=flip,
        costs=WholeCosts(lambda states: [table[s] for s in states]),
        options=AnnealingOptions(steps=300, hot=0, cold=0),
        seed=1,
    )
    for chain in range(4):
        accepted = [t.cost for t in found.trace if t.chain == chain and t.accepted]
        assert accepted == sorted(accepted, reverse=True)


def test_same_seed_same_trace_and_another_seed_another() -> None:
    table = rugged(7, 5)

    def run(seed: int) -> object:
        return anneal(
            start(7),
            propose=flip,
            costs=WholeCosts(lambda states: [table[s] for s in states]),
            options=AnnealingOptions(steps=50),
            seed=seed,
        ).trace

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_one_cost_call_a_step_and_no_state_priced_twice() -> None:
    calls: list[list[Bits]] = []

    def price(states: list[Bits]) -> list[float]:
        calls.append(list(states))
        return [1.0 + sum(s) for s in states]

    found = anneal(
        start(5, chains=3),
        propose=flip,
        costs=WholeCosts(price),
        options=AnnealingOptions(steps=40),
        seed=0,
    )
    asked = [s for call in calls for s in call]
    assert len(calls) <= 41
    assert len(asked) == len(set(asked)) == found.evaluations


def test_sums_agree_with_costs_from_scratch() -> None:
    prices = {(at, bit): random.Random(f"{at}{bit}").uniform(1, 3) for at in range(10) for bit in (0, 1)}
    costs: SumOfParts[Bits] = SumOfParts(
        parts=lambda bits: (Part(key=(at, bit)) for at, bit in enumerate(bits)),
        price=lambda keys: [prices[k] for k in keys],
        constant=0.5,
    )
    found = anneal(start(10), propose=flip, costs=costs, options=AnnealingOptions(steps=400), seed=2)
    best = tuple(min((0, 1), key=lambda bit, at=at: prices[at, bit]) for at in range(10))
    assert found.best.state == best
    for item in found.pool:
        assert item.cost == pytest.approx(0.5 + sum(prices[p] for p in enumerate(item.state)), rel=1e-12)
    assert found.evaluations == 20


def test_times_weigh_a_part() -> None:
    costs: SumOfParts[str] = SumOfParts(
        parts=lambda state: [Part(key=state, times=7)], price=lambda keys: [2.0 for _ in keys]
    )
    assert costs.of_states(["a"], ["a"]) == [14.0]
    assert costs.of_proposals(
        [14.0], [Proposal(state="b", key="b", move="", removed=(Part(key="a", times=7),), added=())]
    ) == [0.0]


def test_a_forbidden_part_of_the_start_counts_nothing_and_is_never_added() -> None:
    costs: SumOfParts[Bits] = SumOfParts(
        parts=lambda bits: (Part(key=p) for p in enumerate(bits)),
        price=lambda keys: [math.inf if k == (0, 1) else 1.0 + k[1] for k in keys],
    )
    found = anneal(start(3), propose=flip, costs=costs, options=AnnealingOptions(steps=100), seed=0)
    assert all(item.state[0] == 0 for item in found.pool)
    assert costs.of_states([(1, 0, 0)], [None]) == [2.0]


def test_infinite_states_are_never_entered_nor_kept() -> None:
    found = anneal(
        start(4),
        propose=flip,
        costs=WholeCosts(lambda states: [math.inf if s[0] else 1.0 for s in states]),
        options=AnnealingOptions(steps=60),
        seed=0,
    )
    assert all(item.state[0] == 0 for item in found.pool)
    assert not any(t.accepted for t in found.trace if math.isinf(t.cost))


def test_refused_keys_are_neither_entered_nor_kept() -> None:
    refused = {(0, 0, 0), (1, 0, 0)}
    found = anneal(
        start(3),
        propose=flip,
        costs=WholeCosts(lambda states: [1.0 + sum(s) for s in states]),
        options=AnnealingOptions(steps=200),
        seed=0,
        admit=lambda key: key not in refused,
    )
    assert refused.isdisjoint(item.state for item in found.pool)
    assert found.best.cost == 2.0


def test_limits_end_the_search() -> None:
    price = WholeCosts[Bits](lambda states: [1.0 for _ in states])
    few = anneal(
        start(9), propose=flip, costs=price, options=AnnealingOptions(steps=500, evaluations=20), seed=0
    )
    assert few.evaluations <= 20 + 4

    ticks = itertools.count()
    timed = anneal(
        start(9),
        propose=flip,
        costs=price,
        options=AnnealingOptions(steps=500, seconds=10),
        seed=0,
        clock=lambda: float(next(ticks)),
    )
    assert timed.steps == 9
    none = anneal(start(2), propose=flip, costs=price, options=AnnealingOptions(steps=0), seed=0)
    assert none.trace == ()
    assert none.best.state == (0, 0)


def test_a_space_that_is_priced_whole_ends_the_search() -> None:
    found = anneal(
        start(2),
        propose=flip,
        costs=WholeCosts(lambda states: [1.0 + sum(s) for s in states]),
        options=AnnealingOptions(steps=10**9, seconds=5.0, stale_steps=30),
        seed=0,
    )
    assert found.evaluations <= 4
    assert found.steps < 1000


def test_a_space_without_moves_returns_its_start() -> None:
    found = anneal(
        [("only", "only")],
        propose=lambda state, rng: None,
        costs=WholeCosts(lambda states: [1.0 for _ in states]),
        options=AnnealingOptions(steps=10),
        seed=0,
    )
    assert [f.state for f in found.pool] == ["only"]
    assert found.trace == ()


def test_temperature_falls_geometrically() -> None:
    options = AnnealingOptions(hot=0.1, cold=0.001)
    assert options.temperature(0) == pytest.approx(0.1)
    assert options.temperature(0.5) == pytest.approx(0.01)
    assert options.temperature(1) == pytest.approx(0.001)


@pytest.mark.parametrize(
    "bad", [{"steps": -1}, {"pool": 0}, {"hot": 0.1, "cold": 0.2}, {"hot": 0.1, "cold": 0}]
)
def test_options_that_make_no_sense_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"steps|hot"):
        AnnealingOptions(**bad)


def test_bad_prices_are_refused() -> None:
    with pytest.raises(ValueError, match="asked for 1 prices, got 2"):
        WholeCosts[int](lambda states: [1.0, 2.0]).of_states([1], [1])
    with pytest.raises(ValueError, match="NaN"):
        WholeCosts[int](lambda states: [math.nan]).of_states([1], [1])
    with pytest.raises(ValueError, match="at least one start"):
        anneal(
            [],
            propose=lambda s, r: None,
            costs=WholeCosts[int](lambda s: []),
            options=AnnealingOptions(),
            seed=0,
        )
