"""The decisions of a space: which producers may be fused into which consumers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.fusion.graph import NO_REGION, FusedPair, Node, Scope
from kernelcast.fusion.overwrites import Overwrites, forced_pairs, needed_before, stays_safe
from kernelcast.fusion.rules import Rules, Sharing
from kernelcast.hlo import attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A producer that may be computed inside the kernel of a consumer; one per pair, whatever the operands.

    Attributes:
        computation: name of the scheduled computation.
        scope: its number.
        producer, consumer: node numbers.
        sharing: whether every consumer may have its own copy.
    """

    computation: str
    scope: int
    producer: int
    consumer: int
    sharing: Sharing


@dataclass(frozen=True, kw_only=True)
class ScopeEdges:
    """The edges of one scope, indexed; bit e of a number stands for edge e of the scope.

    Attributes:
        first: number, in the space, of the scope's first edge.
        edges: in canonical order: by consumer, then producer.
        inputs: for each node (bit, producer) of the edges into it.
        outputs: for each node (bit, consumer) of the edges out of it.
        output_mask: for each node the bits of the edges out of it.
        always: bit n is set for each node that every plan writes to memory (libraries as in the default).
        producers: nodes with edges out of them, latest first.
        shared: bit n is set for each node whose edges are SHARE.
        region_edges: (mask of regions, bits of edges) of the edges that mean something only where those
            regions are loops.
        default: what the compiler does, region edges off.
        inside: edges that the library computes inside its regions: what loops start from.
        fixed: edges that are no decision: they keep their default.
        needed: for each node a mask of those that every plan computes before it; empty where frozen.
        is_frozen: all are fixed, since in-place updates leave no other order.
    """

    first: int
    edges: tuple[Edge, ...]
    inputs: tuple[tuple[tuple[int, int], ...], ...]
    outputs: tuple[tuple[tuple[int, int], ...], ...]
    output_mask: tuple[int, ...]
    always: int
    producers: tuple[int, ...]
    shared: int
    region_edges: tuple[tuple[int, int], ...]
    default: int
    inside: int
    fixed: int
    needed: tuple[int, ...]
    is_frozen: bool

    @property
    def count(self) -> int:
        return len(self.edges)


def edges_of(scope: Scope, number: int, first: int, overwrites: Overwrites, rules: Rules) -> ScopeEdges:
    """The edges of one scope.

    Args:
        scope: its nodes.
        number: of the scope in the space.
        first: number of its first edge in the space.
        overwrites: its clobbered values.
        rules: of the target.
    """
    pairs = _legal_pairs(scope, overwrites, rules)
    bit_of = {pair: bit for bit, pair in enumerate(pairs)}
    copies = _default_copies(scope)
    edges = tuple(
        Edge(
            computation=scope.computation.name,
            scope=number,
            producer=pair.producer,
            consumer=pair.consumer,
            sharing=_sharing(scope, pair.producer, copies, rules),
        )
        for pair in pairs
    )
    inputs: list[list[tuple[int, int]]] = [[] for _ in scope.nodes]
    outputs: list[list[tuple[int, int]]] = [[] for _ in scope.nodes]
    masks = [0] * len(scope.nodes)
    by_regions: dict[int, int] = {}
    default = inside = 0
    for bit, pair in enumerate(pairs):
        inputs[pair.consumer].append((bit, pair.producer))
        outputs[pair.producer].append((bit, pair.consumer))
        masks[pair.producer] |= 1 << bit
        regions = _region_mask(scope.nodes[pair.producer]) | _region_mask(scope.nodes[pair.consumer])
        if regions:
            by_regions[regions] = by_regions.get(regions, 0) | 1 << bit
        if pair in scope.fused:
            default |= 0 if regions else 1 << bit
            inside |= 1 << bit if regions else 0
    forced = forced_pairs(scope, overwrites)
    needed = None if forced is None else needed_before(scope, overwrites, forced)
    if forced is None or needed is None:
        fixed = (1 << len(edges)) - 1
    else:
        fixed = sum(1 << bit_of[pair] for pair in forced)
    return ScopeEdges(
        first=first,
        edges=edges,
        inputs=tuple(map(tuple, inputs)),
        outputs=tuple(map(tuple, outputs)),
        output_mask=tuple(masks),
        always=_always_written(scope, outputs),
        producers=tuple(sorted({e.producer for e in edges}, reverse=True)),
        shared=sum(1 << number for number in {e.producer for e in edges if e.sharing is Sharing.SHARE}),
        region_edges=tuple(sorted(by_regions.items())),
        default=default,
        inside=inside,
        fixed=fixed,
        needed=needed or (),
        is_frozen=needed is None,
    )


def _legal_pairs(scope: Scope, overwrites: Overwrites, rules: Rules) -> list[FusedPair]:
    """Pairs that the rules and the in-place updates allow, by consumer, then producer."""
    pairs: list[FusedPair] = []
    for consumer, node in enumerate(scope.nodes):
        if node.rule is None or not node.rule.root:
            continue
        for producer in sorted(set(node.operands)):
            rule = scope.nodes[producer].rule
            pair = FusedPair(producer=producer, consumer=consumer)
            if (
                rule is not None
                and rule.producer
                and scope.nodes[producer].instruction.shape.is_array
                and stays_safe(scope, overwrites, pair)
                and (pair in scope.fused or _is_allowed(scope, pair, rules))
            ):
                pairs.append(pair)
    return pairs


def _is_allowed(scope: Scope, pair: FusedPair, rules: Rules) -> bool:
    """Whether the target's conditions on pairs hold, beyond what the table of the rules says."""
    producer, consumer = (scope.nodes[number].instruction for number in (pair.producer, pair.consumer))
    users = len(scope.users[pair.producer]) + (pair.producer == scope.root)
    return rules.legality is None or rules.legality.allows(producer, consumer, users=users)


def _always_written(scope: Scope, outputs: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Nodes with a reader that is no edge, without readers, or that no kernel but their own may compute."""
    always = 1 << scope.root
    for number, node in enumerate(scope.nodes):
        if node.is_constant:
            continue
        users = scope.users[number]
        if node.rule is None or not users or len(outputs[number]) < len(users):
            always |= 1 << number
    return always


def _default_copies(scope: Scope) -> list[int]:
    """For each node how many kernels of the default compute it."""
    copies = [0] * len(scope.nodes)
    for root, kernel in scope.kernels.items():
        members = kernel.members if not kernel.parts or root == kernel.roots[0] else 0
        while members:
            lowest = members & -members
            copies[lowest.bit_length() - 1] += 1
            members ^= lowest
    return copies


def _sharing(scope: Scope, producer: int, copies: Sequence[int], rules: Rules) -> Sharing:
    """COPY where the rule says so, or where the compiler itself copies."""
    rule = scope.nodes[producer].rule
    if rule is None or copies[producer] > 1:
        return Sharing.COPY
    if fan_in(scope, producer) > rules.expensive_fan_in:
        return Sharing.SHARE
    return rule.sharing


def fan_in(scope: Scope, number: int) -> int:
    """How many elements of its first operand one element of a result needs: 1 unless it reduces."""
    node = scope.nodes[number]
    match node.instruction.opcode:
        case "reduce":
            result = next(node.instruction.shape.leaves())
            operand = scope.nodes[node.operands[0]].instruction.shape
            return max(1, operand.element_count // max(1, result.element_count))
        case "reduce-window" | "convolution":
            return max(1, attributes.window(node.instruction).element_count)
        case "dot":
            extents = scope.nodes[node.operands[0]].instruction.shape.dimensions
            contracted = attributes.integers(node.instruction, "lhs_contracting_dims", default=())
            return math.prod(extents[axis] for axis in contracted)
        case _:
            return 1


def _region_mask(node: Node) -> int:
    return 0 if node.region == NO_REGION else 1 << node.region
