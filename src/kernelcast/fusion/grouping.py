"""From bits to kernels: which values a plan writes to memory, and what each kernel computes.

A node is written to memory where it is a result, no legal producer, has a use that is not fused, or is SHARE
and used outside its kernel. The kernel of such a node is the node with everything that is reached backwards
over fused edges; inside it, whoever reads a member takes the value that is computed there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kernelcast.fusion.edges import ScopeEdges, fan_in
from kernelcast.fusion.graph import NO_REGION, Scope
from kernelcast.fusion.rules import Emission, Rules
from kernelcast.hlo.opcodes import ELEMENTWISE

_ELEMENTWISE = ELEMENTWISE | {"bitcast-convert"}


class Form(StrEnum):
    """How a kernel is emitted."""

    WHOLE = "whole"  # an instruction that no plan takes apart
    LIBRARY = "library"  # the original library call
    OFFLOADED = "offloaded"  # a library call of the plan's own
    FUSED = "fused"  # generated loops
    BARE = "bare"  # one operation as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGroup:
    """What one kernel of a plan computes; a small key, equal for equal kernels of one space.

    Attributes:
        scope: number of the computation.
        roots: node numbers of its results, ascending.
        members: bit n is set for each node that it computes, constants not counted.
        form: how it is emitted.
    """

    scope: int
    roots: tuple[int, ...]
    members: int
    form: Form


def bits(mask: int) -> Iterator[int]:
    """The numbers of the set bits, ascending.

    >>> list(bits(0b1010))
    [1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def is_written(edges: ScopeEdges, fused: int, node: int) -> bool:
    """Whether a plan writes a node to memory (nodes inside library calls aside)."""
    mask = edges.output_mask[node]
    return bool(edges.always >> node & 1) or fused & mask != mask


def active(edges: ScopeEdges, loops: int) -> int:
    """The edges that mean something while the given regions are loops."""
    inactive = 0
    for regions, mask in edges.region_edges:
        if regions & ~loops:
            inactive |= mask
    return ((1 << edges.count) - 1) & ~inactive


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Decisions about one scope in normal form, and what they mean.

    Attributes:
        fused: the edges that fuse, every bit set to what it means.
        meaning: the edges that mean something, i.e. that lie in no library call.
        together: a mask of the results of each multi-output kernel.
        holders: for each node a mask of the results whose kernels compute it.
    """

    fused: int
    meaning: int
    together: tuple[int, ...]
    holders: tuple[int, ...]


def settle(
    edges: ScopeEdges,
    fused: int,
    meaning: int,
    together: tuple[int, ...] = (),
    near: Settled | None = None,
) -> Settled:
    """The same decisions with every bit set to what it means.

    Edges of library calls are off, and fixed edges as in the default. A SHARE producer that more than one
    kernel would hold is fused nowhere. A cut edge whose consumer is computed only where the producer is too
    says nothing, and is fused.

    Args:
        meaning: the edges that mean something, see ``active``.
        together: a mask of the results of each multi-output kernel.
        near: a settled neighbour; only what differs from it is looked at.
    """
    fused = (fused & ~edges.fixed | edges.default & edges.fixed) & meaning
    if near is None or near.together != together:
        holders = [1 << number for number in range(len(edges.inputs))]
        queue = [-producer for producer in edges.producers]
    else:
        holders = list(near.holders)
        changed = fused ^ near.fused | meaning ^ near.meaning
        queue = sorted({-edges.edges[bit].producer for bit in bits(changed)})
    queued = set(queue)
    while queue:  # consumers first: who holds them is settled
        producer = -heapq.heappop(queue)
        fused, held_by = _settle_producer(edges, producer, fused, meaning, together, holders)
        if held_by != holders[producer]:
            holders[producer] = held_by
            for _, earlier in edges.inputs[producer]:
                if -earlier not in queued:
                    queued.add(-earlier)
                    heapq.heappush(queue, -earlier)
    return Settled(fused=fused, meaning=meaning, together=together, holders=tuple(holders))


def _settle_producer(
    edges: ScopeEdges,
    producer: int,
    fused: int,
    meaning: int,
    together: tuple[int, ...],
    holders: list[int],
) -> tuple[int, int]:
    """The edges that fuse once those of a producer are settled, and the results whose kernels hold it."""
    own = 1 << producer
    inside = 0
    for bit, consumer in edges.outputs[producer]:
        if fused >> bit & 1:
            inside |= holders[consumer]
    if not inside:
        return fused, own
    kernels = inside  # one bit for each
    for results in together:
        if inside & results:
            inside |= results
            kernels = kernels & ~results | results & -results
    mask = edges.output_mask[producer]
    cut = mask & meaning & ~fused & ~edges.fixed
    for bit, consumer in edges.outputs[producer] if cut else ():
        if cut >> bit & 1 and not holders[consumer] & ~inside:
            fused |= 1 << bit
    is_written_too = edges.always & own or fused & mask != mask
    if edges.shared & own and (is_written_too or kernels & kernels - 1) and not fused & mask & edges.fixed:
        return fused & ~mask, own
    return fused, inside | own if is_written_too else inside


def group_of(
    scope: Scope,
    edges: ScopeEdges,
    number: int,
    fused: int,
    loops: int,
    root: int,
    *,
    emission: str = "",
) -> KernelGroup:
    """The kernel of one result.

    Args:
        number: of the scope.
        fused: normal form.
        root: a node that the plan writes to memory.
        emission: a legal exception; empty for the habit of the target.
    """
    node = scope.nodes[root]
    if node.rule is None:
        return KernelGroup(scope=number, roots=(root,), members=1 << root, form=Form.WHOLE)
    if node.region != NO_REGION and not loops >> node.region & 1:
        members = scope.kernels[root].members
        return KernelGroup(scope=number, roots=(root,), members=members, form=Form.LIBRARY)
    members = closure(edges, fused, (root,))
    form = Form.FUSED
    if emission == "library":
        form = Form.OFFLOADED
    elif members == 1 << root:
        bare = emission == "bare" if emission else is_bare_by_habit(scope, root)
        form = Form.BARE if bare else Form.FUSED
    return KernelGroup(scope=number, roots=(root,), members=members, form=form)


def is_default(scope: Scope, group: KernelGroup) -> bool:
    """Whether the compiler's own module has this very kernel."""
    kernel = scope.kernels.get(group.roots[0])
    if kernel is None or kernel.members != group.members or group.form is Form.OFFLOADED:
        return False
    if group.roots != (kernel.roots or group.roots[:1]):
        return False
    if kernel.region != NO_REGION:
        return group.form is Form.LIBRARY
    read = {operand for operand in kernel.operands if not scope.nodes[operand].is_constant}
    is_fusion = kernel.instruction.opcode == "fusion"
    return is_fusion == (group.form is Form.FUSED) and read == set(operands_of(scope, group))


def is_bare_by_habit(scope: Scope, root: int) -> bool:
    """Whether a kernel of one operation is a bare instruction: as in the default, else by its rule."""
    node = scope.nodes[root]
    kernel = scope.kernels.get(root)
    if kernel is not None and kernel.region == NO_REGION and kernel.members == 1 << root:
        return kernel.instruction.opcode != "fusion"
    return node.rule is None or node.rule.alone is Emission.BARE or not node.instruction.shape.is_array


def closure(edges: ScopeEdges, fused: int, roots: tuple[int, ...]) -> int:
    """A mask of the members of the kernel with the given results."""
    members = 0
    for root in roots:
        members |= 1 << root
    pending = list(roots)
    while pending:
        for bit, producer in edges.inputs[pending.pop()]:
            if fused >> bit & 1 and not members >> producer & 1:
                members |= 1 << producer
                pending.append(producer)
    return members


def too_large(scope: Scope, group: KernelGroup, rules: Rules) -> str:
    """Why a kernel exceeds the bounds of the target; empty where it does not.

    The generated code evaluates a producer once for each distinct index that its users ask for: users that
    keep the index share one evaluation, each other user adds its own. This follows the counting of XLA's
    FusionNodeIndexingEvaluation, for code (copies) and for run time (elements).
    """
    if group.form not in (Form.FUSED, Form.OFFLOADED) or is_default(scope, group):
        return ""
    count = group.members.bit_count()
    if count > rules.max_members:
        return f"{count} operations; at most {rules.max_members}"
    reads = operands_of(scope, group)
    if len(reads) > rules.max_operands:
        return f"{len(reads)} operands; at most {rules.max_operands}"
    copies, elements = _evaluations(scope, group)
    worst = max(copies.values())
    if worst > rules.max_copies:
        return f"the code of one operation {worst} times; at most {rules.max_copies}"
    objection = _objection(scope, group, rules)
    if objection:
        return objection
    work = sum(elements[n] * fan_in(scope, n) for n in elements)
    needed = sum(scope.nodes[n].instruction.shape.element_count * fan_in(scope, n) for n in elements)
    if work > rules.max_rework * max(1, needed):
        return f"{work / max(1, needed):.0f} times the work of its operations; at most {rules.max_rework:.0f}"
    return ""


def _objection(scope: Scope, group: KernelGroup, rules: Rules) -> str:
    """What the target's conditions on kernels say; empty where they hold."""
    if rules.legality is None:
        return ""
    return rules.legality.objection(
        [scope.nodes[number].instruction for number in bits(group.members)],
        {scope.nodes[root].instruction.name for root in group.roots},
        is_part_of_default=any(
            kernel.members & group.members == group.members for kernel in scope.kernels.values()
        ),
    )


def operands_of(scope: Scope, group: KernelGroup) -> list[int]:
    """The nodes that a kernel reads from memory, constants aside, in the order of first use."""
    found: dict[int, None] = {}
    for number in bits(group.members):
        for operand in scope.nodes[number].operands:
            if not group.members >> operand & 1 and not scope.nodes[operand].is_constant:
                found[operand] = None
    return list(found)


def _evaluations(scope: Scope, group: KernelGroup) -> tuple[dict[int, int], dict[int, int]]:
    """For each member how often its code is emitted, and how many elements of it are computed."""
    index_users: dict[int, set[tuple[int, int]]] = {root: {(root, -1)} for root in group.roots}
    copies: dict[int, int] = {}
    elements: dict[int, int] = {}
    for number in reversed(list(bits(group.members))):
        node = scope.nodes[number]
        own_copies = own_elements = 0
        for user, slot in index_users.get(number, ()):
            if slot < 0:
                own_copies += 1
                own_elements += node.instruction.shape.element_count
            else:
                own_copies += copies[user]
                share = len(scope.nodes[user].operands) if _is_choice(scope, user) else 1
                own_elements += max(1, elements[user] * fan_in(scope, user) // share)
        copies[number], elements[number] = max(1, own_copies), max(1, own_elements)
        keeps_index = node.instruction.opcode in _ELEMENTWISE
        for slot, operand in enumerate(node.operands):
            if group.members >> operand & 1:
                users = index_users.setdefault(operand, set())
                users.update(index_users[number] if keeps_index else {(number, slot)})
    return copies, elements


def _is_choice(scope: Scope, number: int) -> bool:
    """Whether one element of the result needs an element of only one of the operands."""
    return scope.nodes[number].instruction.opcode == "concatenate"
