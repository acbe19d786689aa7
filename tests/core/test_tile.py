"""Tiles: bounds by level."""

import pytest

from kernelcast.core.tile import MAX_BOUNDS, MAX_LEVELS, Tile, parse_tile


def test_a_tile_is_written_level_by_level() -> None:
    tile = Tile(levels=(("kernel", (128, 8)), ("output", ())))
    assert str(tile) == "kernel[128,8] output[]"
    assert tile.unit == "element"
    assert len({tile, Tile(levels=tile.levels), Tile(levels=tile.levels, unit="hardware-tile")}) == 2
    assert str(Tile(levels=())) == ""


def test_the_largest_tile_has_three_levels_of_six_bounds() -> None:
    level = ("kernel", (1,) * MAX_BOUNDS)
    Tile(levels=(level,) * MAX_LEVELS)
    with pytest.raises(ValueError, match="at most 3 levels, got 4"):
        Tile(levels=(level,) * (MAX_LEVELS + 1))


@pytest.mark.parametrize("bounds", [(1,) * (MAX_BOUNDS + 1), (8, 0), (-1,)])
def test_bounds_that_are_no_window_are_named_with_their_level(bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"level output: at most 6 bounds, each >= 1; got \("):
        Tile(levels=(("kernel", (8,)), ("output", bounds)))


@pytest.mark.parametrize("unit", ["element", "hardware-tile"])
@pytest.mark.parametrize("levels", [(), (("output", ()),), (("kernel", (128, 8)), ("output", (4,)))])
def test_the_text_of_a_tile_holds_all_of_it(
    levels: tuple[tuple[str, tuple[int, ...]], ...], unit: str
) -> None:
    tile = Tile(levels=levels, unit=unit)
    assert parse_tile(tile.text) == tile


@pytest.mark.parametrize(
    "text", ["", "output[4,2]", "output[4 in element", "output 4 in element", "a[1]b[2] in x"]
)
def test_texts_that_are_no_tile_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a tile is written like"):
        parse_tile(text)
