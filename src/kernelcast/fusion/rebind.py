"""Carrying a plan over to another program: by what the operations compute, never by their numbers."""

from __future__ import annotations

import random

from kernelcast.errors import PlanError
from kernelcast.fusion.plan import FusionPlan, Group, Setting
from kernelcast.fusion.sample import legalised
from kernelcast.fusion.space import FusionSpace, default


def rebind(source: FusionSpace, plan: FusionPlan, target: FusionSpace) -> tuple[FusionPlan, float]:
    """The plan of another space that decides alike where the two programs are alike.

    Edges are matched by the computation that holds them and the values that they join, from the parameters
    up; so what lies behind a changed operation matches nothing. What has no match keeps the target's default.

    Args:
        source: the plan's own space.
        plan: to carry over.
        target: for which program.

    Returns:
        The plan, and the fraction of the target's decisions (edges and regions) that have a match.

    Raises:
        PlanError: the plan is not of the source.
    """
    source.check(plan)
    ours = {_edge_key(source, number): number for number in range(len(source.edges))}
    fused = default(target).fused
    matched = 0
    for number in range(len(target.edges)):
        counterpart = ours.get(_edge_key(target, number))
        if counterpart is not None:
            matched += 1
            bit = plan.fused >> counterpart & 1
            fused = fused & ~(1 << number) | bit << number
    regions = {_node_key(source, r.scope, r.root): number for number, r in enumerate(source.regions)}
    loops = 0
    for number, region in enumerate(target.regions):
        counterpart = regions.get(_node_key(target, region.scope, region.root))
        if counterpart is not None:
            matched += 1
            loops |= (plan.loops >> counterpart & 1) << number
    carried = _with_extensions(source, plan, target, fused, loops)
    decisions = len(target.edges) + len(target.regions)
    return legalised(target, carried, random.Random(0)), matched / decisions if decisions else 1.0


def _with_extensions(
    source: FusionSpace, plan: FusionPlan, target: FusionSpace, fused: int, loops: int
) -> FusionPlan:
    """The plan with the groups and settings of which every part has a match."""
    place = {
        _node_key(target, number, node): (number, node)
        for number, scope in enumerate(target.scopes)
        for node in range(len(scope.nodes))
    }
    groups: list[Group] = []
    for group in plan.groups:
        found = [place.get(_node_key(source, group.scope, root)) for root in group.roots]
        places = [f for f in found if f is not None]
        if len(places) == len(found) and len({scope for scope, _ in places}) == 1:
            groups.append(Group(scope=places[0][0], roots=tuple(node for _, node in places)))
    settings: list[Setting] = []
    for setting in plan.settings:
        there = place.get(_node_key(source, setting.scope, setting.root))
        if there is not None:
            settings.append(Setting(scope=there[0], root=there[1], emission=setting.emission))
    try:
        return target.plan(fused, loops=loops, groups=groups, settings=settings)
    except PlanError:  # a group that is legal there and not here
        return target.plan(fused, loops=loops, settings=settings)


def _edge_key(space: FusionSpace, number: int) -> tuple[str, str, str]:
    edge = space.edges[number]
    scope = space.scopes[edge.scope]
    return scope.path, scope.nodes[edge.producer].value, scope.nodes[edge.consumer].value


def _node_key(space: FusionSpace, scope: int, node: int) -> tuple[str, str]:
    return space.scopes[scope].path, space.scopes[scope].nodes[node].value
