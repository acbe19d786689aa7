"""In-place updates: which fusions would read a value after its buffer was overwritten.

A plan is imposed after copy insertion, and nothing inserts copies again. So a read of a *clobbered* value
(one that an update slice, a scatter, a loop's next state, a conditional … will overwrite) may not move to a
later kernel than the default has it in:

* An edge p → c may fuse only where p reads no clobbered value, unless the default fuses exactly that edge.
  Then c reads the value too, and the rule goes on with c.
* Every kernel that reads a clobbered value runs before the instruction that overwrites it.
* Where a reader needs what the overwriting instruction computes, the default computes that a second time
  inside the reader's kernels. Those edges have to stay fused.

Where these demands contradict each other the computation keeps the compiler's own fusions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelcast.fusion.graph import FusedPair, Scope
from kernelcast.hlo.opcodes import TRANSPARENT
from kernelcast.hlo.program import Computation
from kernelcast.hlo.values import Value, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrites:
    """The clobbered values of one scope.

    Attributes:
        reads: for each node the clobbered values that it reads itself.
        tainted: for each node those that its kernel reads in the default on its behalf.
        writers: for each clobbered value what overwrites it: a node and the views of it, ascending. A plan
            that computes the node inside the kernel of a view has that kernel write the buffer.
    """

    reads: tuple[frozenset[Value], ...]
    tainted: tuple[frozenset[Value], ...]
    writers: Mapping[Value, tuple[tuple[int, ...], ...]]

    def pairs(self) -> Iterable[tuple[int, int]]:
        """(reader, writer): nodes whose kernels may read a value, and others that overwrite it."""
        for reader, values in enumerate(self.tainted):
            for value in values:
                for views in self.writers[value]:
                    for writer in views:
                        if reader not in views or reader < writer:
                            yield reader, writer


def overwrites_of(
    scope: Scope, computation: Computation, clobbered: Mapping[Value, tuple[str, ...]]
) -> Overwrites:
    """The clobbered values of a scope and their readers.

    Args:
        scope: the computation's nodes.
        computation: the same in the un-fused program.
        clobbered: what ``hlo.alias.clobbered`` says of it.
    """
    reads = tuple(_reads(scope, computation, clobbered, number) for number in range(len(scope.nodes)))
    tainted = list(reads)
    producers: dict[int, list[int]] = {}
    for pair in scope.fused:
        if not _in_library(scope, pair):
            producers.setdefault(pair.consumer, []).append(pair.producer)
    for number in range(len(tainted)):
        for producer in producers.get(number, ()):
            tainted[number] |= tainted[producer]
    writers = {
        value: tuple(_with_views(scope, scope.number_of[name]) for name in names)
        for value, names in clobbered.items()
    }
    return Overwrites(reads=reads, tainted=tuple(tainted), writers=writers)


def _with_views(scope: Scope, number: int) -> tuple[int, ...]:
    found = {number}
    pending = [number]
    while pending:
        for user in scope.users[pending.pop()]:
            if scope.nodes[user].instruction.opcode == "bitcast" and user not in found:
                found.add(user)
                pending.append(user)
    return tuple(sorted(found))


def _reads(
    scope: Scope, computation: Computation, clobbered: Mapping[Value, tuple[str, ...]], number: int
) -> frozenset[Value]:
    node = scope.nodes[number]
    if not clobbered or node.instruction.opcode in TRANSPARENT:
        return frozenset()
    found: set[Value] = set()
    for operand in node.operands:
        instruction = scope.nodes[operand].instruction
        for index, _ in instruction.shape.indexed_leaves():
            value = resolve(computation, instruction.name, index)
            if value in clobbered:
                found.add(value)
    return frozenset(found)


def _in_library(scope: Scope, pair: FusedPair) -> bool:
    return scope.nodes[pair.consumer].region >= 0


def stays_safe(scope: Scope, overwrites: Overwrites, pair: FusedPair) -> bool:
    """Whether fusing a producer moves no read of a clobbered value to where the default has none."""
    if pair in scope.fused and not _in_library(scope, pair):
        return True
    if overwrites.tainted[pair.producer]:
        return False
    consumer = scope.nodes[pair.consumer]
    # Computed inside, the updated array is no longer updated in place.
    updates = consumer.instruction.opcode == "dynamic-update-slice" and consumer.operands[0] == pair.producer
    return not updates


def forced_pairs(scope: Scope, overwrites: Overwrites) -> frozenset[FusedPair] | None:
    """Pairs that have to stay fused so that every reader can run before what overwrites its value.

    Returns:
        The pairs; None where the default does not fuse them, so that the computation has to stay as it is.
    """
    forced: set[FusedPair] = set()
    below: dict[int, frozenset[int]] = {}
    late: dict[int, set[int]] = {}
    for reader, writer in overwrites.pairs():
        if writer not in below:
            below[writer] = _reached(writer, scope.users)
        if reader in below[writer]:
            late.setdefault(writer, set()).add(reader)
    operands = tuple(node.operands for node in scope.nodes)
    for writer, readers in late.items():
        leading = frozenset(readers).union(*(_reached(reader, operands) for reader in readers))
        for user in scope.users[writer]:
            pair = FusedPair(producer=writer, consumer=user)
            if user in leading:
                if pair not in scope.fused or _in_library(scope, pair):
                    return None
                forced.add(pair)
    return frozenset(forced)


def needed_before(
    scope: Scope, overwrites: Overwrites, forced: frozenset[FusedPair]
) -> tuple[int, ...] | None:
    """For each node a mask of those that have to be computed before it, in every plan.

    Where all values can be computed in some such order, so can the kernels of every plan that fuses only
    safe pairs: they run in the order of their results.

    Args:
        forced: pairs whose producer the consumer computes itself.

    Returns:
        The masks; None where no order exists.
    """
    inside = {(pair.producer, pair.consumer) for pair in forced}
    reads: list[frozenset[int]] = []
    for number, node in enumerate(scope.nodes):
        own: set[int] = set(node.after)
        for operand in node.operands:
            own.update(reads[operand] if (operand, number) in inside else (operand,))
        reads.append(frozenset(own))
    before = [set(own) for own in reads]
    for reader, writer in overwrites.pairs():
        before[writer].add(reader)
    order = sorted_by_priority(before, [(number, 0) for number in range(len(before))])
    if order is None:
        return None
    needed = [0] * len(before)
    for number in order:
        for other in before[number]:
            needed[number] |= needed[other] | 1 << other
    return tuple(needed)


def sorted_by_priority(
    before: Sequence[Iterable[int]], priority: Sequence[tuple[int, int]]
) -> list[int] | None:
    """The numbers of ``before`` so that each comes after what it needs, lowest priority first.

    Returns:
        The order; None where there is a cycle.
    """
    waiting = [len(set(needed)) for needed in before]
    followers: list[list[int]] = [[] for _ in before]
    for number, needed in enumerate(before):
        for other in set(needed):
            followers[other].append(number)
    ready = [(priority[number], number) for number, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(number)
        for follower in followers[number]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (priority[follower], follower))
    return order if len(order) == len(before) else None


def _reached(start: int, neighbours: Sequence[Iterable[int]]) -> frozenset[int]:
    """What can be reached from a node, itself excluded unless there is a way back."""
    found: set[int] = set()
    pending = list(neighbours[start])
    while pending:
        number = pending.pop()
        if number not in found:
            found.add(number)
            pending.extend(neighbours[number])
    return frozenset(found)
