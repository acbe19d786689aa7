"""Typed attributes from verbatim text."""

from collections.abc import Callable

import pytest

from kernelcast.errors import HloError
from kernelcast.hlo import attributes
from kernelcast.hlo.attributes import Padding, SliceRange, WindowDimension
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import array_shape


def instruction(opcode: str = "op", **values: str) -> Instruction:
    return Instruction(
        name="i", opcode=opcode, shape=array_shape("f32", ()), attributes=tuple(values.items())
    )


def test_window() -> None:
    text = "{size=3x3 stride=2x1 pad=1_1x-1_0 lhs_dilate=1x2 rhs_dilate=4x1 rhs_reversal=0x1}"
    window = attributes.window(instruction(window=text))
    assert window.dimensions == (
        WindowDimension(size=3, stride=2, padding_low=1, padding_high=1, window_dilation=4),
        WindowDimension(size=3, padding_low=-1, padding_high=0, base_dilation=2, is_reversed=True),
    )
    assert window.element_count == 9


@pytest.mark.parametrize("values", [{}, {"window": "{}"}])
def test_an_absent_window_has_no_dimensions(values: dict[str, str]) -> None:
    window = attributes.window(instruction(**values))
    assert (window.dimensions, window.element_count) == ((), 1)


def test_dot_numbers() -> None:
    numbers = attributes.dot_numbers(
        instruction(
            lhs_contracting_dims="{2}", rhs_contracting_dims="{1}", lhs_batch_dims="{0}", rhs_batch_dims="{0}"
        )
    )
    assert (numbers.lhs_contracting, numbers.rhs_contracting) == ((2,), (1,))
    assert (numbers.lhs_batch, numbers.rhs_batch) == ((0,), (0,))
    assert attributes.dot_numbers(instruction()).lhs_contracting == ()


def test_convolution_numbers() -> None:
    numbers = attributes.convolution_numbers(instruction(dim_labels="b10f_0o1i->f01b"))
    assert (numbers.input_batch, numbers.input_feature, numbers.input_spatial) == (0, 3, (2, 1))
    assert (numbers.kernel_input_feature, numbers.kernel_output_feature) == (3, 1)
    assert numbers.kernel_spatial == (0, 2)
    assert (numbers.output_batch, numbers.output_feature, numbers.output_spatial) == (3, 0, (1, 2))
    assert attributes.feature_group_count(instruction()) == 1
    assert attributes.batch_group_count(instruction(batch_group_count="4")) == 4


def test_gather_and_scatter_numbers() -> None:
    gather = attributes.gather_numbers(
        instruction(
            offset_dims="{1}", collapsed_slice_dims="{0}", start_index_map="{0}", index_vector_dim="1",
            slice_sizes="{1,8}", indices_are_sorted="true",
        )
    )  # fmt: skip
    assert (gather.offset_dims, gather.slice_sizes, gather.index_vector_dim) == ((1,), (1, 8), 1)
    assert gather.indices_are_sorted
    assert gather.operand_batching_dims == ()
    scatter = attributes.scatter_numbers(
        instruction(
            update_window_dims="{}", inserted_window_dims="{0}", scatter_dims_to_operand_dims="{0}",
            index_vector_dim="1", unique_indices="true",
        )
    )  # fmt: skip
    assert (scatter.inserted_window_dims, scatter.unique_indices, scatter.indices_are_sorted) == (
        (0,),
        True,
        False,
    )


def test_slices_and_padding() -> None:
    ranges = attributes.slice_ranges(instruction(slice="{[0:8], [2:10:3]}"))
    assert ranges == (SliceRange(start=0, limit=8), SliceRange(start=2, limit=10, stride=3))
    assert attributes.slice_ranges(instruction(slice="{}")) == ()
    padding = attributes.padding_config(instruction(padding="0_5x-1_2_3"))
    assert padding == (Padding(low=0, high=5), Padding(low=-1, high=2, interior=3))
    assert attributes.padding_config(instruction()) == ()


def test_names_and_numbers() -> None:
    assert attributes.direction(instruction(direction="GE")) == "GE"
    assert attributes.tuple_index(instruction(index="3")) == 3
    assert attributes.integers(instruction(dimensions="{ 1, -2 }"), "dimensions") == (1, -2)
    assert (
        attributes.custom_call_target(instruction(custom_call_target='"__onednn$matmul"'))
        == "__onednn$matmul"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [('"a"', "a"), ("'a'", "a"), ("a", "a"), ('""', ""), (r'"\"\n\x41\101\\"', '"\nAA\\'), ('"', '"')],
)
def test_unquoted(value: str, text: str) -> None:
    assert attributes.unquoted(value) == text


@pytest.mark.parametrize(
    ("value", "config", "trips"),
    [
        ('{"known_trip_count":{"n":"5"}}', {"known_trip_count": {"n": "5"}}, 5),
        (r'"{\"known_trip_count\":{\"n\":7}}"', {"known_trip_count": {"n": 7}}, 7),
        ('{"known_trip_count":{"n":"-1"}}', {"known_trip_count": {"n": "-1"}}, None),
        ('{"known_trip_count":3}', {"known_trip_count": 3}, None),
        ("{}", {}, None),
        ('"opaque text"', None, None),
        ("[1]", None, None),
        ("{truncated", None, None),
    ],
)
def test_backend_config(value: str, config: object, trips: int | None) -> None:
    loop = instruction(backend_config=value)
    assert attributes.parse_backend_config(loop) == config
    assert attributes.known_trip_count(loop) == trips
    assert attributes.parse_backend_config(instruction()) is None


@pytest.mark.parametrize(
    ("read", "values", "message"),
    [
        (attributes.direction, {}, "expected compare to have attribute direction"),
        (attributes.convolution_numbers, {}, "expected compare to have attribute dim_labels"),
        (attributes.convolution_numbers, {"dim_labels": "b0f"}, "expected dim_labels such as b01f_01io"),
        (attributes.convolution_numbers, {"dim_labels": "b0f_0i->b0f"}, "expected one label o in"),
        (attributes.slice_ranges, {"slice": "{[0:a]}"}, "expected ranges such as {[0:8], [2:6:2]}"),
        (attributes.padding_config, {"padding": "1x2"}, "expected padding such as 0_1x2_0_1"),
        (attributes.window, {"window": "{size=3x3 stride=1}"}, "expected a window with 2 numbers"),
        (attributes.window, {"window": "{sizes=3}"}, "expected a window of lhs_dilate, pad, rhs_dilate"),
        (attributes.tuple_index, {"index": "one"}, "expected index to be an integer, got 'one'"),
        (attributes.dot_numbers, {"lhs_batch_dims": "0"}, "expected lhs_batch_dims to be integers in braces"),
        (attributes.gather_numbers, {"index_vector_dim": "0"}, "to have attribute slice_sizes"),
    ],
)  # fmt: skip
def test_errors_name_the_instruction(
    read: Callable[[Instruction], object], values: dict[str, str], message: str
) -> None:
    with pytest.raises(HloError) as caught:
        read(instruction("compare", **values))
    assert caught.value.instruction == "i"
    assert message in caught.value.message


def test_a_flag_is_true_or_false() -> None:
    assert not attributes.flag(instruction(is_stable="false"), "is_stable")
    with pytest.raises(HloError, match="expected is_stable to be true or false, got 'yes'"):
        attributes.flag(instruction(is_stable="yes"), "is_stable")
