"""Programs as values: what cannot be built, and what is asked of those that can."""

from dataclasses import FrozenInstanceError, replace

import pytest

from kernelcast.errors import HloError
from kernelcast.hlo.program import Alias, Computation, Instruction, Program
from kernelcast.hlo.shape import array_shape
from kernelcast.hlo.text import parse

SCALAR = array_shape("f32", ())
X = Instruction(name="x", opcode="parameter", shape=SCALAR, parameter_number=0)

CONTROL_FLOW = parse("""HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }

fused {
  p = f32[8] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=add
}

less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }

body { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  w = f32[8] sort(v), dimensions={0}, to_apply=less
  ROOT t = (s32[], f32[8]) tuple(i, w) }

condition { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }

branch.1 { ROOT p = f32[8] parameter(0) }
branch.2 { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }
callee { p = f32[8] parameter(0)  ROOT n = f32[8] abs(p) }

ENTRY e {
  x = f32[8] parameter(0)
  i = s32[] constant(0)
  state = (s32[], f32[8]) tuple(i, x)
  loop = (s32[], f32[8]) while(state), condition=condition, body=body
  y = f32[8] get-tuple-element(loop), index=1
  total = f32[] fusion(y), kind=kInput, calls=fused
  which = s32[] convert(total)
  z = f32[8] conditional(which, y, y), branch_computations={branch.1, branch.2}
  ROOT c = f32[8] call(z), to_apply=callee
}
""")


def computation(*instructions: Instruction, name: str = "e", root: str | None = None) -> Computation:
    return Computation(name=name, instructions=instructions, root=root or instructions[-1].name)


def unary(name: str, operand: str, **attributes: str) -> Instruction:
    return Instruction(
        name=name, opcode="tanh", shape=SCALAR, operands=(operand,), attributes=tuple(attributes.items())
    )


class TestWhatCannotBeBuilt:
    @pytest.mark.parametrize(
        ("instructions", "message"),
        [
            ((unary("y", "x"), X), "%y: operand %x is not defined before it in computation e"),
            ((unary("y", "y"),), "%y: operand %y is not defined before it in computation e"),
            ((X, X), "%x: name is used twice in computation e"),
            (
                (
                    X,
                    replace(unary("y", "x"), attributes=(("control-predecessors", "{%z}"),)),
                    unary("z", "x"),
                ),
                "%y: operand %z is not defined before it in computation e",
            ),
        ],
    )
    def test_instructions_out_of_order(self, instructions: tuple[Instruction, ...], message: str) -> None:
        with pytest.raises(HloError) as caught:
            computation(*instructions)
        assert str(caught.value) == message

    def test_a_root_that_is_not_there(self) -> None:
        with pytest.raises(HloError, match="computation e has no instruction %y to be its root"):
            computation(X, root="y")

    def test_two_computations_of_one_name_and_a_lost_entry(self) -> None:
        e = computation(X)
        with pytest.raises(HloError, match="two computations are called e"):
            Program(name="m", computations=(e, e), entry="e")
        with pytest.raises(HloError, match="module m has no computation main to be its entry"):
            Program(name="m", computations=(e,), entry="main")

    def test_nothing_can_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            X.name = "y"  # pyright: ignore[reportAttributeAccessIssue]


class TestInstruction:
    def test_attributes_are_set_in_place_or_last_and_removed(self) -> None:
        y = unary("y", "x", first="1", second="2")
        assert y.with_attribute("first", "9").attributes == (("first", "9"), ("second", "2"))
        assert y.with_attribute("third", "3").attributes[-1] == ("third", "3")
        assert y.with_attribute("first", None).attributes == (("second", "2"),)
        assert y.with_attribute("absent", None) == y
        assert (y.attribute("second"), y.attribute("third")) == ("2", None)

    def test_called_computations_in_printed_order(self) -> None:
        loop = unary("y", "x", condition="%c", body="b")
        assert loop.called == ("c", "b")
        assert unary("y", "x", branch_computations="{%b1, b2 , %b3}").called == ("b1", "b2", "b3")
        assert unary("y", "x", metadata='{op_name="calls=f"}').called == ()

    def test_control_predecessors(self) -> None:
        assert replace(X, attributes=(("control-predecessors", "{%a, b}"),)).control_predecessors == (
            "a",
            "b",
        )
        assert X.control_predecessors == ()

    @pytest.mark.parametrize(("literal", "elided"), [("{...}", True), ("{ 1, 2 }", False), (None, False)])
    def test_elided_constants(self, literal: str | None, elided: bool) -> None:
        assert Instruction(name="c", opcode="constant", shape=SCALAR, literal=literal).is_elided is elided


class TestComputation:
    def test_lookup(self) -> None:
        e = computation(X, unary("y", "x"))
        assert (e["x"], "y" in e, "z" in e, len(e)) == (X, True, False, 2)
        assert [i.name for i in e] == ["x", "y"]
        assert e.root_instruction is e["y"]
        with pytest.raises(HloError, match="computation e has no instruction %z"):
            e["z"]

    def test_parameters_come_by_number(self) -> None:
        second = replace(X, name="w", parameter_number=1)
        assert [p.name for p in computation(second, X).parameters] == ["x", "w"]

    def test_users_once_each_and_in_order(self) -> None:
        square = Instruction(name="s", opcode="multiply", shape=SCALAR, operands=("x", "x"))
        e = computation(X, square, unary("y", "x"))
        assert e.users() == {"x": ("s", "y"), "s": (), "y": ()}

    def test_equality_is_of_content(self) -> None:
        assert computation(X) == computation(X)
        assert hash(computation(X)) == hash(computation(X))
        assert computation(X, unary("y", "x"), root="x") != computation(X, unary("y", "x"))


class TestProgram:
    def test_lookup(self) -> None:
        assert CONTROL_FLOW.entry_computation is CONTROL_FLOW["e"]
        assert "body" in CONTROL_FLOW
        assert "x" not in CONTROL_FLOW
        assert CONTROL_FLOW.instruction_count == sum(map(len, CONTROL_FLOW.computations)) == 32
        with pytest.raises(HloError, match="module m has no computation main"):
            CONTROL_FLOW["main"]

    def test_header_attributes_are_set_in_place_or_last_and_removed(self) -> None:
        program = Program(
            name="m", computations=(computation(X),), entry="e", attributes=(("a", "1"), ("b", "2"))
        )
        assert program.with_attribute("a", "9").attributes == (("a", "9"), ("b", "2"))
        assert program.with_attribute("c", "3").attributes == (("a", "1"), ("b", "2"), ("c", "3"))
        assert program.with_attribute("a", None).attributes == (("b", "2"),)
        assert program.with_attribute("c", None) == program

    def test_where_each_computation_runs(self) -> None:
        assert CONTROL_FLOW.fused_computations() == {"fused", "add"}
        assert CONTROL_FLOW.scalar_computations() == {"add", "less"}
        scheduled = [c.name for c in CONTROL_FLOW.scheduled_computations()]
        assert scheduled == ["body", "condition", "branch.1", "branch.2", "callee", "e"]

    def test_a_missing_callee_is_for_the_verifier(self) -> None:
        lost = computation(X, unary("y", "x", calls="gone"))
        program = Program(name="m", computations=(lost,), entry="e")
        assert program.scheduled_computations() == (lost,)

    @pytest.mark.parametrize(("value", "scheduled"), [("true", True), ("false", False), (None, False)])
    def test_whether_the_order_is_a_schedule(self, value: str | None, scheduled: bool) -> None:
        assert CONTROL_FLOW.with_attribute("is_scheduled", value).is_scheduled is scheduled

    def test_aliases(self) -> None:
        assert CONTROL_FLOW.aliases == (Alias(output_index=(), parameter=0),)
        text = "{ {1}: (2, {0, 1}, must-alias), {0,3}:(4,{}) }"
        assert CONTROL_FLOW.with_attribute("input_output_alias", text).aliases == (
            Alias(output_index=(1,), parameter=2, parameter_index=(0, 1), kind="must-alias"),
            Alias(output_index=(0, 3), parameter=4),
        )
        assert CONTROL_FLOW.with_attribute("input_output_alias", None).aliases == ()
