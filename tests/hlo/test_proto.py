"""Protos compared by content."""

import pytest

from kernelcast.errors import HloError
from kernelcast.hlo.proto import canonical_proto
from kernelcast.hlo.xla import proto_to_text, text_to_proto

TEXT = """HloModule m, frontend_attributes={a="1",b="2",c="3",d="4"}
ENTRY e {
  ROOT p = f32[200]{0} parameter(0), frontend_attributes={a="1",b="2",c="3",d="4",e="5"}
}
"""


def test_two_parses_of_one_text_are_equal() -> None:
    assert len({canonical_proto(text_to_proto(TEXT)) for _ in range(10)}) == 1


@pytest.mark.parametrize(
    "change", [("f32[200]", "f32[300]"), ('a="1"', 'a="9"'), ("HloModule m", "HloModule n")]
)
def test_other_content_differs(change: tuple[str, str]) -> None:
    assert canonical_proto(text_to_proto(TEXT)) != canonical_proto(text_to_proto(TEXT.replace(*change)))


def test_what_is_left_is_a_proto() -> None:
    assert "f32[200]{0} parameter(0)" in proto_to_text(canonical_proto(text_to_proto(TEXT)))


@pytest.mark.parametrize("proto", [b"\xff", b"\x80" * 1000, b"\x0a\x05abc", b"\x0b", b"\x1a\x02\xff\xff"])
def test_other_bytes_are_refused(proto: bytes) -> None:
    with pytest.raises(HloError, match="expected a serialised HloModuleProto"):
        canonical_proto(proto)
    with pytest.raises(HloError, match="expected a serialised HloModuleProto"):
        proto_to_text(proto)


@pytest.mark.parametrize(
    ("shape", "literal", "printed"),
    [
        ("f32[]", "-0", "-0"),
        ("bf16[]", "-0", "-0"),
        ("f64[3]", "{-0, 0, -1}", "{-0, 0, -1}"),
        ("f32[2,2]", "{ { -0, 0 }, { 1, -0 } }", "{ { -0, 0 }, { 1, -0 } }"),
        ("c64[]", "(-0, 0)", "(-0, 0)"),
        ("s32[2]", "{0, -10}", "{0, -10}"),
        ("s32[2]", "{-0, 1}", "{0, 1}"),
    ],
)
def test_negative_zeros_survive_the_compilers_parser(shape: str, literal: str, printed: str) -> None:
    """XLA prints them as -0 and reads that as 0: a plan would lose the sign of a constant."""
    text = f"HloModule m\nENTRY e {{ ROOT c = {shape} constant({literal}) }}"
    found = " ".join(proto_to_text(text_to_proto(text)).split())
    assert f"constant({printed})" in found


def test_what_looks_like_a_negative_zero_elsewhere_stays() -> None:
    text = """HloModule m
ENTRY e {
  p = f32[2]{0} parameter(0)
  c = f32[2]{0} constant({-0, 1}), metadata={op_name="f( -0 )"}
  a = f32[2]{0} add(p, c)
  ROOT k = f32[2]{0} custom-call(a), custom_call_target="g(-0)", backend_config={"x":[1,-0,2]}
}"""
    found = proto_to_text(text_to_proto(text))
    assert "constant({-0, 1})" in found
    for kept in ('custom_call_target="g(-0)"', 'op_name="f( -0 )"', "[1,-0,2]"):
        assert kept in found
