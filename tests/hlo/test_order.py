"""Operands before users, with as little change as possible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.errors import HloError
from kernelcast.hlo.order import dependency_order
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import array_shape


def node(name: str, *operands: str, after: str = "") -> Instruction:
    attributes = (("control-predecessors", f"{{%{after}}}"),) if after else ()
    return Instruction(
        name=name, opcode="add", shape=array_shape("f32", ()), operands=operands, attributes=attributes
    )


def names(*nodes: Instruction) -> list[str]:
    return [found.name for found in dependency_order(nodes)]


def test_what_is_in_order_stays() -> None:
    assert names(node("a"), node("b"), node("c", "a")) == ["a", "b", "c"]
    assert names() == []


def test_an_operand_moves_right_before_its_first_user() -> None:
    assert names(node("x"), node("c", "b", "a"), node("y"), node("a"), node("b", "a")) == [
        "x",
        "a",
        "b",
        "c",
        "y",
    ]


def test_control_predecessors_count() -> None:
    assert names(node("a", after="b"), node("b")) == ["b", "a"]


def test_cycles_and_strangers_are_refused() -> None:
    with pytest.raises(HloError, match="%b: operand %a depends on its own user"):
        names(node("a", "b"), node("b", "a"))
    with pytest.raises(HloError, match="%a: operand %a depends on its own user"):
        names(node("a", "a"))
    with pytest.raises(HloError, match="%a: operand %z is not defined"):
        names(node("a", "z"))


@given(st.data())
def test_any_shuffle_of_a_graph_comes_out_in_order(data: st.DataObject) -> None:
    graph = [
        node(str(i), *map(str, data.draw(st.lists(st.integers(0, i - 1), max_size=3)))) if i else node("0")
        for i in range(data.draw(st.integers(1, 12)))
    ]
    ordered = dependency_order(data.draw(st.permutations(graph)))
    assert sorted(i.name for i in ordered) == sorted(i.name for i in graph)
    for place, found in enumerate(ordered):
        assert set(found.operands) <= {before.name for before in ordered[:place]}
