"""Values of constants from their text."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.errors import HloError
from kernelcast.hlo.literal import Values, constant_values, numpy_dtype, require_values
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import ELEMENT_BITS
from kernelcast.hlo.shape_text import parse_shape
from kernelcast.hlo.text import parse


def constant(shape: str, literal: str) -> Instruction:
    return Instruction(name="c", opcode="constant", shape=parse_shape(shape), literal=literal)


def values(shape: str, literal: str) -> Values:
    return constant_values(constant(shape, literal))


def failure(shape: str, literal: str) -> str:
    with pytest.raises(HloError) as caught:
        values(shape, literal)
    assert caught.value.instruction == "c"
    return caught.value.message


@pytest.mark.parametrize(
    ("shape", "literal", "expected"),
    [
        ("s32[]", "-3", np.int32(-3)),
        ("f32[2,2]", "{ { 1, 2 }, { 3, -.5e+3 } }", np.array([[1, 2], [3, -500]], np.float32)),
        ("f32[2,2]{0,1}", "{ { 1, 2 },\n { 3, 4 } }", np.array([[1, 2], [3, 4]], np.float32)),
        ("f32[2]", "{1 2,}", np.array([1, 2], np.float32)),
        ("f32[2,3]", "7", np.full((2, 3), 7, np.float32)),
        ("f32[0]", "{}", np.zeros(0, np.float32)),
        ("f32[2,0]", "{ {}, {} }", np.zeros((2, 0), np.float32)),
        ("pred[4]", "{true, false, 1, 0}", np.array([True, False, True, False])),
        ("u64[]", "18446744073709551615", np.uint64(2**64 - 1)),
        ("s64[2]", "{-9223372036854775808, 9223372036854775807}", np.array([-(2**63), 2**63 - 1])),
        ("s4[2]", "{7, -8}", np.array([7, -8], ml_dtypes.int4)),
        ("f64[1]", "{4.9406564584124654e-324}", np.array([5e-324])),
        ("f32[1]", "{3.4028235e+38}", np.array([np.finfo(np.float32).max])),
        ("bf16[3]", "{1.5, inf, -inf}", np.array([1.5, np.inf, -np.inf], ml_dtypes.bfloat16)),
        ("f8e4m3fn[2]", "{448, -0.5}", np.array([448, -0.5], ml_dtypes.float8_e4m3fn)),
        ("f4e2m1fn[]", "6", np.array(6, ml_dtypes.float4_e2m1fn)),
        ("c64[2]", "{(1, 2), (-inf, 0.5)}", np.array([1 + 2j, complex(-np.inf, 0.5)], np.complex64)),
        ("c128[]", "(1, -0)", np.array(1 + 0j)),
    ],
)
def test_by_element_type(shape: str, literal: str, expected: np.ndarray) -> None:
    found = values(shape, literal)
    assert isinstance(found, np.ndarray)
    assert found.dtype == numpy_dtype(parse_shape(shape).element_type)
    np.testing.assert_array_equal(found, expected)
    assert found.shape == expected.shape


def test_signs_and_payloads_of_nan_are_kept() -> None:
    found = values("f32[4]", "{nan, -nan, nan(0x7f), -nan(0x400001)}")
    assert isinstance(found, np.ndarray)
    assert [hex(bits) for bits in found.view(np.uint32)] == [
        "0x7fc00000", "0xffc00000", "0x7f80007f", "0xffc00001",
    ]  # fmt: skip


def test_tuples_nest() -> None:
    found = values("(f32[], (s32[2], c64[]))", "(1.5, ({2, 3}, (4, 5)))")
    assert isinstance(found, tuple)
    first, second = found
    assert first == np.float32(1.5)
    assert isinstance(second, tuple)
    np.testing.assert_array_equal(second[0], [2, 3])
    assert second[1] == np.complex64(4 + 5j)


@pytest.mark.parametrize(
    ("shape", "literal", "message"),
    [
        ("f32[3]", "{1, 2}", "expected 3 values for f32[3], got 2"),
        ("f32[2,2]", "{1, 2, 3, 4}", "expected 3 pairs of braces for f32[2,2], got 1 opening and 1 closing"),
        ("s8[]", "300", "expected int8 values in [-128, 127], got 300"),
        ("u8[]", "-1", "expected uint8 values in [0, 255], got -1"),
        ("s64[]", "9223372036854775808", "got 9223372036854775808"),
        ("f32[]", "1e40", "expected float32 values in [-3.40282e+38, 3.40282e+38], got 1e+40"),
        ("s32[2]", "{1, 1.5}", "expected int64 numbers, got '1.5'"),
        ("f32[]", "one", "expected float64 numbers, got 'one'"),
        ("c64[]", "1", "expected complex numbers such as (1, -2), got '1'"),
        ("(f32[], f32[])", "(1)", "expected 2 values in the tuple, got 1"),
        ("(f32[])", "1", "expected a tuple of values in parentheses, got '1'"),
        ("token[]", "1", "element type token has no values"),
    ],
)
def test_what_does_not_fit_is_refused(shape: str, literal: str, message: str) -> None:
    assert message in failure(shape, literal)


def test_only_constants_have_values() -> None:
    with pytest.raises(HloError, match="%x: expected a constant, got parameter"):
        constant_values(Instruction(name="x", opcode="parameter", shape=parse_shape("f32[]")))


class TestElided:
    """Case 6: constants left out are read at once, and refused by name where their values are needed."""

    text = "HloModule m\nENTRY e {\n  big = f32[1,8,6,2048,2048] constant({...})\n  ROOT n = negate(big)\n}"

    def test_reading_marks_them(self) -> None:
        big = parse(self.text).entry_computation["big"]
        assert big.is_elided
        assert big.shape.byte_size == 4 * 8 * 6 * 2048 * 2048

    def test_their_values_are_refused_by_name(self) -> None:
        program = parse(self.text)
        with pytest.raises(
            HloError, match=r"%big: the values of this f32\[1,8,6,2048,2048\] constant were left"
        ):
            constant_values(program.entry_computation["big"])
        with pytest.raises(HloError, match=r"%big: .* and running needs them; print the program with large"):
            require_values(program, "running needs them")

    def test_a_program_with_values_passes(self) -> None:
        require_values(parse("e { ROOT c = f32[] constant(1) }"), "running needs them")


def test_every_element_type_has_a_numpy_type() -> None:
    for name, bits in ELEMENT_BITS.items():
        if name not in ("token", "opaque"):
            assert numpy_dtype(name).itemsize == max(1, bits // 8)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_floats_survive_their_shortest_text(numbers: list[float]) -> None:
    array = np.array(numbers, np.float32)
    text = "{" + ", ".join(str(number) for number in array) + "}"
    np.testing.assert_array_equal(values(f"f32[{len(numbers)}]", text), array)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_integers_survive(numbers: list[int]) -> None:
    text = "{" + ", ".join(map(str, numbers)) + "}"
    np.testing.assert_array_equal(values(f"s64[{len(numbers)}]", text), numbers)
