"""Tiles: bounds by level."""

import pytest

from kernelcast.core.tile import MAX_BOUNDS, MAX_LEVELS, Tile, TileSet, parse_tile


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


def test_tile_sets_refuse_what_does_not_fit() -> None:
    one, two = (Tile(levels=(("output", (n,)),)) for n in (1, 2))
    with pytest.raises(ValueError, match="2 tiles and 1 numbers"):
        TileSet(tiles=(one, two), analytical_cycles=(3,), default=None, is_complete=True)
    with pytest.raises(ValueError, match="listed twice"):
        TileSet(tiles=(one, one), analytical_cycles=(3, 4), default=None, is_complete=True)
    with pytest.raises(ValueError, match=r"default output\[2\] is not among the 1 tiles"):
        TileSet(tiles=(one,), analytical_cycles=(3,), default=two, is_complete=True)
    with pytest.raises(ValueError, match=r"output\[2\] is none of the 1 valid tiles"):
        TileSet(tiles=(one,), analytical_cycles=(3,), default=None, is_complete=True).cycles_of(two)


def test_analytical_best_is_the_first_of_the_lowest_known() -> None:
    tiles = tuple(Tile(levels=(("output", (n,)),)) for n in (1, 2, 3, 4))
    listed = TileSet(tiles=tiles, analytical_cycles=(None, 9, 5, 5), default=tiles[1], is_complete=True)
    assert listed.analytical_best == tiles[2]
    assert len(listed) == 4
    unknown = TileSet(tiles=tiles[:1], analytical_cycles=(None,), default=None, is_complete=False)
    assert unknown.analytical_best is None
