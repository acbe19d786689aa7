"""Un-fusing, edges, normal form and emission, on modules small enough to check by hand."""

# ruff: noqa: E501 (a line of HLO is as long as it is)

from dataclasses import replace

import pytest

from kernelcast.errors import PlanError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.grouping import Form, active, bits, settle
from kernelcast.fusion.plan import Group, Setting
from kernelcast.fusion.sample import all_fused
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.format import format_program
from kernelcast.hlo.text import parse

# tanh is computed in both kernels of the default.
CLONES = """HloModule m, is_scheduled=true

%left (x: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0)
  %tanh.1 = f32[4,8]{1,0} tanh(%x)
  ROOT %negate = f32[4,8]{1,0} negate(%tanh.1)
}

%right (y: f32[4,8]) -> f32[4,8] {
  %y = f32[4,8]{1,0} parameter(0)
  %tanh.2 = f32[4,8]{1,0} tanh(%y), metadata={op_name="again"}
  %two = f32[] constant(2)
  %twos = f32[4,8]{1,0} broadcast(%two), dimensions={}
  ROOT %multiply = f32[4,8]{1,0} multiply(%tanh.2, %twos)
}

ENTRY %main (a: f32[4,8]) -> (f32[4,8], f32[4,8]) {
  %a = f32[4,8]{1,0} parameter(0)
  %f = f32[4,8]{1,0} fusion(%a), kind=kLoop, calls=%left
  %g = f32[4,8]{1,0} fusion(%a), kind=kLoop, calls=%right
  ROOT %t = (f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(%f, %g)
}
"""


@pytest.fixture
def clones() -> FusionSpace:
    return space_of(parse(CLONES))


def edge_names(space: FusionSpace) -> list[tuple[str, str]]:
    nodes = [scope.nodes for scope in space.scopes]
    return [
        (nodes[e.scope][e.producer].instruction.name, nodes[e.scope][e.consumer].instruction.name)
        for e in space.edges
    ]


def fused(space: FusionSpace, *pairs: tuple[str, str]) -> int:
    names = edge_names(space)
    return sum(1 << names.index(pair) for pair in pairs)


def test_clones_of_a_producer_become_one(clones: FusionSpace):
    opcodes = [i.opcode for i in clones.program.entry_computation]
    assert opcodes.count("tanh") == 1
    assert edge_names(clones) == [("tanh.1", "negate"), ("tanh.1", "multiply"), ("twos", "multiply")]


def test_the_default_is_recovered_and_comes_back(clones: FusionSpace):
    plan = default(clones)
    assert plan.fused == 0b111
    assert clones.unexpressed == ()
    assert format_program(apply(clones, plan)) == format_program(parse(CLONES))


def test_nested_fusions_are_taken_apart_too():
    nested = CLONES.replace(
        "  ROOT %negate = f32[4,8]{1,0} negate(%tanh.1)\n",
        "  ROOT %inner = f32[4,8]{1,0} fusion(%tanh.1), kind=kLoop, calls=%innermost\n",
    ).replace(
        "%left (x",
        "%innermost (z: f32[4,8]) -> f32[4,8] {\n  %z = f32[4,8]{1,0} parameter(0)\n"
        "  ROOT %negate = f32[4,8]{1,0} negate(%z)\n}\n\n%left (x",
    )
    space = space_of(parse(nested))
    assert edge_names(space) == [("tanh.1", "negate"), ("tanh.1", "multiply"), ("twos", "multiply")]
    assert format_program(apply(space, default(space))) == format_program(parse(nested))


def test_unfused_has_one_kernel_per_operation(clones: FusionSpace):
    plan = unfused(clones)
    program = apply(clones, plan)
    assert [group.form for group in clones.groups(plan)] == [Form.FUSED] * 4
    assert [i.opcode for i in program.entry_computation] == [
        "parameter", "fusion", "fusion", "fusion", "fusion", "tuple",
    ]  # fmt: skip


def test_a_use_that_is_not_fused_writes_the_producer_to_memory(clones: FusionSpace):
    plan = clones.plan(fused(clones, ("tanh.1", "negate")))
    members = [
        [clones.scopes[0].nodes[m].instruction.name for m in bits(g.members)] for g in clones.groups(plan)
    ]
    assert members == [["tanh.1"], ["tanh.1", "negate"], ["twos"], ["multiply"]]


def test_scalar_constants_stand_inside_new_kernels(clones: FusionSpace):
    program = apply(clones, unfused(clones))
    assert "constant" not in [i.opcode for i in program.entry_computation]


def test_a_kernel_of_the_default_is_emitted_verbatim_in_other_plans(clones: FusionSpace):
    plan = clones.plan(fused(clones, ("tanh.1", "negate")))
    assert "%left" in format_program(apply(clones, plan))
    assert "%left" not in format_program(apply(clones, plan, verbatim=False))


def test_a_group_has_several_results(clones: FusionSpace):
    negate, multiply = (clones.scopes[0].number_of[name] for name in ("negate", "multiply"))
    plan = clones.plan(default(clones).fused, groups=(Group(scope=0, roots=(negate, multiply)),))
    assert len(clones.groups(plan)) == 1
    entry = apply(clones, plan).entry_computation
    assert [i.opcode for i in entry] == [
        "parameter",
        "fusion",
        "get-tuple-element",
        "get-tuple-element",
        "tuple",
    ]


def test_a_group_whose_results_need_each_other_is_refused(clones: FusionSpace):
    tanh, negate = (clones.scopes[0].number_of[name] for name in ("tanh.1", "negate"))
    with pytest.raises(PlanError, match="need each other's results"):
        clones.plan(0, groups=(Group(scope=0, roots=(tanh, negate)),))


def test_settings_without_effect_are_left_out(clones: FusionSpace):
    negate = clones.scopes[0].number_of["negate"]
    wrapped = Setting(scope=0, root=negate, emission="wrapped")
    bare = Setting(scope=0, root=negate, emission="bare")
    assert clones.plan(0, settings=(wrapped,)) == unfused(clones)
    assert clones.plan(default(clones).fused, settings=(bare,)) == default(clones)
    plan = clones.plan(0, settings=(bare,))
    assert plan != unfused(clones)
    assert "negate" in [i.opcode for i in apply(clones, plan).entry_computation]


def test_plans_of_other_programs_and_rules_are_refused(clones: FusionSpace):
    other = space_of(parse(CLONES.replace("negate(", "sine(")))
    with pytest.raises(PlanError, match="of another program"):
        apply(clones, default(other))


def test_a_plan_that_names_what_is_not_there_is_refused(clones: FusionSpace):
    with pytest.raises(PlanError, match="names scope 4; this space has scopes 0 to 0"):
        apply(clones, replace(default(clones), groups=(Group(scope=4, roots=(0, 1)),)))
    with pytest.raises(PlanError, match="names node 99 of scope 0"):
        apply(clones, replace(default(clones), settings=(Setting(scope=0, root=99, emission="bare"),)))


def test_a_plan_of_other_rules_is_refused(clones: FusionSpace):
    stale = replace(default(clones), rules="xla-cpu/0:0000")
    with pytest.raises(PlanError, match="for rules xla-cpu/0:0000, this space has xla-cpu/1:"):
        apply(clones, stale)


def test_decisions_that_are_not_in_normal_form_are_refused():
    space = space_of(parse(SHARED))
    shared = replace(unfused(space), fused=fused(space, ("d", "n"), ("d", "e")))
    with pytest.raises(PlanError, match="not in normal form"):
        apply(space, shared)


def test_a_module_without_a_schedule_is_refused():
    with pytest.raises(PlanError, match="module m is not scheduled: capture the final module"):
        space_of(parse(CLONES.replace(", is_scheduled=true", "")))


def test_names_and_metadata_do_not_change_the_space(clones: FusionSpace):
    renamed = CLONES.replace("%multiply", "%product").replace("again", "other")
    assert space_of(parse(renamed)).digest == clones.digest
    assert space_of(parse(CLONES.replace("constant(2)", "constant(3)"))).digest != clones.digest


# A dot with two consumers: SHARE.
SHARED = """HloModule m, is_scheduled=true

ENTRY %main (a: f32[4,4], b: f32[4,4]) -> (f32[4,4], f32[4,4]) {
  %a = f32[4,4]{1,0} parameter(0)
  %b = f32[4,4]{1,0} parameter(1)
  %d = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %n = f32[4,4]{1,0} negate(%d)
  %e = f32[4,4]{1,0} exponential(%d)
  %s = f32[4,4]{1,0} add(%n, %e)
  ROOT %t = (f32[4,4]{1,0}, f32[4,4]{1,0}) tuple(%s, %e)
}
"""


def test_a_shared_producer_is_held_by_one_kernel_at_most():
    space = space_of(parse(SHARED))
    both = fused(space, ("d", "n"), ("d", "e"))
    # n and e are two kernels: neither may hold the dot.
    assert space.plan(both) == unfused(space)
    # With n inside s the dot would still be in s and in e.
    inside = fused(space, ("n", "s"))
    assert space.plan(both | inside) == space.plan(inside)


def test_a_cut_edge_that_says_nothing_is_fused():
    # e is computed inside s only, and so is n: s holds e's producer n anyway.
    space = space_of(parse(CHAIN))
    whole = fused(space, ("n", "e"), ("e", "s"), ("n", "s"))
    assert space.plan(whole & ~fused(space, ("n", "s"))).fused == whole


CHAIN = """HloModule m, is_scheduled=true

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %n = f32[4]{0} negate(%a)
  %e = f32[4]{0} exponential(%n)
  ROOT %s = f32[4]{0} add(%n, %e)
}
"""


def test_normal_form_is_a_fixed_point():
    space = space_of(parse(SHARED))
    for decisions in range(1 << len(space.edges)):
        plan = space.plan(decisions)
        assert space.plan(plan.fused) == plan
        assert settle(space.tables[0], plan.fused, active(space.tables[0], 0)).fused == plan.fused


# Each step doubles how often the first operation is evaluated.
DOUBLING = "\n".join(
    (
        "HloModule m, is_scheduled=true",
        "",
        "ENTRY %main (a: f32[64]) -> f32[64] {",
        "  %a = f32[64]{0} parameter(0)",
        "  %x0 = f32[64]{0} tanh(%a)",
        *(
            f"  %r{i} = f32[64]{{0}} reverse(%x{i}), dimensions={{0}}\n  %x{i + 1} = f32[64]{{0}} add(%x{i}, %r{i})"
            for i in range(12)
        ),
        "  ROOT %last = f32[64]{0} negate(%x12)",
        "}",
    )
)


def test_index_changing_diamonds_are_bounded():
    space = space_of(parse(DOUBLING))
    everything = space.plan((1 << len(space.edges)) - 1)
    ((_, reason),) = space.illegal_kernels(everything)
    assert "the code of one operation 4096 times; at most 24" in reason
    with pytest.raises(PlanError, match="%last in computation main has the code of one operation"):
        apply(space, everything)
    legal = all_fused(space)
    assert not list(space.illegal_kernels(legal))
    assert len(space.groups(legal)) < len(space.groups(unfused(space)))


IN_PLACE = """HloModule m, is_scheduled=true

ENTRY %main (a: f32[8], u: f32[2], i: s32[]) -> (f32[8], f32[8]) {
  %a = f32[8]{0} parameter(0)
  %u = f32[2]{0} parameter(1)
  %i = s32[] parameter(2)
  %x = f32[8]{0} tanh(%a)
  %r = f32[8]{0} reverse(%x), dimensions={0}
  %n = f32[8]{0} negate(%r)
  %w = f32[8]{0} dynamic-update-slice(%x, %u, %i)
  %s = f32[8]{0} add(%n, %w)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%s, %w)
}
"""


def test_a_read_of_an_overwritten_value_does_not_move_behind_the_write():
    space = space_of(parse(IN_PLACE))
    # r reads x, which w overwrites, so r goes into no later kernel; x itself may be computed again in r.
    assert edge_names(space) == [("x", "r"), ("n", "s")]


def test_readers_come_before_what_overwrites_their_value():
    space = space_of(parse(IN_PLACE))
    order = [i.name for i in apply(space, unfused(space)).entry_computation]
    assert order.index("r") < order.index("w")


# The body computes the next state twice: once for the state, once inside the kernel that reads the old one.
FORCED = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {0}, may-alias), {1}: (0, {1}, may-alias), {2}: (0, {2}, may-alias) }

%mixed (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %tanh.2 = f32[8]{0} tanh(%x)
  %back = f32[8]{0} reverse(%x), dimensions={0}
  ROOT %product = f32[8]{0} multiply(%tanh.2, %back)
}

%body (s: (f32[8], f32[8], s32[])) -> (f32[8], f32[8], s32[]) {
  %s = (f32[8]{0}, f32[8]{0}, s32[]) parameter(0)
  %x = f32[8]{0} get-tuple-element(%s), index=0
  %i = s32[] get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %old = f32[8]{0} fusion(%x), kind=kLoop, calls=%mixed
  %tanh.1 = f32[8]{0} tanh(%x)
  %next = s32[] add(%i, %one)
  ROOT %t = (f32[8]{0}, f32[8]{0}, s32[]) tuple(%tanh.1, %old, %next)
}

%more (s: (f32[8], f32[8], s32[])) -> pred[] {
  %s = (f32[8]{0}, f32[8]{0}, s32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=2
  %end = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %end), direction=LT
}

ENTRY %main (s: (f32[8], f32[8], s32[])) -> (f32[8], f32[8], s32[]) {
  %s = (f32[8]{0}, f32[8]{0}, s32[]) parameter(0)
  ROOT %w = (f32[8]{0}, f32[8]{0}, s32[]) while(%s), condition=%more, body=%body
}
"""


def test_a_second_computation_of_the_next_state_stays_where_it_is():
    space = space_of(parse(FORCED))
    (number,) = (n for n, scope in enumerate(space.scopes) if scope.computation.name == "body")
    table = space.tables[number]
    names = [edge_names(space)[table.first + bit] for bit in bits(table.fixed)]
    assert names == [("tanh.2", "product")]
    # No plan undoes it, and every plan has an order.
    for decisions in range(1 << len(space.edges)):
        apply(space, space.plan(decisions))
    assert format_program(apply(space, default(space))) == format_program(parse(FORCED))


REGION = """HloModule m, is_scheduled=true

%sum (p: f32[], q: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %plus = f32[] add(%p, %q)
}

%library (x: f32[64,128], zero: f32[]) -> f32[64] {
  %x = f32[64,128]{1,0} parameter(0)
  %zero = f32[] parameter(1)
  %square = f32[64,128]{1,0} multiply(%x, %x)
  ROOT %rows = f32[64]{0} reduce(%square, %zero), dimensions={1}, to_apply=%sum
}

ENTRY %main (a: f32[64,128]) -> f32[64] {
  %a = f32[64,128]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %e = f32[64,128]{1,0} exponential(%a)
  %call = f32[64]{0} fusion(%e, %zero), kind=kCustom, calls=%library, backend_config={"outer_dimension_partitions":[],"fusion_config":{"kind":"__ynn_fusion"}}
  ROOT %n = f32[64]{0} negate(%call)
}
"""


def test_a_library_region_is_one_call_until_it_is_loops():
    space = space_of(parse(REGION))
    assert edge_names(space) == [("e", "square"), ("square", "rows"), ("rows", "n")]
    everything = fused(space, ("e", "square"), ("square", "rows"))
    assert space.plan(everything) == default(space)
    assert [g.form for g in space.groups(default(space))] == [Form.BARE, Form.LIBRARY, Form.BARE]
    loops = space.plan(everything, loops=1)
    assert [g.members.bit_count() for g in space.groups(loops)] == [3, 1]
    assert "kCustom" not in format_program(apply(space, loops))


def test_the_kernel_of_a_group_is_the_kernel_that_the_module_launches(clones: FusionSpace):
    plan = default(clones)
    texts = [clones.kernel(group).text for group in clones.groups(plan)]
    assert all("tanh" in text for text in texts)
    assert clones.multiplicity(clones.groups(plan)[0]).value == 1


def test_a_hazard_of_the_module_itself_is_told_and_other_plans_keep_it(caplog: pytest.LogCaptureFixture):
    space = space_of(
        parse("""HloModule odd, is_scheduled=true
    ENTRY e { x = f32[8] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
      y = f32[8] negate(x)  r = f32[8] dynamic-update-slice(y, u, i)  ROOT t = (f32[8], f32[8]) tuple(r, y) }""")
    )
    assert apply(space, default(space)) == space.original
    apply(space, unfused(space))
    (told,) = caplog.messages
    assert told.startswith("module odd, as captured,")
    assert "returns %y, which %r has overwritten" in told


def test_a_constant_that_must_run_before_stays_in_the_module():
    space = space_of(
        parse("""HloModule m, is_scheduled=true
    ENTRY e { x = f32[8] parameter(0)  k = f32[] constant(2)  y = f32[8] negate(x)
      ROOT z = f32[8] tanh(y), control-predecessors={k} }""")
    )
    assert apply(space, default(space)) == space.original


def test_operations_may_be_called_as_parameters_mostly_are():
    space = space_of(
        parse("""HloModule m, is_scheduled=true
    ENTRY e { x = f32[8] parameter(0)  p0 = f32[8] negate(x)  ROOT z = f32[8] tanh(p0) }""")
    )
    fusion = apply(space, all_fused(space)).entry_computation.root_instruction
    assert fusion.opcode == "fusion"
