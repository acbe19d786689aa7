"""Which results one kernel may compute together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kernelcast.fusion.graph import Scope
from kernelcast.fusion.overwrites import Overwrites, sorted_by_priority


def siblings_of(scope: Scope, needed: Sequence[int], overwrites: Overwrites) -> Iterator[tuple[int, int]]:
    """Pairs of nodes that read one value, have equal dimensions, and of which none needs the other.

    Args:
        needed: for each node a mask of those computed before it.
    """
    may = [may_be_grouped(scope, overwrites, number) for number in range(len(scope.nodes))]
    found: set[tuple[int, int]] = set()
    for number, node in enumerate(scope.nodes):
        if node.is_constant:
            continue
        users = [user for user in scope.users[number] if may[user]]
        for index, second in enumerate(users):
            for first in users[:index]:
                apart = not needed[second] >> first & 1 and not needed[first] >> second & 1
                if apart and dimensions_of(scope, first) == dimensions_of(scope, second):
                    found.add((first, second))
    yield from sorted(found)


def may_be_grouped(scope: Scope, overwrites: Overwrites, number: int) -> bool:
    """Whether the rules let a node be one of several results, and no in-place update is involved."""
    node = scope.nodes[number]
    writes = any(number in views for writers in overwrites.writers.values() for views in writers)
    return (
        node.rule is not None
        and node.rule.grouped
        and node.instruction.shape.is_array
        and not writes
        and not overwrites.tainted[number]
    )


def dimensions_of(scope: Scope, number: int) -> tuple[tuple[int, ...], str]:
    """What has to agree among the results of one kernel: dimensions and layout."""
    shape = scope.nodes[number].instruction.shape
    return shape.dimensions, str(shape.layout)


def have_order(
    needed: Sequence[int],
    groups: Sequence[tuple[int, ...]],
    *,
    inward: Collection[tuple[int, ...]] = (),
) -> bool:
    """Whether one kernel for each group leaves an order of kernels.

    Args:
        needed: for each node a mask of those computed before it.
        groups: node numbers of the results of each.
        inward: those of which one result may need another, since the kernel itself computes all between.
    """
    masks = [sum(1 << root for root in roots) for roots in groups]
    before = [
        {
            other
            for other, mask in enumerate(masks)
            if any(needed[root] & mask for root in roots) and not (other == number and roots in inward)
        }
        for number, roots in enumerate(groups)
    ]
    return sorted_by_priority(before, [(number, 0) for number in range(len(groups))]) is not None
