"""Kernels that a plan hands to the library: what it takes, what it does not, and that values stay."""

import pytest

from kernelcast.core.kernel import Kind
from kernelcast.errors import PlanError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.grouping import Form
from kernelcast.fusion.moves import IllegalMoveError, apply_move, flip, set_emission
from kernelcast.fusion.plan import FusionPlan, Setting
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.format import format_program
from kernelcast.hlo.text import parse

CHAIN = """HloModule m, is_scheduled=true

ENTRY %main (a: f32[8,16], b: f32[16]) -> (f32[8,16], f32[8,16]) {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[16]{0} parameter(1)
  %wide = f32[8,16]{1,0} broadcast(%b), dimensions={1}
  %product = f32[8,16]{1,0} multiply(%a, %wide)
  %power = f32[8,16]{1,0} exponential(%product)
  %turned = f32[8,16]{1,0} sine(%power)
  ROOT %t = (f32[8,16]{1,0}, f32[8,16]{1,0}) tuple(%power, %turned)
}
"""


@pytest.fixture
def space() -> FusionSpace:
    return space_of(parse(CHAIN))


def node(space: FusionSpace, name: str) -> int:
    return space.scopes[0].number_of[name]


def offloaded(space: FusionSpace, fused: int, *names: str) -> FusionPlan:
    settings = [Setting(scope=0, root=node(space, name), emission="library") for name in names]
    return space.plan(fused, settings=settings)


def edge(space: FusionSpace, producer: str, consumer: str) -> int:
    ends = node(space, producer), node(space, consumer)
    return next(n for n, e in enumerate(space.edges) if (e.producer, e.consumer) == ends)


def test_an_offloaded_kernel_is_a_call_of_the_library(space: FusionSpace) -> None:
    fused = 1 << edge(space, "wide", "product") | 1 << edge(space, "product", "power")
    plan = offloaded(space, fused, "power")
    (group,) = [g for g in space.groups(plan) if g.form is Form.OFFLOADED]
    assert group.members.bit_count() == 3
    kernel = space.kernel(group)
    assert kernel.kind is Kind.LIBRARY
    assert kernel.root.attribute("kind") == "kCustom"
    text = format_program(apply(space, plan))
    assert text.count('"kind":"__ynn_fusion"') == 1
    assert FusionPlan.decode(plan.encode()) == plan
    space.check(plan)


def test_a_bare_operation_of_the_compilers_own_can_be_offloaded(space: FusionSpace) -> None:
    """It has the same members as the compiler's kernel, and is another kernel all the same."""
    plan = offloaded(space, 0, "power")
    group = next(g for g in space.groups(plan) if g.form is Form.OFFLOADED)
    assert space.kernel(group).kind is Kind.LIBRARY
    assert format_program(apply(space, plan)).count('"kind":"__ynn_fusion"') == 1


def test_what_the_library_lacks_stays_with_loops(space: FusionSpace) -> None:
    assert offloaded(space, 0, "turned") == unfused(space)
    reasons = {
        space.scopes[0].nodes[g.roots[0]].instruction.opcode: space.why_not_offloaded(g)
        for g in space.groups(unfused(space))
    }
    assert reasons["sine"].startswith("sine, which the library lacks")
    assert reasons["broadcast"] == "nothing to compute"
    assert reasons["exponential"] == ""


@pytest.mark.parametrize("change", [("f32[8,16]{1,0}", "f32[8,16]{0,1}"), ("f32", "f64")])
def test_other_layouts_and_types_are_not_taken(change: tuple[str, str]) -> None:
    space = space_of(parse(CHAIN.replace(*change)))
    group = next(g for g in space.groups(unfused(space)) if g.roots == (node(space, "power"),))
    assert "needed are arrays of f32 in row-major order" in space.why_not_offloaded(group)
    assert offloaded(space, 0, "power") == unfused(space)


def test_absorbing_what_it_lacks_ends_an_offload(space: FusionSpace) -> None:
    plan = offloaded(space, 0, "power", "product")
    assert len(plan.settings) == 2
    fused = space.plan(1 << edge(space, "product", "power"), settings=plan.settings)
    assert [s.root for s in fused.settings] == [node(space, "power")]
    with pytest.raises(PlanError, match="emission must be one of bare, wrapped, library, got gpu"):
        space.plan(0, settings=[Setting(scope=0, root=node(space, "power"), emission="gpu")])


def test_moves_set_and_end_an_emission(space: FusionSpace) -> None:
    start = unfused(space)
    move = set_emission(space, start, 0, node(space, "power"), "library")
    made = apply_move(space, start, move)
    assert [g.form for g in made.added] == [Form.OFFLOADED]
    assert len(made.removed) == 1
    assert apply_move(space, made.plan, made.inverse).plan == start
    again = apply_move(space, made.plan, set_emission(space, made.plan, 0, node(space, "power"), "library"))
    assert again.plan == start
    grown = apply_move(space, made.plan, flip(space, edge(space, "product", "power")))
    assert grown.added[0].form is Form.OFFLOADED
    assert apply_move(space, grown.plan, grown.inverse).plan == made.plan
    with pytest.raises(IllegalMoveError, match="it changes nothing"):
        apply_move(space, start, set_emission(space, start, 0, node(space, "turned"), "library"))


def test_the_default_offloads_nothing(space: FusionSpace) -> None:
    assert default(space).settings == ()
