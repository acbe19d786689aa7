"""The rules of XLA:TPU, on modules written by hand in the form in which libtpu hands them over."""

import pytest

from kernelcast.errors import PlanError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.grouping import is_default
from kernelcast.fusion.plan import Group
from kernelcast.fusion.rules import XLA_CPU
from kernelcast.fusion.rules_tpu import AS_COMPILED, XLA_TPU
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.text import parse
from kernelcast.hlo.verify import violations

# A convolution with a nested input and a relu; a fusion of two results of different shapes, one of which the
# other needs.
MODULE = """HloModule m, is_scheduled=true

%sum {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
%input {
  %p = f32[64,128]{1,0:T(8,128)} parameter(0)
  ROOT %n = f32[64,128]{1,0:T(8,128)} negate(%p)
}
%product {
  %x = f32[64,128]{1,0:T(8,128)} parameter(0)
  %w = f32[128,128]{1,0:T(8,128)} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[64,128]{1,0:T(8,128)} broadcast(%zero), dimensions={}
  %in = f32[64,128]{1,0:T(8,128)} fusion(%x), kind=kLoop, calls=%input
  %conv = f32[64,128]{1,0:T(8,128)} convolution(%in, %w), dim_labels=bf_io->bf
  ROOT %relu = f32[64,128]{1,0:T(8,128)} maximum(%conv, %zeros)
}
%two {
  %y = f32[64,128]{1,0:T(8,128)} parameter(0)
  %zero = f32[] constant(0)
  %t = f32[64,128]{1,0:T(8,128)} tanh(%y)
  %r = f32[128]{0:T(128)} reduce(%t, %zero), dimensions={0}, to_apply=%sum
  ROOT %both = (f32[128]{0:T(128)}, f32[64,128]{1,0:T(8,128)}) tuple(%r, %t)
}
ENTRY %main {
  %x = f32[64,128]{1,0:T(8,128)} parameter(0)
  %w = f32[128,128]{1,0:T(8,128)} parameter(1)
  %fusion.1 = f32[64,128]{1,0:T(8,128)} fusion(%x, %w), kind=kOutput, calls=%product
  %fusion.2 = (f32[128]{0:T(128)}, f32[64,128]{1,0:T(8,128)}) fusion(%fusion.1), kind=kLoop, calls=%two
  %column = f32[128]{0:T(128)} get-tuple-element(%fusion.2), index=0
  %whole = f32[64,128]{1,0:T(8,128)} get-tuple-element(%fusion.2), index=1
  ROOT %out = (f32[128]{0:T(128)}, f32[64,128]{1,0:T(8,128)}) tuple(%column, %whole)
}
"""


@pytest.fixture
def space() -> FusionSpace:
    return space_of(parse(MODULE), XLA_TPU)


def number(space: FusionSpace, name: str) -> int:
    return space.scopes[0].number_of[name]


def edge(space: FusionSpace, producer: str, consumer: str) -> int:
    ends = (number(space, producer), number(space, consumer))
    return next(n for n, e in enumerate(space.edges) if (e.producer, e.consumer) == ends)


def test_every_fusion_is_taken_apart(space: FusionSpace) -> None:
    assert space.kept_whole == ()
    opcodes = [node.instruction.opcode for node in space.scopes[0].nodes]
    assert {"negate", "convolution", "maximum", "tanh", "reduce"} <= set(opcodes)
    assert not {"fusion", "get-tuple-element"} & set(opcodes)


def test_the_default_is_a_plan_and_gives_the_module_back(space: FusionSpace) -> None:
    assert space.unexpressed == ()
    plan = default(space)
    assert plan.groups == (Group(scope=0, roots=(number(space, "t"), number(space, "r"))),)
    assert all(is_default(space.scopes[0], group) for group in space.groups(plan))
    assert apply(space, plan) == space.original


def test_un_fused_nothing_is_left_of_the_fusions(space: FusionSpace) -> None:
    program = apply(space, unfused(space))
    assert not violations(program)
    opcodes = {i.opcode for i in program.entry_computation}
    assert {"broadcast", "negate", "convolution", "maximum", "tanh", "reduce", "tuple"} <= opcodes
    assert "fusion" not in opcodes


def test_a_new_fusion_around_a_convolution_nests_its_inputs(space: FusionSpace) -> None:
    plan = space.plan(1 << edge(space, "n", "conv"))
    program = apply(space, plan)
    assert not violations(program)
    (fusion,) = (i for i in program.entry_computation if i.opcode == "fusion")
    assert fusion.attribute("kind") == "kOutput"
    body = program[fusion.called[0]]
    assert [i.opcode for i in body] == ["parameter", "parameter", "fusion", "convolution"]
    (inner,) = (i for i in body if i.opcode == "fusion")
    assert [i.opcode for i in program[inner.called[0]]] == ["parameter", "negate"]


def test_results_of_one_kernel_may_be_taken_apart(space: FusionSpace) -> None:
    plan = space.plan(default(space).fused)  # the same edges, no group
    names = [i.name for i in apply(space, plan).entry_computation if i.opcode == "fusion"]
    assert len(names) == 2  # the product, and the reduction with its own copy of tanh
    assert plan != default(space)


def test_two_convolutions_in_one_kernel_are_refused() -> None:
    legality = XLA_TPU.legality
    assert legality is not None
    conv = parse(MODULE)["product"]["conv"]
    assert "two convolutions" in legality.objection([conv, conv], {"conv"}, is_part_of_default=True)


def test_pairs_that_abort_are_no_edges(space: FusionSpace) -> None:
    legality = XLA_TPU.legality
    assert legality is not None
    program = parse("""HloModule m ENTRY e {
      a = f32[8,16]{1,0} parameter(0)
      z = f32[] constant(0)
      t = f32[8,16]{1,0} tanh(a)
      u = f32[8,16]{0,1} negate(a)
      s = f32[8,8]{1,0} slice(t), slice={[0:8], [0:8]}
      b = f32[4,8,16]{2,1,0} broadcast(t), dimensions={1,2}
      scalar = f32[] negate(z)
      w = f32[8,16]{1,0} broadcast(scalar), dimensions={}
      ROOT r = f32[8,16]{1,0} add(t, w)
    }""").entry_computation

    def allows(producer: str, consumer: str, users: int = 1) -> bool:
        return legality.allows(program[producer], program[consumer], users=users)

    assert allows("t", "r")
    assert allows("w", "r")
    assert not allows("u", "r")  # walks memory in another order
    assert not allows("t", "s")
    assert not allows("t", "b")
    assert not allows("scalar", "w")


def test_a_convolution_is_fused_into_its_only_reader(space: FusionSpace) -> None:
    legality = XLA_TPU.legality
    assert legality is not None
    product = parse(MODULE)["product"]
    assert legality.allows(product["conv"], product["relu"], users=1)
    assert not legality.allows(product["conv"], product["relu"], users=2)


def test_moving_operations_keep_their_partners(space: FusionSpace) -> None:
    legality = XLA_TPU.legality
    assert legality is not None
    entry = parse("""HloModule m ENTRY e { a = f32[8,8] parameter(0)
      s = f32[4,8] slice(a), slice={[0:4], [0:8]}  ROOT t = f32[4,8] tanh(s) }""").entry_computation
    pair = [entry["s"], entry["t"]]
    assert "slice beside operations" in legality.objection(pair, {"t"}, is_part_of_default=False)
    assert not legality.objection(pair, {"t"}, is_part_of_default=True)
    assert not legality.objection(pair[:1], {"s"}, is_part_of_default=False)


def test_a_group_that_would_wait_for_itself_is_refused() -> None:
    # With the inner sum cut out, the two results of one kernel would need a kernel that needs one of them.
    text = MODULE.replace(
        "%r = f32[128]{0:T(128)} reduce(%t, %zero), dimensions={0}, to_apply=%sum",
        "%e = f32[64,128]{1,0:T(8,128)} exponential(%t)\n"
        "  %r = f32[128]{0:T(128)} reduce(%e, %zero), dimensions={0}, to_apply=%sum",
    )
    space = space_of(parse(text), XLA_TPU)
    assert space.unexpressed == ()
    base = default(space)
    cut = base.fused & ~(1 << edge(space, "e", "r"))
    with pytest.raises(PlanError, match="which needs one of them"):
        space.plan(cut, groups=base.groups)


def test_no_opcode_stands_in_two_rows() -> None:
    opcodes = [opcode for row in XLA_TPU.table for opcode in row.opcodes]
    assert len(opcodes) == len(set(opcodes))
    assert all(row.evidence for row in XLA_TPU.table)
    assert not AS_COMPILED & {"gather", "scatter", "sort", "custom-call"}


def test_rules_of_two_targets_have_two_identities() -> None:
    assert XLA_TPU.identity.startswith("xla-tpu/1:")
    # Plans and results of XLA:CPU that are stored name these rules.
    assert XLA_CPU.identity == "xla-cpu/1:ca1abd31059b"
