"""What may be decided about the fusion of one program on one target."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from kernelcast.core.kernel import Kernel
from kernelcast.errors import PlanError
from kernelcast.fusion.edges import Edge, ScopeEdges, edges_of
from kernelcast.fusion.emit import lone_kernel
from kernelcast.fusion.graph import NO_REGION, Region, Scope
from kernelcast.fusion.grouping import (
    Form,
    KernelGroup,
    Settled,
    active,
    bits,
    closure,
    group_of,
    is_default,
    is_written,
    settle,
    too_large,
)
from kernelcast.fusion.offload import why_not_offloaded
from kernelcast.fusion.overwrites import Overwrites, overwrites_of
from kernelcast.fusion.plan import FusionPlan, Group, Setting
from kernelcast.fusion.rules import XLA_CPU, Rules
from kernelcast.fusion.scope_builder import content_digest
from kernelcast.fusion.siblings import dimensions_of, have_order, may_be_grouped, siblings_of
from kernelcast.fusion.unfuse import unfuse
from kernelcast.hlo.alias import Hazard, clobbered, hazards
from kernelcast.hlo.opcodes import NOT_LAUNCHED
from kernelcast.hlo.program import Program
from kernelcast.hlo.trips import ONCE, TripCount, execution_counts

_log = logging.getLogger(__name__)

EMISSIONS = ("bare", "wrapped", "library")
# Of so many plans it is remembered what they mean; a search comes back to few.
_SETTLED_KEPT = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class FusionSpace:
    """All fusion plans of one program under the rules of one target. Made by ``space_of``.

    Attributes:
        original: the compiler's own final module.
        program: the same with every generated fusion taken apart.
        rules: what is legal.
        scopes: the scheduled computations, as graphs.
        tables: the edges of each scope.
        overwrites: the clobbered values of each scope.
        regions: library calls that may be generated loops instead.
        kept_whole: (computation, instruction, reason) of fusions that no plan takes apart.
    """

    original: Program
    program: Program
    rules: Rules
    scopes: tuple[Scope, ...]
    tables: tuple[ScopeEdges, ...]
    overwrites: tuple[Overwrites, ...]
    regions: tuple[Region, ...]
    kept_whole: tuple[tuple[str, str, str], ...]
    _kernels: dict[KernelGroup, Kernel] = field(default_factory=dict, repr=False)
    _too_large: dict[KernelGroup, str] = field(default_factory=dict, repr=False)
    _settled: dict[tuple[int, int, int, tuple[int, ...]], Settled] = field(default_factory=dict, repr=False)
    _meaning: dict[tuple[int, int], int] = field(default_factory=dict, repr=False)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every decision about a producer and a consumer, in canonical order: bit e of a plan is edge e."""
        return tuple(edge for table in self.tables for edge in table.edges)

    @cached_property
    def decisions(self) -> tuple[int, ...]:
        """Numbers of the edges that are decisions; the others keep their default."""
        fixed = sum(table.fixed << table.first for table in self.tables)
        return tuple(number for number in range(len(self.edges)) if not fixed >> number & 1)

    @cached_property
    def unexpressed(self) -> tuple[str, ...]:
        """What of the default no plan can change, or no plan can say; one line each, with the reason."""
        base = default(self)
        lines = [
            f"computation {place}, %{name}: stays whole, {reason}" for place, name, reason in self.kept_whole
        ]
        for number, (scope, table) in enumerate(zip(self.scopes, self.tables, strict=True)):
            name = scope.computation.name
            if table.is_frozen and table.count:
                lines.append(
                    f"computation {name}: keeps the compiler's fusions: in-place updates allow no other order"
                )
            groups = {root: group for group in self.scope_groups(base, number) for root in group.roots}
            lines.extend(
                f"computation {name}, %{kernel.instruction.name}: the default plan has another kernel there"
                for root, kernel in scope.kernels.items()
                if root not in groups or not is_default(scope, groups[root])
            )
        return tuple(lines)

    @cached_property
    def siblings(self) -> tuple[tuple[int, int, int], ...]:
        """(scope, node, node) of values that read one value and may share a kernel where both are results."""
        return tuple(
            (number, first, second)
            for number, table in enumerate(self.tables)
            if not table.is_frozen
            for first, second in siblings_of(self.scopes[number], table.needed, self.overwrites[number])
        )

    @cached_property
    def results(self) -> tuple[tuple[int, int], ...]:
        """(scope, node) of values that a kernel of one operation, or one of the library, might compute."""
        return tuple(
            (number, node)
            for number, scope in enumerate(self.scopes)
            if not self.tables[number].is_frozen
            for node, found in enumerate(scope.nodes)
            if found.rule is not None and found.instruction.opcode not in NOT_LAUNCHED
        )

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits of the content: operations, edges, default and rules; no names."""
        return content_digest(
            self.rules.identity,
            [[(n.value, n.region, n.slot) for n in scope.nodes] for scope in self.scopes],
            [(e.scope, e.producer, e.consumer, e.sharing) for e in self.edges],
            [(table.default, table.fixed) for table in self.tables],
        )

    def plan(
        self,
        fused: int,
        *,
        loops: int = 0,
        groups: Iterable[Group] = (),
        settings: Iterable[Setting] = (),
        near: FusionPlan | None = None,
    ) -> FusionPlan:
        """The plan of some decisions, in normal form.

        Args:
            fused: bit e is set where edge e fuses.
            loops: bit r is set where region r becomes loops.
            groups: results that one kernel computes together; what the edges make no result is left out.
            settings: exceptions in emission; those without effect are left out, and so is what the library
                does not take, see ``why_not_offloaded``.
            near: a plan of this space that differs little; only what differs is looked at.

        Raises:
            PlanError: a group is not legal. (Kernels that are too large are found by ``illegal_kernels``.)
        """
        loops &= (1 << len(self.regions)) - 1
        kept = tuple(sorted(groups))
        settings = tuple(settings)
        for scope, roots in [(g.scope, g.roots) for g in kept] + [(s.scope, (s.root,)) for s in settings]:
            self._check_places(scope, roots)
        while True:
            plan = FusionPlan(
                space=self.digest,
                rules=self.rules.identity,
                fused=self._normal_edges(fused, loops, kept, near),
                loops=loops,
                groups=kept,
            )
            # Fewer groups may mean fewer fused edges, and those other results; groups only ever shrink.
            still = tuple(sorted(self._normal_groups(plan, kept)))
            if still == kept:
                break
            kept = still
        kept_settings = tuple(sorted(self._normal_settings(plan, settings)))
        return replace(plan, settings=kept_settings) if kept_settings else plan

    def _normal_edges(
        self, fused: int, loops: int, groups: tuple[Group, ...], near: FusionPlan | None
    ) -> int:
        normal = 0
        for number, table in enumerate(self.tables):
            local, together = _of_scope(fused, table), _together(groups, number)
            neighbour = None
            if near is not None:
                neighbour = self.settled(near, number)
                is_same = local == neighbour.fused and together == neighbour.together
                if is_same and self._active(number, loops) == neighbour.meaning:
                    normal |= local << table.first
                    continue
            normal |= self._settle(number, local, loops, together, neighbour).fused << table.first
        return normal

    def check(self, plan: FusionPlan) -> None:
        """Nothing, for a plan of this space in normal form with legal kernels.

        Raises:
            PlanError: of another program or other rules, not in normal form, or with illegal kernels.
        """
        if plan.rules != self.rules.identity:
            raise PlanError(
                f"the plan is for rules {plan.rules}, this space has {self.rules.identity}: make a new plan, "
                "or rebind this one"
            )
        if plan.space != self.digest:
            raise PlanError(
                f"the plan is of another program (space {plan.space}, this one is {self.digest}): rebind it "
                "explicitly if it should be carried over"
            )
        again = self.plan(plan.fused, loops=plan.loops, groups=plan.groups, settings=plan.settings)
        if again != plan:
            raise PlanError("the plan is not in normal form: make plans with space.plan")
        for group, reason in self.illegal_kernels(plan):
            raise PlanError(f"the kernel of {self.name_of(group)} has {reason}")

    def name_of(self, group: KernelGroup) -> str:
        """Where a kernel is, for messages."""
        scope = self.scopes[group.scope]
        roots = ", ".join(f"%{scope.nodes[root].instruction.name}" for root in group.roots)
        return f"{roots} in computation {scope.computation.name}"

    def groups(self, plan: FusionPlan) -> tuple[KernelGroup, ...]:
        """What each launched kernel of a plan computes, by scope and first result."""
        return tuple(
            group
            for number in range(len(self.scopes))
            for group in self.scope_groups(plan, number)
            if self.is_launched(group)
        )

    def scope_groups(self, plan: FusionPlan, number: int) -> list[KernelGroup]:
        """What is computed in one scope, views, data and control flow included."""
        scope = self.scopes[number]
        found: list[KernelGroup] = []
        for root in range(len(scope.nodes)):
            if self.is_result(plan, number, root):
                group = self.kernel_group(plan, number, root)
                if group.roots[0] == root:
                    found.append(group)
        return found

    def is_result(self, plan: FusionPlan, number: int, node: int) -> bool:
        """Whether a plan writes a node to memory."""
        scope = self.scopes[number]
        if scope.nodes[node].is_constant:
            return False
        region = scope.nodes[node].region
        if region != NO_REGION and not plan.loops >> region & 1:
            return node in scope.kernels
        return is_written(self.tables[number], self.local(plan, number), node)

    def kernel_group(self, plan: FusionPlan, number: int, root: int) -> KernelGroup:
        """The kernel that computes a result."""
        scope, table, fused = self.scopes[number], self.tables[number], self.local(plan, number)
        for group in plan.groups:
            if group.scope == number and root in group.roots:
                members = closure(table, fused, group.roots)
                return KernelGroup(scope=number, roots=group.roots, members=members, form=Form.FUSED)
        emission = ""
        for setting in plan.settings:
            if setting.scope == number and setting.root == root:
                emission = setting.emission
        return group_of(scope, table, number, fused, plan.loops, root, emission=emission)

    def is_launched(self, group: KernelGroup) -> bool:
        """Whether code runs for it: false for data, views and control flow."""
        opcode = self.scopes[group.scope].nodes[group.roots[0]].instruction.opcode
        return group.form not in (Form.WHOLE, Form.BARE) or opcode not in NOT_LAUNCHED

    def illegal_kernels(self, plan: FusionPlan) -> Iterator[tuple[KernelGroup, str]]:
        """Kernels of a plan that exceed the bounds of the target, each with the reason."""
        for group in self.groups(plan):
            reason = self.why_too_large(group)
            if reason:
                yield group, reason

    def why_too_large(self, group: KernelGroup) -> str:
        """Why a kernel exceeds the bounds of the target; empty where it does not."""
        reason = self._too_large.get(group)
        if reason is None:
            reason = too_large(self.scopes[group.scope], group, self.rules)
            self._too_large[group] = reason
        return reason

    def why_not_offloaded(self, group: KernelGroup) -> str:
        """Why the backend's library does not take a kernel; empty where it does."""
        if self.tables[group.scope].is_frozen:
            return "a computation that keeps the compiler's fusions"
        return why_not_offloaded(self.scopes[group.scope], group, self.rules.library)

    def kernel(self, group: KernelGroup) -> Kernel:
        """The kernel as a closed sub-program; kept, since a search asks for the same ones again."""
        kernel = self._kernels.get(group)
        if kernel is None:
            kernel = lone_kernel(
                self.original,
                self.scopes[group.scope],
                group,
                prefix=self.fused_prefix,
                rules=self.rules,
            )
            self._kernels[group] = kernel
        return kernel

    def multiplicity(self, group: KernelGroup) -> TripCount:
        """How often a kernel runs in one run of the program."""
        return self.execution_counts.get(self.scopes[group.scope].computation.name, ONCE)

    @cached_property
    def fused_prefix(self) -> str:
        """Begins the names of new fused computations, and no name of the compiler's module."""
        prefix = "fused."
        while any(computation.name.startswith(prefix) for computation in self.original.computations):
            prefix = f"new.{prefix}"
        return prefix

    @cached_property
    def own_hazards(self) -> frozenset[Hazard]:
        """What the analysis of overwritten values finds in the captured module: nothing, as far as known.

        Where it finds something, a warning says so: either the analysis is too cautious there, or the module
        was not made by a compiler.
        """
        found = hazards(self.original)
        if found:
            _log.warning(
                "module %s, as captured, seems to read values that it has overwritten (%d times), so "
                "its plans may too: %s",
                self.original.name,
                len(found),
                found[0],
            )
        return frozenset(found)

    @cached_property
    def execution_counts(self) -> Mapping[str, TripCount]:
        """How often each scheduled computation runs in one run of the program."""
        return execution_counts(self.original)

    def local(self, plan: FusionPlan, number: int) -> int:
        """The bits of a plan for the edges of one scope."""
        return _of_scope(plan.fused, self.tables[number])

    def settled(self, plan: FusionPlan, number: int) -> Settled:
        """What a plan means in one scope."""
        local, together = self.local(plan, number), _together(plan.groups, number)
        found = self._settled.get((number, local, plan.loops, together))
        return found or self._settle(number, local, plan.loops, together, None)

    def _settle(
        self, number: int, fused: int, loops: int, together: tuple[int, ...], near: Settled | None
    ) -> Settled:
        settled = settle(self.tables[number], fused, self._active(number, loops), together, near)
        if len(self._settled) >= _SETTLED_KEPT:
            self._settled.clear()
            self._meaning.clear()
        self._settled[number, settled.fused, loops, together] = settled
        return settled

    def _active(self, number: int, loops: int) -> int:
        meaning = self._meaning.get((number, loops))
        if meaning is None:
            meaning = self._meaning[number, loops] = active(self.tables[number], loops)
        return meaning

    def _normal_groups(self, plan: FusionPlan, groups: Iterable[Group]) -> Iterator[Group]:
        taken: set[tuple[int, int]] = set()
        by_scope: dict[int, list[tuple[int, ...]]] = {}
        for group in groups:
            roots = tuple(sorted(r for r in group.roots if self.is_result(plan, group.scope, r)))
            if len(roots) < 2:
                continue
            self._check_group(plan, Group(scope=group.scope, roots=roots))
            places = {(group.scope, root) for root in roots}
            if places & taken:
                raise PlanError("two groups hold the same result; merge them into one")
            taken |= places
            by_scope.setdefault(group.scope, []).append(roots)
        for number, all_roots in by_scope.items():
            own = [r for r in all_roots if self._is_part_of_default(Group(scope=number, roots=r))]
            if not have_order(self.tables[number].needed, all_roots, inward=own):
                name = self.scopes[number].computation.name
                raise PlanError(
                    f"groups in computation {name} need each other's results: no order of kernels exists"
                )
            for roots in all_roots:
                yield Group(scope=number, roots=roots)

    def _check_places(self, scope: int, nodes: Iterable[int]) -> None:
        if not 0 <= scope < len(self.scopes):
            raise PlanError(
                f"the plan names scope {scope}; this space has scopes 0 to {len(self.scopes) - 1}"
            )
        count = len(self.scopes[scope].nodes)
        for node in nodes:
            if not 0 <= node < count:
                raise PlanError(
                    f"the plan names node {node} of scope {scope}, which has nodes 0 to {count - 1}"
                )

    def _check_group(self, plan: FusionPlan, group: Group) -> None:
        scope = self.scopes[group.scope]
        if self.tables[group.scope].is_frozen:
            raise PlanError(
                f"computation {scope.computation.name} keeps the compiler's fusions: no groups there"
            )
        if self._is_part_of_default(group):
            self._check_acyclic(plan, group)
            return
        if len({dimensions_of(scope, root) for root in group.roots}) > 1:
            names = ", ".join(f"%{scope.nodes[root].instruction.name}" for root in group.roots)
            raise PlanError(f"results of one kernel need equal dimensions and layouts; {names} differ")
        for root in group.roots:
            node = scope.nodes[root]
            is_library = node.region != NO_REGION and not plan.loops >> node.region & 1
            if is_library or not may_be_grouped(scope, self.overwrites[group.scope], root):
                raise PlanError(
                    f"%{node.instruction.name} ({node.instruction.opcode}) may not share a kernel with other "
                    "results: by the rules, as a library call, or as a part of an in-place update"
                )

    def _is_part_of_default(self, group: Group) -> bool:
        """Whether the compiler itself computes these results in one kernel."""
        kernels = self.scopes[group.scope].kernels
        return all(root in kernels and set(group.roots) <= set(kernels[root].roots) for root in group.roots)

    def _check_acyclic(self, plan: FusionPlan, group: Group) -> None:
        """One result may need another here, but not by way of another kernel."""
        scope, table = self.scopes[group.scope], self.tables[group.scope]
        members = closure(table, self.local(plan, group.scope), group.roots)
        results = sum(1 << root for root in group.roots)
        for operand in {o for member in bits(members) for o in scope.nodes[member].operands}:
            if not members >> operand & 1 and table.needed[operand] & results:
                raise PlanError(
                    f"the results of {scope.computation.name} that one kernel computes there would need "
                    f"%{scope.nodes[operand].instruction.name}, which needs one of them"
                )

    def _normal_settings(self, plan: FusionPlan, settings: Iterable[Setting]) -> Iterator[Setting]:
        grouped = {(group.scope, root) for group in plan.groups for root in group.roots}
        for setting in settings:
            scope, root = self.scopes[setting.scope], setting.root
            if setting.emission not in EMISSIONS:
                raise PlanError(f"emission must be one of {', '.join(EMISSIONS)}, got {setting.emission}")
            if (setting.scope, root) in grouped or not self.is_result(plan, setting.scope, root):
                continue
            group = self.kernel_group(plan, setting.scope, root)
            if setting.emission == "library":
                if group.form in (Form.FUSED, Form.BARE) and not self.why_not_offloaded(group):
                    yield setting
                continue
            wanted = Form.BARE if setting.emission == "bare" else Form.FUSED
            is_view = scope.nodes[root].instruction.opcode in ("bitcast", "reshape")
            if group.members != 1 << root or group.form in (Form.WHOLE, Form.LIBRARY, wanted) or is_view:
                continue
            yield setting


def _of_scope(fused: int, table: ScopeEdges) -> int:
    return fused >> table.first & (1 << table.count) - 1


def _together(groups: tuple[Group, ...], number: int) -> tuple[int, ...]:
    return tuple(sum(1 << root for root in group.roots) for group in groups if group.scope == number)


def space_of(program: Program, rules: Rules = XLA_CPU) -> FusionSpace:
    """The fusion space of a program as its compiler fused it.

    Args:
        program: the compiler's own final, scheduled module.
        rules: of the target.

    Raises:
        PlanError: the module is not scheduled.

    >>> from kernelcast.hlo.text import parse
    >>> space = space_of(parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[4] parameter(0)  y = f32[4] tanh(x)  ROOT z = f32[4] negate(y) }'''))
    >>> [(e.producer, e.consumer) for e in space.edges], len(space.groups(default(space)))
    ([(1, 2)], 2)
    >>> len(space.groups(space.plan(0b1)))
    1
    """
    if not program.is_scheduled:
        raise PlanError(
            f"module {program.name} is not scheduled: capture the final module, after the compiler's last "
            "pass"
        )
    taken_apart = unfuse(program, rules)
    overwritten = clobbered(taken_apart.program)
    overwrites: list[Overwrites] = []
    tables: list[ScopeEdges] = []
    for number, scope in enumerate(taken_apart.scopes):
        name = scope.computation.name
        overwrites.append(overwrites_of(scope, taken_apart.program[name], overwritten.get(name, {})))
        first = tables[-1].first + tables[-1].count if tables else 0
        tables.append(edges_of(scope, number, first, overwrites[-1], rules))
    return FusionSpace(
        original=program,
        program=taken_apart.program,
        rules=rules,
        scopes=taken_apart.scopes,
        tables=tuple(tables),
        overwrites=tuple(overwrites),
        regions=taken_apart.regions,
        kept_whole=taken_apart.kept_whole,
    )


def default(space: FusionSpace) -> FusionPlan:
    """The plan that the compiler itself follows; applied, it gives the compiler's own module back.

    >>> from kernelcast.fusion.apply import apply
    >>> from kernelcast.hlo.text import parse
    >>> space = space_of(parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[4] parameter(0)  y = f32[4] tanh(x)  ROOT z = f32[4] negate(y) }'''))
    >>> apply(space, default(space)) == space.original
    True
    """
    groups = {
        Group(scope=number, roots=kernel.roots)
        for number, scope in enumerate(space.scopes)
        for kernel in scope.kernels.values()
        if len(kernel.roots) > 1 and not space.tables[number].is_frozen
    }
    return space.plan(sum(table.default << table.first for table in space.tables), groups=groups)


def unfused(space: FusionSpace) -> FusionPlan:
    """The plan that fuses nothing; library regions as in the default."""
    return space.plan(0)
