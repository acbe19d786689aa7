"""How often loops run, and so how often each computation runs in one run of the program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kernelcast.hlo.attributes import known_trip_count, loop_computations
from kernelcast.hlo.induction import induction
from kernelcast.hlo.program import Computation, Instruction, Program

# Where nothing is known. A loop whose length depends on values is mostly an iterative solver or a decoder;
# the number is a statement, not an estimate, and every product that holds it says ``assumed``.
ASSUMED_TRIPS = 16.0


class Source(StrEnum):
    """Where a trip count comes from, the most trustworthy first."""

    EXACT = "exact"  # worked out from the loop, or no loop at all
    KNOWN = "known"  # the compiler wrote it down
    MEASURED = "measured"
    ASSUMED = "assumed"


_TRUST = {source: i for i, source in enumerate(reversed(Source))}


@dataclass(frozen=True, slots=True, kw_only=True)
class TripCount:
    """How often something runs.

    Attributes:
        value: not necessarily whole: a branch of a conditional may run half of the time.
        source: where the number comes from.
    """

    value: float
    source: Source

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value >= 0):
            raise ValueError(f"a trip count must be finite and >= 0, got {self.value}")

    def __mul__(self, other: TripCount) -> TripCount:
        """The count of a loop in a loop; as trustworthy as the weaker of the two."""
        return TripCount(value=self.value * other.value, source=_weaker(self.source, other.source))

    def __add__(self, other: TripCount) -> TripCount:
        """The count of what runs at two places."""
        return TripCount(value=self.value + other.value, source=_weaker(self.source, other.source))


ONCE = TripCount(value=1.0, source=Source.EXACT)


def trip_count(
    program: Program,
    while_instruction: Instruction,
    computation: Computation,
    *,
    assumed: float = ASSUMED_TRIPS,
) -> TripCount:
    """How often the body of a ``while`` runs each time the loop is reached.

    The compiler's ``known_trip_count`` is believed first; otherwise the count is worked out from the loop's
    induction variable where it starts at a constant, moves by a constant, and is compared with a constant.

    Args:
        computation: holds the instruction.
        assumed: what is returned, marked so, where neither is possible.

    >>> from kernelcast.hlo.text import parse
    >>> program = parse('''HloModule m
    ... body { p = (s32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0  two = s32[] constant(2)
    ...   j = s32[] add(i, two)  ROOT t = (s32[]) tuple(j) }
    ... cond { p = (s32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0  n = s32[] constant(9)
    ...   ROOT less = pred[] compare(i, n), direction=LT }
    ... ENTRY e { zero = s32[] constant(0)  t = (s32[]) tuple(zero)
    ...   ROOT w = (s32[]) while(t), condition=cond, body=body }''')
    >>> entry = program.entry_computation
    >>> trip_count(program, entry["w"], entry)
    TripCount(value=5.0, source=<Source.EXACT: 'exact'>)
    """
    known = known_trip_count(while_instruction)
    if known is not None:
        return TripCount(value=float(known), source=Source.KNOWN)
    found = induction(program, while_instruction, computation)
    if found is not None:
        return TripCount(value=float(found), source=Source.EXACT)
    return TripCount(value=assumed, source=Source.ASSUMED)


def execution_counts(program: Program, *, assumed: float = ASSUMED_TRIPS) -> Mapping[str, TripCount]:
    """For each scheduled computation how often it runs in one run of the program.

    The entry runs once, a loop's body as often as :func:`trip_count` says and its condition once more, a
    called computation as often as its calls, and each branch of a conditional an equal share (an assumption).
    What is never reached is counted as 0.

    Args:
        assumed: body runs of a loop of unknown length.
    """
    counts = {c.name: TripCount(value=0.0, source=Source.EXACT) for c in program.scheduled_computations()}
    counts[program.entry] = ONCE
    # Callers before callees: each count is complete before it is handed on.
    for computation in _callers_first(program):
        here = counts.get(computation.name)
        if here is None or here.value == 0:
            continue
        for instruction in computation:
            for name, times in _calls(program, instruction, computation, assumed):
                if name in counts:
                    counts[name] += here * times
    return counts


def _calls(
    program: Program, instruction: Instruction, computation: Computation, assumed: float
) -> list[tuple[str, TripCount]]:
    """(computation, runs for each run of the instruction)."""
    if instruction.opcode == "while":
        trips = trip_count(program, instruction, computation, assumed=assumed)
        body, condition = loop_computations(instruction)
        return [(body, trips), (condition, trips + ONCE)]
    if instruction.opcode == "conditional":
        branches = instruction.called
        share = TripCount(value=1 / len(branches), source=Source.ASSUMED) if len(branches) > 1 else ONCE
        return [(name, share) for name in branches]
    if instruction.opcode in ("call", "async-start"):
        return [(name, ONCE) for name in instruction.called]
    return []


def _callers_first(program: Program) -> list[Computation]:
    order: list[Computation] = []
    done: set[str] = set()
    stack: list[tuple[str, bool]] = [(program.entry, False)]
    while stack:
        name, leaving = stack.pop()
        if leaving:
            order.append(program[name])
        elif name not in done and name in program:
            done.add(name)
            stack.append((name, True))
            stack.extend((callee, False) for i in program[name] for callee in i.called)
    return order[::-1]


def _weaker(a: Source, b: Source) -> Source:
    return min(a, b, key=_TRUST.__getitem__)
