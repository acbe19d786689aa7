"""Shapes and layouts: sizes by hand, places in tuples, and layouts that say nonsense."""

import math

import pytest
from hypothesis import given
from tests.hlo.programs import array_shapes

from kernelcast.errors import HloError
from kernelcast.hlo.shape import ELEMENT_BITS, Layout, Shape, array_shape, tuple_shape
from kernelcast.hlo.shape_text import parse_shape

NESTED = parse_shape("(f32[2,3], (s8[5], token[]), b(f64[4]))")


@pytest.mark.parametrize(
    ("text", "elements", "size"),
    [
        ("f32[]", 1, 4),
        ("f32[2,0,3]", 0, 0),
        ("pred[7]", 7, 7),
        ("s4[7]", 7, 7),  # one byte each, as on the host
        ("bf16[2,3]", 6, 12),
        ("c128[2]", 2, 32),
        ("f8e4m3fn[3]", 3, 3),
        ("f32[<=8,2]", 16, 64),
        ("f32[?,2]", 2, 8),
        ("token[]", 0, 0),
        ("opaque[]", 0, 0),
        ("()", 0, 0),
        ("b(f32[4])", 4, 16),
        ("(f32[2,3], (s8[5], token[]), b(f64[4]))", 15, 61),
    ],
)
def test_sizes(text: str, elements: int, size: int) -> None:
    shape = parse_shape(text)
    assert (shape.element_count, shape.byte_size) == (elements, size)


@pytest.mark.parametrize("element_type", sorted(set(ELEMENT_BITS) - {"token", "opaque"}))
def test_every_element_takes_whole_bytes(element_type: str) -> None:
    assert array_shape(element_type, (3,)).byte_size == 3 * math.ceil(ELEMENT_BITS[element_type] / 8)


def test_kinds_of_shape() -> None:
    assert [shape.is_array for shape in NESTED.leaves()] == [True, True, False, False]
    assert NESTED.is_tuple
    assert (NESTED.rank, parse_shape("f32[2,3]").rank) == (0, 2)


def test_leaves_have_places() -> None:
    leaves = dict(NESTED.indexed_leaves())
    assert list(leaves) == [(0,), (1, 0), (1, 1), (2,)]
    assert all(NESTED.at(place) == leaf for place, leaf in leaves.items())
    assert NESTED.at((1,)) == tuple_shape(parse_shape("s8[5]"), parse_shape("token[]"))
    array = array_shape("f32", (2,))
    assert list(array.indexed_leaves()) == [((), array)]
    assert list(tuple_shape().leaves()) == []
    with pytest.raises(IndexError):
        NESTED.at((3,))


def test_layouts_go_everywhere() -> None:
    laid_out = parse_shape("(f32[2,3]{0,1}, b(s8[5]{0:S(1)}))")
    assert str(laid_out.without_layout()) == "(f32[2,3], b(s8[5]))"
    assert laid_out.without_layout().without_layout() == laid_out.without_layout()


def test_without_a_layout_the_last_dimension_is_the_fastest() -> None:
    assert array_shape("f32", (2, 3, 4)).minor_to_major == (2, 1, 0)
    assert array_shape("f32", (2, 3, 4), (0, 2, 1)).minor_to_major == (0, 2, 1)
    assert array_shape("f32", ()).minor_to_major == ()


@pytest.mark.parametrize(
    ("suffix", "tiles", "space"),
    [
        ("", (), 0),
        ("T(8,128)", ((8, 128),), 0),
        ("T(8,128)(2,1)S(3)", ((8, 128), (2, 1)), 3),
        ("T(2, *)E(4)S(1)", ((2, -1),), 1),
        ("T()", ((),), 0),
        ("L(16)D(D,C)S(12)", (), 12),
        ("SC(1:2,4)", (), 0),
    ],
)
def test_tiles_and_memory_space(suffix: str, tiles: tuple[tuple[int, ...], ...], space: int) -> None:
    layout = Layout(minor_to_major=(1, 0), suffix=suffix)
    assert (layout.tiles, layout.memory_space) == (tiles, space)
    read = parse_shape(f"f32[8,8]{layout}").layout
    assert read == layout


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        ("T(8", r"expected tiles such as T\(8,128\)\(2,1\) in a layout, got 'T\(8' in 'f32\[8\]\{0:T\(8\}'"),
        ("T(a)", "expected tiles"),
        ("T(8,,8)", "expected tiles"),
        ("S(x)", r"expected a memory space such as S\(1\) in a layout, got 'S\(x\)'"),
        ("T(8)S()", "expected a memory space"),
        ("S(1", "expected a memory space"),
    ],
)
def test_layouts_that_mean_nothing_are_refused(suffix: str, message: str) -> None:
    with pytest.raises(HloError, match=message):
        parse_shape(f"f32[8]{{0:{suffix}}}")


@given(array_shapes())
def test_sizes_do_not_depend_on_the_layout(shape: Shape) -> None:
    bare = shape.without_layout()
    assert (bare.element_count, bare.byte_size) == (shape.element_count, shape.byte_size)
    assert sorted(shape.minor_to_major) == list(range(shape.rank))
    assert shape.byte_size >= shape.element_count >= 0
