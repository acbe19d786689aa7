"""One network class for both tasks: many tiles of one graph give what a graph per tile gives."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from kernelcast.core.tile import Tile
from kernelcast.features.graph import Featuriser
from kernelcast.features.scaling import fit_scaling
from kernelcast.features.schema import KERNELCAST_1, Block
from kernelcast.features.tiles import tile_rows
from kernelcast.model.batch import TileBatch, batch, scaled_graphs
from kernelcast.model.config import GNN, GNN_STATIC, LSTM, PAPER_BLOCKS
from kernelcast.model.network import NetworkConfig, Normalisation, Reduction
from kernelcast.model.sequence import SequenceConfig
from kernelcast.model.tile_batches import TileInput
from kernelcast.model.trained import new_network

# Compiled: many small calls cost less than as many small operations.
run = eqx.filter_jit(lambda network, *inputs: network(*inputs))
TILES = [Tile(levels=(("output", (2**a, 2**b)),)) for a in range(3) for b in range(2)]
SMALL = NetworkConfig(opcode_width=4, width=8, hops=2)
CONFIGS = {
    "paper": replace(GNN, network=SMALL),
    "static": replace(
        GNN_STATIC,
        network=replace(SMALL, static=True, hidden=(8,), residual=True, normalisation=Normalisation.RMS),
    ),
    "mean": replace(
        GNN, network=replace(SMALL, neighbours=Reduction.MEAN, pooling=(Reduction.SUM, Reduction.MEAN))
    ),
    "sequence": replace(LSTM, network=SequenceConfig(opcode_width=4, width=8, state=8)),
}


@pytest.fixture(scope="module")
def graphs(kernels):
    return Featuriser().graphs(kernels[:4])


@pytest.mark.parametrize("name", CONFIGS)
def test_tiles_joined_once_are_tiles_on_every_node(name, kernels, graphs):
    config = CONFIGS[name]
    rows = tile_rows(TILES)
    scaling = fit_scaling(graphs, KERNELCAST_1, frozenset(config.blocks), rows)
    network = new_network(config, KERNELCAST_1, scaling, jax.random.key(0))
    # Outputs of a fresh network are tiny: compare them enlarged.
    network = eqx.tree_at(lambda n: n.last.weight, network, replace_fn=lambda w: 100 * w)
    inputs = TileInput(scaling, KERNELCAST_1)
    values = np.broadcast_to(inputs.values(rows), (len(graphs), len(rows), len(inputs.columns)))
    made = batch(scaled_graphs(graphs, scaling), nodes=16, kernels=len(graphs))
    together = np.asarray(run(network, made, TileBatch(values=values, columns=inputs.columns)))
    assert together.shape == (len(graphs), len(TILES))
    for number, tile in enumerate(TILES):
        tiled = [Featuriser().graph(kernel, tile) for kernel in kernels[:4]]
        one = run(network, batch(scaled_graphs(tiled, scaling), nodes=16, kernels=len(graphs)))
        np.testing.assert_allclose(together[:, number], np.asarray(one), rtol=1e-4, atol=1e-5)
    assert np.ptp(together, axis=1).min() > 1e-5


def test_without_tiles_the_same_class_has_no_tile_columns(graphs):
    """The fusion task: tile columns never vary, so they are no input; all else is equal."""
    rows = tile_rows(TILES)
    fusion, tile = (
        fit_scaling(graphs, KERNELCAST_1, frozenset(PAPER_BLOCKS), tiles) for tiles in (None, rows)
    )
    first, second = (new_network(GNN, KERNELCAST_1, s, jax.random.key(0)) for s in (fusion, tile))
    assert type(first) is type(second)
    extra = set(tile.node.columns.tolist()) - set(fusion.node.columns.tolist())
    assert {KERNELCAST_1.node[n].block for n in extra} == {Block.TILE}
    assert second.first.weight.shape[0] - first.first.weight.shape[0] == len(extra)
    shapes = [jax.tree.map(lambda a: a.shape, eqx.filter(n.layers, eqx.is_array)) for n in (first, second)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", ["paper", "sequence"])
def test_padding_changes_no_score(name, graphs):
    config = CONFIGS[name]
    rows = tile_rows(TILES)
    scaling = fit_scaling(graphs, KERNELCAST_1, frozenset(config.blocks), rows)
    network = new_network(config, KERNELCAST_1, scaling, jax.random.key(1))
    inputs = TileInput(scaling, KERNELCAST_1)
    scaled = scaled_graphs(graphs[:1], scaling)
    values = inputs.values(rows)[None]
    alone = run(network, batch(scaled, nodes=16, kernels=1), TileBatch(values=values, columns=inputs.columns))
    wide = np.zeros((3, len(rows) + 2, values.shape[2]), dtype=np.float32)
    wide[0, : len(rows)] = values[0]
    padded = run(network, batch(scaled, nodes=32, kernels=3), TileBatch(values=wide, columns=inputs.columns))
    np.testing.assert_allclose(padded[0, : len(rows)], alone[0], rtol=1e-4, atol=1e-6)
    assert np.isfinite(np.asarray(padded)).all()


def test_the_order_of_a_sequence_matters_and_its_edges_do_not(graphs):
    config = CONFIGS["sequence"]
    scaling = fit_scaling(graphs, KERNELCAST_1, frozenset(config.blocks))
    network = new_network(config, KERNELCAST_1, scaling, jax.random.key(0))
    longest = max(graphs, key=lambda graph: graph.node_count)
    (graph,) = scaled_graphs([longest], scaling)
    made = batch([graph], nodes=16, kernels=1)
    unlinked = made._replace(incoming=np.zeros_like(made.incoming))
    assert np.array_equal(run(network, made), run(network, unlinked))
    backwards = batch(
        [replace(graph, opcodes=graph.opcodes[::-1], rows=graph.rows[::-1])], nodes=16, kernels=1
    )
    assert abs(float(run(network, made)[0] - run(network, backwards)[0])) > 1e-6
