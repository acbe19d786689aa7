from kernelcast.fusion.nested import nested
from kernelcast.hlo.program import Computation
from kernelcast.hlo.text import parse


def body(text: str) -> Computation:
    return parse(f"HloModule m ENTRY e {{ {text} }}").entry_computation


FLAT = body("""
  a = f32[8,8] parameter(0)
  b = f32[8,8] parameter(1)
  n = f32[8,8] negate(a)
  t = f32[8,8] tanh(n)
  d = f32[8,8] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[8,8] add(d, n)
""")


def test_without_a_contraction_there_is_nothing_to_nest() -> None:
    assert nested(body("a = f32[8] parameter(0)  ROOT r = f32[8] negate(a)"), "p.") is None


def test_what_both_sides_need_stands_in_both() -> None:
    made = nested(FLAT, "p.")
    assert made is not None
    inner, outer = made
    assert [i.opcode for i in inner] == ["parameter", "negate", "tanh"]
    assert [i.opcode for i in outer] == ["parameter", "parameter", "negate", "fusion", "dot", "add"]
    fusion = next(i for i in outer if i.opcode == "fusion")
    assert fusion.operands == ("a",)
    assert (fusion.called, fusion.attribute("kind")) == (("p.input0.of.d",), "kLoop")
    assert inner.name == "p.input0.of.d"


def test_inputs_that_are_parameters_stay_and_dead_operations_go() -> None:
    made = nested(
        body("""
          a = f32[8,8] parameter(0)
          t = f32[8,8] tanh(a)
          ROOT d = f32[8,8] dot(t, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """),
        "p.",
    )
    assert made is not None
    _, outer = made
    assert [i.opcode for i in outer] == ["parameter", "fusion", "dot"]
    assert outer["d"].operands == ("input0.of.d", "a")


def test_one_value_on_both_sides_is_nested_once() -> None:
    made = nested(
        body("""
          a = f32[8,8] parameter(0)
          t = f32[8,8] tanh(a)
          ROOT d = f32[8,8] dot(t, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """),
        "p.",
    )
    assert made is not None
    assert len(made) == 2
    assert made[1]["d"].operands == ("input0.of.d", "input0.of.d")
