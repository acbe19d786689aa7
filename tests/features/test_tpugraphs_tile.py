"""Published tile features, from tiles and back."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.core.tile import Tile
from kernelcast.data.tpugraphs.op_tuning import read_op_tuning
from kernelcast.data.tpugraphs.tile_file import read_tile_file
from kernelcast.data.tpugraphs.tuning import TileSizes
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs import program_graph
from kernelcast.features.tpugraphs_schema import TILE_LEVELS
from kernelcast.features.tpugraphs_tile import UNIT, tile_features, tile_of

bounds = st.lists(st.integers(1, 50), min_size=1, max_size=6).map(tuple)


def test_the_default_of_the_published_convolution_by_hand() -> None:
    """Output bounds [12,4,4,3] and kernel bounds [3,1,24,3], both listed major to minor."""
    tile = Tile(levels=(("kernel", (3, 24, 1, 3)), ("output", (3, 4, 4, 12))), unit=UNIT)
    expected = [3, 1, 24, 3, 0, 0, 31, 216, 12, 4, 4, 3, 0, 0, 23, 576, *([0] * 8)]
    assert tile_features(tile).tolist() == expected
    assert tile_of(np.array(expected, dtype=np.float32)) == tile


def test_a_tile_without_windows_is_all_zeros() -> None:
    empty = Tile(levels=(), unit=UNIT)
    assert not tile_features(empty).any()
    assert not tile_features(Tile(levels=(("output", ()),), unit=UNIT)).any()
    assert tile_of(np.zeros(24, np.float32)) == empty


@given(st.dictionaries(st.sampled_from(TILE_LEVELS), bounds))
def test_every_tile_is_read_back(levels: dict[str, tuple[int, ...]]) -> None:
    ordered = tuple((name, levels[name]) for name in TILE_LEVELS if name in levels)
    tile = Tile(levels=ordered, unit=UNIT)
    assert tile_of(tile_features(tile)) == tile


@pytest.mark.parametrize(
    "tile",
    [
        Tile(levels=(("output", (4,)),)),
        Tile(levels=(("iteration", (4,)),), unit=UNIT),
        Tile(levels=(("output", (4,)), ("output", (4,))), unit=UNIT),
    ],
)
def test_other_tiles_are_refused(tile: Tile) -> None:
    with pytest.raises(SchemaError, match="expected a tile in unit hardware-tile with levels among kernel"):
        tile_features(tile)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: 0}, "bounds stand first"),
        ({6: 9}, "bounds stand first"),
        ({0: -3}, "at least 1"),
        ({0: 0.5}, "at least"),
    ],
)
def test_other_features_are_refused(change: dict[int, float], message: str) -> None:
    features = tile_features(Tile(levels=(("kernel", (3, 2)),), unit=UNIT))
    for place, value in change.items():
        features[place] = value
    with pytest.raises(SchemaError, match=message):
        tile_of(features)
    with pytest.raises(SchemaError, match=r"24 features, got an array of shape \(3,\)"):
        tile_of(np.zeros(3))


def test_every_published_row_is_a_tile(shared_data: Path) -> None:
    rows = [
        row
        for path in sorted((shared_data / "tpugraphs" / "tile").rglob("*.npz"))
        for row in read_tile_file(path).config_feat
    ]
    assert len(rows) == 5160
    for row in rows:
        np.testing.assert_array_equal(tile_features(tile_of(row)), row)


def test_published_bounds_are_major_to_minor(shared_data: Path) -> None:
    """They fit into the extent of some value of the kernel in this order, and less often in the other."""
    fitting = {"major to minor": 0, "minor to major": 0}
    pairs = 0
    for largest, extents in _published_bounds(shared_data / "tpugraphs"):
        pairs += 1
        fitting["major to minor"] += _fits(largest, extents)
        fitting["minor to major"] += _fits(largest[::-1], extents)
    assert (pairs, fitting["major to minor"], fitting["minor to major"]) == (19, 19, 3)


def _fits(bounds: tuple[int, ...], extents: list[tuple[int, ...]]) -> bool:
    return any(
        len(extent) == len(bounds) and all(e >= b for e, b in zip(extent, bounds, strict=True))
        for extent in extents
    )


def _published_bounds(folder: Path) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """For each published kernel and window: the largest bounds, as listed, and the extents of its values."""
    found: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = []
    for path in sorted((folder / "op_tuning").glob("*.json")):
        tuning = read_op_tuning(path)
        sizes = [run.config for run in tuning.runs if isinstance(run.config, TileSizes)]
        extents = _extents(program_graph(tuning.program).node_feat)
        for name in ("kernel_bounds", "output_bounds"):
            listed = [getattr(s, name) for s in sizes if getattr(s, name)]
            if listed:
                found.append((tuple(map(max, *listed)) if len(listed) > 1 else listed[0], extents))
    for path in sorted((folder / "tile").rglob("*.npz")):
        graph = read_tile_file(path)
        for start in (0, 8):
            largest = tuple(int(b) for b in graph.config_feat[:, start : start + 6].max(axis=0) if b)
            if largest:
                found.append((largest, _extents(graph.node_feat)))
    return found


def _extents(node_feat: np.ndarray) -> list[tuple[int, ...]]:
    """Physical extents major to minor, the two minor dimensions in hardware tiles of 8 by 128."""
    found: list[tuple[int, ...]] = []
    for row in node_feat.astype(int):
        shape = [extent for extent in row[21:27] if extent]
        physical = [int(shape[d]) for d in reversed(row[134 : 134 + len(shape)])]
        for place, tile in ((-1, 128), (-2, 8)):
            if len(physical) >= -place:
                physical[place] = -(-physical[place] // tile)
        found.append(tuple(physical))
    return found
