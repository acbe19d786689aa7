"""Small changes of a plan, each reversible, each with the kernels that it removes and adds."""

from __future__ import annotations

import random
from dataclasses import dataclass

from kernelcast.errors import PlanError
from kernelcast.fusion.graph import NO_REGION
from kernelcast.fusion.grouping import KernelGroup, bits
from kernelcast.fusion.plan import FusionPlan, Group, Setting
from kernelcast.fusion.space import FusionSpace

# In spaces with few decisions most draws are illegal.
_DRAWS = 16


class IllegalMoveError(PlanError):
    """A move that changes nothing, or that makes a plan which is not legal. A search draws another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A difference of two plans of one space.

    Attributes:
        kind: what it does, in words.
        edges: bits of the edges to flip.
        loops: bits of the regions to flip between library and loops.
        drop, add: multi-output groups to dissolve and to make.
        unset, set: exceptions in emission to end and to make.
    """

    kind: str
    edges: int = 0
    loops: int = 0
    drop: tuple[Group, ...] = ()
    add: tuple[Group, ...] = ()
    unset: tuple[Setting, ...] = ()
    set: tuple[Setting, ...] = ()

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveResult:
    """A plan after a move.

    Attributes:
        move: that was made.
        plan: the new plan, in normal form.
        removed, added: the kernels in which the two plans differ.
        inverse: the move that leads back.
    """

    move: Move
    plan: FusionPlan
    removed: tuple[KernelGroup, ...]
    added: tuple[KernelGroup, ...]
    inverse: Move


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """What may be decided beside the edges, which are the space of the paper.

    Attributes:
        regions: library calls may become loops.
        groups: results of equal dimensions may share one kernel.
        emissions: one operation may be emitted bare, and kernels be handed to the library.
        reverts: moves may take over one kernel of the compiler's default; off in studies that ask whether a
            search finds its own way.
    """

    regions: bool = True
    groups: bool = True
    emissions: bool = True
    reverts: bool = True


def apply_move(space: FusionSpace, plan: FusionPlan, move: Move) -> MoveResult:
    """The plan after a move, and the kernels that change.

    Only the kernels around the changed edges are looked at.

    Raises:
        IllegalMoveError: the move has no effect, or the result is not legal.

    >>> from kernelcast.fusion.space import space_of, unfused
    >>> from kernelcast.hlo.text import parse
    >>> space = space_of(parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[4] parameter(0)  y = f32[4] tanh(x)  ROOT z = f32[4] negate(y) }'''))
    >>> made = apply_move(space, unfused(space), flip(space, 0))
    >>> len(made.removed), len(made.added)
    (2, 1)
    >>> apply_move(space, made.plan, made.inverse).plan == unfused(space)
    True
    """
    groups = (*(group for group in plan.groups if group not in move.drop), *move.add)
    try:
        new_plan = space.plan(
            plan.fused ^ move.edges,
            loops=plan.loops ^ move.loops,
            groups=groups,
            settings=(*(s for s in plan.settings if s not in move.unset), *move.set),
            near=plan,
        )
    except PlanError as error:
        raise IllegalMoveError(f"{move.kind}: {error}") from error
    if new_plan == plan:
        raise IllegalMoveError(f"{move.kind}: it changes nothing")
    removed, added = _difference(space, plan, new_plan)
    for group in added:
        reason = space.why_too_large(group)
        if reason:
            raise IllegalMoveError(f"{move.kind}: the kernel of {space.name_of(group)} would have {reason}")
    inverse = _between(new_plan, plan, move.kind)
    return MoveResult(move=move, plan=new_plan, removed=removed, added=added, inverse=inverse)


def _between(old: FusionPlan, new: FusionPlan, kind: str) -> Move:
    return Move(
        kind=f"undo {kind}",
        edges=old.fused ^ new.fused,
        loops=old.loops ^ new.loops,
        drop=tuple(group for group in old.groups if group not in new.groups),
        add=tuple(group for group in new.groups if group not in old.groups),
        unset=tuple(setting for setting in old.settings if setting not in new.settings),
        set=tuple(setting for setting in new.settings if setting not in old.settings),
    )


def _difference(
    space: FusionSpace, old: FusionPlan, new: FusionPlan
) -> tuple[tuple[KernelGroup, ...], tuple[KernelGroup, ...]]:
    """The launched kernels that only the old and only the new plan has."""
    before: set[KernelGroup] = set()
    after: set[KernelGroup] = set()
    for number in range(len(space.scopes)):
        nodes = _nodes_to_look_at(space, old, new, number)
        for plan, found in ((old, before), (new, after)):
            for node in nodes:
                if space.is_result(plan, number, node):
                    group = space.kernel_group(plan, number, node)
                    if space.is_launched(group):
                        found.add(group)
    key = _group_key
    return tuple(sorted(before - after, key=key)), tuple(sorted(after - before, key=key))


def _group_key(group: KernelGroup) -> tuple[int, tuple[int, ...]]:
    return group.scope, group.roots


def _nodes_to_look_at(space: FusionSpace, old: FusionPlan, new: FusionPlan, number: int) -> set[int]:
    """Every node that may be a result with another kernel in the two plans."""
    table = space.tables[number]
    was, now = space.local(old, number), space.local(new, number)
    before, after = space.settled(old, number).holders, space.settled(new, number).holders
    nodes: set[int] = set()
    for bit in bits(was ^ now):
        edge = table.edges[bit]
        nodes.add(edge.producer)
        nodes.update(bits(before[edge.consumer] | after[edge.consumer]))
    for region in bits(old.loops ^ new.loops):
        if space.regions[region].scope == number:
            for member in bits(space.regions[region].members):
                nodes.add(member)
                nodes.update(space.scopes[number].nodes[member].operands)
    for group in {*old.groups} ^ {*new.groups}:
        if group.scope == number:
            nodes.update(group.roots)
    nodes.update(s.root for s in {*old.settings} ^ {*new.settings} if s.scope == number)
    return nodes


def flip(space: FusionSpace, edge: int) -> Move:
    """Fuse one edge, or cut it."""
    return Move(kind=f"flip edge {edge}", edges=1 << edge)


def set_uses(space: FusionSpace, plan: FusionPlan, scope: int, producer: int, *, fuse: bool) -> Move:
    """Fuse or cut all uses of a producer."""
    table = space.tables[scope]
    mask = table.output_mask[producer] << table.first
    name = space.scopes[scope].nodes[producer].instruction.name
    return Move(
        kind=f"{'fuse' if fuse else 'cut'} all uses of %{name}",
        edges=mask & (~plan.fused if fuse else plan.fused),
    )


def set_inputs(space: FusionSpace, plan: FusionPlan, scope: int, consumer: int, *, fuse: bool) -> Move:
    """Absorb all producers of a node, or split its kernel there."""
    table = space.tables[scope]
    mask = sum(1 << bit for bit, _ in table.inputs[consumer]) << table.first
    name = space.scopes[scope].nodes[consumer].instruction.name
    return Move(
        kind=f"absorb into %{name}" if fuse else f"split at %{name}",
        edges=mask & (~plan.fused if fuse else plan.fused),
    )


def flip_region(space: FusionSpace, plan: FusionPlan, region: int) -> Move:
    """Make a library call generated loops, fused as inside the library, or the reverse."""
    found = space.regions[region]
    table = space.tables[found.scope]
    name = space.scopes[found.scope].kernels[found.root].instruction.name
    if plan.loops >> region & 1:
        return Move(kind=f"library for %{name}", loops=1 << region)
    inside = sum(1 << bit for bit in bits(table.inside) if found.members >> table.edges[bit].consumer & 1)
    return Move(kind=f"loops for %{name}", loops=1 << region, edges=(inside << table.first) & ~plan.fused)


def revert(space: FusionSpace, plan: FusionPlan, scope: int, root: int) -> Move:
    """Back to the default for one kernel of the compiler: its members, its inputs and its uses.

    Raises:
        IllegalMoveError: the default has no kernel with that result.
    """
    kernel = space.scopes[scope].kernels.get(root)
    if kernel is None:
        name = space.scopes[scope].nodes[root].instruction.name
        raise IllegalMoveError(f"the compiler computes %{name} inside other kernels only")
    table = space.tables[scope]
    mask = table.output_mask[root]
    for member in bits(kernel.members):
        for bit, _ in table.inputs[member]:
            mask |= 1 << bit
    region = 0 if kernel.region == NO_REGION else plan.loops & 1 << kernel.region
    return Move(
        kind=f"default for %{kernel.instruction.name}",
        edges=((space.local(plan, scope) ^ table.default) & mask) << table.first,
        loops=region,
        drop=tuple(group for group in plan.groups if group.scope == scope and root in group.roots),
    )


def merge(space: FusionSpace, plan: FusionPlan, scope: int, roots: tuple[int, ...]) -> Move:
    """Compute several results in one kernel, together with the groups that they are in."""
    joined = tuple(g for g in plan.groups if g.scope == scope and set(g.roots) & set(roots))
    together = tuple(sorted({*roots, *(root for group in joined for root in group.roots)}))
    names = ", ".join(f"%{space.scopes[scope].nodes[root].instruction.name}" for root in together)
    return Move(kind=f"merge {names}", drop=joined, add=(Group(scope=scope, roots=together),))


def split_group(group: Group) -> Move:
    """Give each result of a group its own kernel again."""
    return Move(kind=f"split group {group.roots} of scope {group.scope}", drop=(group,))


def set_emission(space: FusionSpace, plan: FusionPlan, scope: int, root: int, emission: str) -> Move:
    """Emit the kernel of a result in this way, or, where the plan says so already, by the target's habit."""
    there = tuple(s for s in plan.settings if (s.scope, s.root) == (scope, root))
    wanted = Setting(scope=scope, root=root, emission=emission)
    name = space.scopes[scope].nodes[root].instruction.name
    if wanted in there:
        return Move(kind=f"no {emission} emission of %{name}", unset=there)
    return Move(kind=f"{emission} emission of %{name}", unset=there, set=(wanted,))


def random_step(
    space: FusionSpace,
    plan: FusionPlan,
    rng: random.Random,
    *,
    extensions: Extensions = Extensions(),
) -> MoveResult | None:
    """The result of a random legal move, or None where many draws in a row were illegal.

    Half of the draws flip one edge; the others change several at once, which no series of single flips would
    pass through without a detour.
    """
    for _ in range(_DRAWS):
        move = _draw(space, plan, rng, extensions)
        if move is None:
            continue
        try:
            return apply_move(space, plan, move)
        except IllegalMoveError:
            continue
    return None


def _draw(space: FusionSpace, plan: FusionPlan, rng: random.Random, extensions: Extensions) -> Move | None:
    choice = rng.random()
    if extensions.regions and space.regions and choice < 0.1:
        return flip_region(space, plan, rng.randrange(len(space.regions)))
    if extensions.groups and choice < 0.15:
        if plan.groups and rng.random() < 0.5:
            return split_group(rng.choice(plan.groups))
        if space.siblings:
            scope, first, second = rng.choice(space.siblings)
            return merge(space, plan, scope, (first, second))
    if extensions.emissions and choice < 0.25 and space.results:
        scope, root = rng.choice(space.results)
        return set_emission(space, plan, scope, root, rng.choice(("library", "library", "bare")))
    if not space.decisions:
        return None
    number = rng.choice(space.decisions)
    edge = space.edges[number]
    if choice < 0.6:
        return flip(space, number)
    if choice < 0.75:
        return set_uses(space, plan, edge.scope, edge.producer, fuse=rng.random() < 0.6)
    if choice < 0.92 or not extensions.reverts:
        return set_inputs(space, plan, edge.scope, edge.consumer, fuse=rng.random() < 0.6)
    kernels = space.scopes[edge.scope].kernels
    root = rng.choice(sorted(kernels))
    return revert(space, plan, edge.scope, root)
