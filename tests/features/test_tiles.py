"""The tile sub-vector: slots by level, sums and products, and how it is scaled apart from the graphs."""

import numpy as np
import pytest

from kernelcast.core.tile import Tile
from kernelcast.features.graph import Featuriser
from kernelcast.features.scaling import fit_scaling
from kernelcast.features.schema import KERNELCAST_1, Block
from kernelcast.features.tiles import tile_rows
from kernelcast.fusion.extract import kernel_from_text

NAMES = [KERNELCAST_1.node[n].name for n in KERNELCAST_1.tile_columns]
BLOCKS = frozenset({Block.PAPER, Block.MASK, Block.TILE})


def row(**levels):
    unit = levels.pop("unit", "element")
    values = tile_rows([Tile(levels=tuple(levels.items()), unit=unit)])[0]
    return {name: float(v) for name, v in zip(NAMES, values, strict=True) if v}


def tanh(*shape):
    dimensions = ",".join(map(str, shape))
    layout = ",".join(str(n) for n in reversed(range(len(shape))))
    text = f"f32[{dimensions}]{{{layout}}}"
    return kernel_from_text(f"HloModule k ENTRY e {{ x = {text} parameter(0)  ROOT y = {text} tanh(x) }}")


def test_sizes_sum_and_product_minor_to_major():
    assert row(output=(4, 2, 3)) == {
        "tile_1_bound_0": 4, "tile_1_bound_1": 2, "tile_1_bound_2": 3, "tile_1_sum": 9, "tile_1_product": 24,
        "has_tile_1": 1,
    }  # fmt: skip


def test_a_level_has_its_slot_whatever_stands_beside_it():
    alone = row(input=(5,), unit="hardware-tile")
    beside = row(kernel=(3, 3), output=(2,), input=(5,), unit="hardware-tile")
    assert set(alone) <= set(beside)
    assert alone["tile_2_bound_0"] == 5
    assert alone["tile_counts_hardware_tiles"] == 1
    assert row(kernel=(), input=(5,)) == row(input=(5,))
    assert row() == {}


def test_large_windows_keep_their_product():
    assert row(output=(2**12, 2**12, 2**6))["tile_1_product"] == 2**30


def test_a_level_without_a_slot_is_refused():
    with pytest.raises(ValueError, match=r"level 'spill'; a model knows kernel, output, input"):
        row(spill=(4,))


def test_a_row_per_tile_and_none_of_none():
    assert tile_rows([]).shape == (0, len(NAMES))
    two = tile_rows([Tile(levels=(("output", (n,)),)) for n in (1, 2)])
    assert two[:, NAMES.index("tile_1_sum")].tolist() == [1, 2]


def test_tile_columns_are_scaled_by_the_tiles_alone():
    graphs = Featuriser().graphs([tanh(4, 8), tanh(16)])
    tiles = tile_rows([Tile(levels=(("output", (n,)),)) for n in (1, 2, 4, 8)])
    plain, tiled = fit_scaling(graphs, KERNELCAST_1, BLOCKS), fit_scaling(graphs, KERNELCAST_1, BLOCKS, tiles)
    read = {KERNELCAST_1.node[n].name for n in tiled.node.columns}
    assert read - {KERNELCAST_1.node[n].name for n in plain.node.columns} == {
        "tile_1_bound_0", "tile_1_sum", "tile_1_product"
    }  # fmt: skip
    assert (np.diff(tiled.node.columns) > 0).all()
    assert (np.diff(tiled.node.read) > 0).all()
    np.testing.assert_array_equal(tiled.node.read, plain.node.read)
    alone = tiled.node.restricted(KERNELCAST_1.tile_columns).apply(tiles)
    assert alone.mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert alone.std(axis=0) == pytest.approx(1, rel=1e-5)


def test_a_restricted_scaling_is_the_same_one():
    graphs = [Featuriser().graph(tanh(4, 8), Tile(levels=(("output", (n,)),))) for n in (1, 2, 8)]
    scaling = fit_scaling(graphs, KERNELCAST_1, BLOCKS).node
    columns = KERNELCAST_1.tile_columns
    part = scaling.restricted(columns)
    for graph in graphs:
        whole = scaling.apply(graph.rows)[:, np.isin(scaling.columns, columns)]
        np.testing.assert_array_equal(part.apply(graph.rows[:, columns]), whole)
        assert part.outside(graph.rows[:, columns]) == scaling.outside(graph.rows)
