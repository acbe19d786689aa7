"""Simulated annealing: many chains, one batched cost call per step. Knows nothing of what it searches."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kernelcast.search.costs import Costs, Proposal

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnealingOptions:
    """How long and how hot.

    The temperature falls geometrically from ``hot`` to ``cold`` over the budget. Costs are times, so a step
    is judged by its ratio: one that makes the cost r times as large is accepted with probability r^(−1/T),
    that is e^(−δ/T) for a small relative loss δ. T = .01 takes a loss of 1 % every third time; T = 0 is
    descent. Fusion plans form a landscape of few deep traps, in which more heat only wastes steps.

    Attributes:
        steps: of every chain.
        hot, cold: first and last temperature, relative; both 0 for descent.
        pool: how many of the best distinct states are kept.
        tries: moves drawn per chain and step until one is legal.
        evaluations: stop when so many prices have been asked; None for no limit.
        seconds: stop when the clock has advanced so far; None for no limit. Only then may a trace depend on
            the machine.
        stale_steps: stop after so many steps in a row that asked no price; None for no limit. A small space
            is priced whole long before its seconds are spent.
    """

    steps: int = 1000
    hot: float = 0.01
    cold: float = 0.0005
    pool: int = 32
    tries: int = 8
    evaluations: int | None = None
    seconds: float | None = None
    stale_steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps < 0 or self.pool < 1 or self.tries < 1:
            raise ValueError(f"steps must be >= 0, pool and tries >= 1; got {self}")
        if not (self.hot >= self.cold >= 0) or (self.cold == 0) != (self.hot == 0):
            raise ValueError(f"need hot >= cold > 0, or both 0; got hot={self.hot}, cold={self.cold}")

    def temperature(self, progress: float) -> float:
        """The temperature when a fraction of the budget is spent."""
        return self.hot * (self.cold / self.hot) ** progress if self.hot else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One proposal of one chain.

    Attributes:
        cost: of the proposed state.
        best: the lowest cost seen by any chain, this proposal included.
    """

    step: int
    chain: int
    move: str
    cost: float
    accepted: bool
    best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[S]):
    """A state that the search saw, with its cost."""

    state: S
    key: Hashable
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Annealed(Generic[S]):
    """What a search found.

    Attributes:
        pool: the best distinct states seen, the best first; starts included unless excluded.
        trace: every proposal, in order.
        evaluations: prices asked.
        steps: steps done by every chain before the budget ended.
    """

    pool: tuple[Found[S], ...]
    trace: tuple[TraceStep, ...]
    evaluations: int
    steps: int

    @property
    def best(self) -> Found[S]:
        if not self.pool:
            raise ValueError("the search met no state that may be entered: every cost was infinite")
        return self.pool[0]


def anneal(
    starts: Sequence[tuple[S, Hashable]],
    *,
    propose: Callable[[S, random.Random], Proposal[S] | None],
    costs: Costs[S],
    options: AnnealingOptions,
    seed: int,
    clock: Callable[[], float] = lambda: 0.0,
    admit: Callable[[Hashable], bool] = lambda key: True,
) -> Annealed[S]:
    """The best states that chains from the given starts meet, one chain per start.

    Args:
        starts: (state, its key); repeat one to run several chains from it.
        propose: a random legal neighbour, or None where the drawn move was illegal.
        costs: of states and of neighbours, in batches of at most one per chain.
        options: how long and how hot.
        seed: the same seed gives the same trace, whatever the machine, unless ``options.seconds`` is set.
        clock: seconds, for ``options.seconds``; a device budget can be one.
        admit: states whose key it refuses are never entered nor kept.

    Example:
        >>> import random
        >>> from kernelcast.search.costs import Proposal, WholeCosts
        >>> step = lambda x, rng: Proposal(state=(y := x + rng.choice((-1, 1))), key=y, move=str(y - x))
        >>> found = anneal(
        ...     [(9, 9)], propose=step, costs=WholeCosts(lambda xs: [1 + abs(x) for x in xs]),
        ...     options=AnnealingOptions(steps=100), seed=0,
        ... )
        >>> found.best.state
        0
    """
    if not starts:
        raise ValueError("annealing needs at least one start")
    begun, first_evaluations = clock(), costs.evaluations
    pool: _Pool[S] = _Pool(options.pool)
    chains = [
        _Chain(state=state, cost=cost, rng=random.Random(f"{seed}/{number}"))
        for number, ((state, _), cost) in enumerate(
            zip(starts, costs.of_states([s for s, _ in starts], [k for _, k in starts]), strict=True)
        )
    ]
    for (_, key), chain in zip(starts, chains, strict=True):
        if admit(key):
            pool.offer(chain.state, key, chain.cost)

    trace: list[TraceStep] = []
    step = stale = 0
    while step < options.steps and (options.stale_steps is None or stale < options.stale_steps):
        spent = _progress(options, step, costs.evaluations - first_evaluations, clock() - begun)
        if spent >= 1:
            break
        asked = costs.evaluations
        _advance(chains, step, options.temperature(spent), propose, costs, options, admit, pool, trace)
        stale = stale + 1 if costs.evaluations == asked else 0
        step += 1
    return Annealed(
        pool=pool.sorted(), trace=tuple(trace), evaluations=costs.evaluations - first_evaluations, steps=step
    )


@dataclass(slots=True)
class _Chain(Generic[S]):
    state: S
    cost: float
    rng: random.Random


def _progress(options: AnnealingOptions, steps: int, evaluations: int, seconds: float) -> float:
    """The spent fraction of whichever limit is nearest."""
    fractions = [steps / options.steps]
    if options.evaluations is not None:
        fractions.append(evaluations / options.evaluations if options.evaluations else 1.0)
    if options.seconds is not None:
        fractions.append(seconds / options.seconds if options.seconds else 1.0)
    return max(fractions)


def _advance(
    chains: Sequence[_Chain[S]],
    step: int,
    temperature: float,
    propose: Callable[[S, random.Random], Proposal[S] | None],
    costs: Costs[S],
    options: AnnealingOptions,
    admit: Callable[[Hashable], bool],
    pool: _Pool[S],
    trace: list[TraceStep],
) -> None:
    """One step of every chain, with one cost call."""
    moving: list[tuple[int, Proposal[S]]] = []
    for number, chain in enumerate(chains):
        for _ in range(options.tries):
            proposal = propose(chain.state, chain.rng)
            if proposal is not None and admit(proposal.key):
                moving.append((number, proposal))
                break
    found = costs.of_proposals([chains[number].cost for number, _ in moving], [p for _, p in moving])
    for (number, proposal), cost in zip(moving, found, strict=True):
        chain = chains[number]
        accepted = _accepts(chain.cost, cost, temperature, chain.rng)
        pool.offer(proposal.state, proposal.key, cost)
        if accepted:
            chain.state, chain.cost = proposal.state, cost
        trace.append(
            TraceStep(
                step=step, chain=number, move=proposal.move, cost=cost, accepted=accepted, best=pool.lowest
            )
        )


def _accepts(old: float, new: float, temperature: float, rng: random.Random) -> bool:
    """Metropolis' rule on the ratio of costs; equal costs are always accepted, so plateaus are crossed."""
    if new <= old:
        return not math.isinf(new)
    if temperature == 0 or math.isinf(new):
        return False
    if old <= 0:
        return False
    return rng.random() < (new / old) ** (-1 / temperature)


@dataclass(slots=True)
class _Pool(Generic[S]):
    """The best ``size`` distinct states offered so far; of equal costs the first offered stays."""

    size: int
    _heap: list[tuple[float, int, Hashable]] = field(default_factory=list[tuple[float, int, Hashable]])
    _states: dict[Hashable, tuple[S, float]] = field(default_factory=dict)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    lowest: float = math.inf

    def offer(self, state: S, key: Hashable, cost: float) -> None:
        if math.isinf(cost) or key in self._states:
            return
        self.lowest = min(self.lowest, cost)
        self._states[key] = (state, cost)
        heapq.heappush(self._heap, (-cost, -next(self._order), key))
        if len(self._heap) > self.size:
            del self._states[heapq.heappop(self._heap)[2]]

    def sorted(self) -> tuple[Found[S], ...]:
        ranked = sorted((-cost, -order, key) for cost, order, key in self._heap)
        return tuple(Found(state=self._states[key][0], key=key, cost=cost) for cost, _, key in ranked)


def improvements(trace: Sequence[TraceStep]) -> tuple[TraceStep, ...]:
    """The steps of one search that lowered the best cost."""
    kept: list[TraceStep] = []
    for step in trace:
        if step.cost <= step.best and (not kept or step.best < kept[-1].best):
            kept.append(step)
    return tuple(kept)
