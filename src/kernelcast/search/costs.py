"""Batched costs of states, cached: one number per whole state, or a sum over the parts of a state."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One summand of a state's cost.

    Attributes:
        key: equal keys cost the same; the price of a key is asked once.
        times: how often it counts, e.g. a loop's trip count.
    """

    key: Hashable
    times: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Generic[S]):
    """A neighbour of a state, and what makes it different.

    Attributes:
        state: the neighbour.
        key: equal for equal states; names the state in caches and in the pool.
        move: readable name of the move, for the trace.
        removed, added: parts that only the old, and only the new state has; costs that are no sum ignore
            them.
    """

    state: S
    key: Hashable
    move: str
    removed: tuple[Part, ...] = ()
    added: tuple[Part, ...] = ()


class Costs(Protocol[S]):
    """Costs of many states in one call: positive numbers, or infinity for what may not be entered."""

    def of_states(self, states: Sequence[S], keys: Sequence[Hashable]) -> list[float]:
        """Costs from scratch."""
        ...

    def of_proposals(self, parents: Sequence[float], proposals: Sequence[Proposal[S]]) -> list[float]:
        """Costs of neighbours of states whose costs are known."""
        ...

    @property
    def evaluations(self) -> int:
        """How many prices have been asked so far; what came from the cache does not count."""
        ...


class WholeCosts(Generic[S]):
    """Costs of a function that judges whole states; each distinct state is asked once.

    Args:
        price: costs of several states in one call.
    """

    def __init__(self, price: Callable[[Sequence[S]], Sequence[float]]) -> None:
        self._price = price
        self._known: dict[Hashable, float] = {}

    def of_states(self, states: Sequence[S], keys: Sequence[Hashable]) -> list[float]:
        new = {key: state for key, state in zip(keys, states, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, _checked(self._price(list(new.values())), len(new)), strict=True))
        return [self._known[key] for key in keys]

    def of_proposals(self, parents: Sequence[float], proposals: Sequence[Proposal[S]]) -> list[float]:
        del parents
        return self.of_states([p.state for p in proposals], [p.key for p in proposals])

    @property
    def evaluations(self) -> int:
        return len(self._known)


class SumOfParts(Generic[S]):
    """Costs that are Σ times × price over the parts of a state, updated from the parent's cost.

    A neighbour's cost is its parent's, minus what the move removed, plus what it added: thousands of
    states share the prices of a few hundred parts. A part whose price is infinite may not be *added*;
    such a part of a start counts as nothing, since no choice of the search put it there.

    Args:
        parts: all parts of a state.
        price: prices of several part keys in one call.
        constant: seconds that every state costs besides its parts.
    """

    def __init__(
        self,
        *,
        parts: Callable[[S], Iterable[Part]],
        price: Callable[[Sequence[Hashable]], Sequence[float]],
        constant: float = 0.0,
    ) -> None:
        self._parts = parts
        self._price = price
        self._constant = constant
        self._known: dict[Hashable, float] = {}

    def of_states(self, states: Sequence[S], keys: Sequence[Hashable]) -> list[float]:
        del keys
        all_parts = [tuple(self._parts(state)) for state in states]
        self._learn(part for parts in all_parts for part in parts)
        return [self._constant + math.fsum(map(self._finite, parts)) for parts in all_parts]

    def of_proposals(self, parents: Sequence[float], proposals: Sequence[Proposal[S]]) -> list[float]:
        self._learn(part for proposal in proposals for part in (*proposal.removed, *proposal.added))
        costs: list[float] = []
        for parent, proposal in zip(parents, proposals, strict=True):
            if any(math.isinf(self._known[part.key]) for part in proposal.added):
                costs.append(math.inf)
                continue
            added = math.fsum(map(self._finite, proposal.added))
            costs.append(parent + added - math.fsum(map(self._finite, proposal.removed)))
        return costs

    @property
    def evaluations(self) -> int:
        return len(self._known)

    def price_of(self, key: Hashable) -> float:
        """The cached price of a part that has been asked before."""
        return self._known[key]

    def ask_again(self) -> None:
        """Renews the price of every known part: whoever gives them has learnt. Costs given before are old."""
        keys = list(self._known)
        self._known = dict(zip(keys, _checked(self._price(keys), len(keys)), strict=True))

    def _finite(self, part: Part) -> float:
        price = self._known[part.key]
        return 0.0 if math.isinf(price) else part.times * price

    def _learn(self, parts: Iterable[Part]) -> None:
        new = list(dict.fromkeys(part.key for part in parts if part.key not in self._known))
        if new:
            self._known.update(zip(new, _checked(self._price(new), len(new)), strict=True))


def _checked(prices: Sequence[float], count: int) -> list[float]:
    """The prices as floats; a wrong number of them, NaN or a negative price is a bug of the caller."""
    found = [float(price) for price in prices]
    if len(found) != count:
        raise ValueError(f"asked for {count} prices, got {len(found)}")
    if any(math.isnan(price) or price < 0 for price in found):
        raise ValueError("a price must be >= 0, or infinity for what may not be entered; got NaN or less")
    return found
