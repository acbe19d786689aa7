"""The table of legality: every row has evidence, and what no row names is illegal."""

import pytest

from kernelcast.fusion.rules import XLA_CPU, Emission, Rule, Sharing
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import Shape, array_shape

ARRAY = array_shape("f32", (4,), (0,))


def rule_of(opcode: str, operands: list[Shape], **attributes: str) -> Rule | None:
    return XLA_CPU.rule(
        Instruction(name="x", opcode=opcode, shape=ARRAY, attributes=tuple(attributes.items())), operands
    )


@pytest.mark.parametrize("row", XLA_CPU.table, ids=lambda row: row.name)
def test_every_row_has_evidence(row: Rule):
    assert row.opcodes
    assert len(row.evidence) > 20


def test_no_opcode_stands_in_two_rows():
    opcodes = [opcode for row in XLA_CPU.table for opcode in row.opcodes]
    assert len(opcodes) == len(set(opcodes))


@pytest.mark.parametrize(
    "opcode",
    [
        "scatter",
        "sort",
        "rng",
        "rng-bit-generator",
        "fft",
        "custom-call",
        "select-and-scatter",
        "while",
        "unheard-of",
    ],
)
def test_what_no_row_names_is_illegal(opcode: str):
    assert rule_of(opcode, [ARRAY]) is None


def test_an_update_slice_is_never_a_producer():
    rule = rule_of("dynamic-update-slice", [ARRAY, ARRAY])
    assert rule is not None
    assert (rule.root, rule.producer) == (True, False)


def test_a_clamp_with_scalar_bounds_is_illegal():
    scalar = array_shape("f32", (), ())
    assert rule_of("clamp", [ARRAY, ARRAY, ARRAY]) is not None
    assert rule_of("clamp", [scalar, ARRAY, scalar]) is None


def test_only_the_simplified_gather_is_legal():
    assert rule_of("gather", [ARRAY, ARRAY], collapsed_slice_dims="{}") is not None
    assert rule_of("gather", [ARRAY, ARRAY], collapsed_slice_dims="{0}") is None


def test_contractions_are_shared_and_bare():
    rule = rule_of("dot", [ARRAY, ARRAY])
    assert rule is not None
    assert (rule.sharing, rule.alone) == (Sharing.SHARE, Emission.BARE)


def test_the_identity_changes_with_the_meaning():
    assert XLA_CPU.identity.startswith("xla-cpu/1:")


def _reduction(extent: int) -> tuple[Instruction, list[Shape]]:
    result = Instruction(name="r", opcode="reduce", shape=array_shape("f32", ()), operands=("x", "z"))
    return result, [array_shape("f32", (extent,)), array_shape("f32", ())]


def test_long_sums_stay_as_the_compiler_has_them() -> None:
    assert XLA_CPU.rule(*_reduction(XLA_CPU.max_serial_terms)) is not None
    assert XLA_CPU.rule(*_reduction(XLA_CPU.max_serial_terms + 1)) is None


def test_a_contraction_to_another_element_type_is_no_loop() -> None:
    dot = Instruction(name="d", opcode="dot", shape=array_shape("s32", (4, 4)), operands=("a", "b"))
    assert XLA_CPU.rule(dot, [array_shape("s8", (4, 4))] * 2) is None
    assert XLA_CPU.rule(dot, [array_shape("s32", (4, 4))] * 2) is not None
