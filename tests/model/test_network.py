"""The network: equation 1 by hand, and what must not change a prediction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.model.batch import ScaledGraph, batch
from kernelcast.model.network import (
    Direction,
    GraphLayer,
    KernelNetwork,
    NetworkConfig,
    Normalisation,
    Reduction,
)

WIDTH, STATIC, OPCODES = 5, 3, 7
CONFIGS = {
    "paper": NetworkConfig(opcode_width=4, width=8, hops=2),
    "static": NetworkConfig(
        opcode_width=4, width=8, hops=2, hidden=(6,), static=True, residual=True,
        normalisation=Normalisation.RMS,
        neighbours=Reduction.MEAN,
    ),
    "producers": NetworkConfig(opcode_width=4, width=8, hops=1, direction=Direction.PRODUCERS),
    "consumers": NetworkConfig(
        opcode_width=4, width=8, hops=1, direction=Direction.CONSUMERS, pooling=(Reduction.MEAN,)
    ),
}  # fmt: skip


def network(config, seed=0):
    return KernelNetwork(
        config, opcode_count=OPCODES, node_features=WIDTH, kernel_features=STATIC, key=jax.random.key(seed)
    )


@pytest.fixture(scope="module")
def networks():
    return {name: network(config) for name, config in CONFIGS.items()}


def random_graph(generator, nodes):
    edges = [(s, r) for r in range(nodes) for s in range(r) if generator.random() < 0.4]
    senders, receivers = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    return ScaledGraph(
        opcodes=generator.integers(0, OPCODES, nodes).astype(np.int32),
        rows=generator.normal(size=(nodes, WIDTH)).astype(np.float32),
        senders=senders,
        receivers=receivers,
        static=generator.normal(size=STATIC).astype(np.float32),
    )


def permuted(graph, order):
    place = np.argsort(order).astype(np.int32)
    return ScaledGraph(
        opcodes=graph.opcodes[order],
        rows=graph.rows[order],
        senders=place[graph.senders],
        receivers=place[graph.receivers],
        static=graph.static,
    )


def predict(model, graphs, *, nodes=16, kernels=4):
    return np.asarray(model(batch(graphs, nodes=nodes, kernels=kernels)))[: len(graphs)]


def test_one_hop_is_equation_1():
    config = NetworkConfig(width=2, direction=Direction.PRODUCERS)
    layer = GraphLayer(config, key=jax.random.key(0))
    nodes = jnp.array([[[1.0, 2.0], [0.5, 0.0], [0.0, 0.0]]])
    incoming = jnp.array([[[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])  # 1 reads 0 twice
    made = np.asarray(layer(nodes, incoming))[0]
    message = np.maximum(np.asarray(nodes[0]) @ np.asarray(layer.producers.weight), 0)
    joined = np.concatenate(
        [np.asarray(nodes[0]), np.stack([0 * message[0], 2 * message[0], 0 * message[0]])], 1
    )
    expected = np.maximum(joined @ np.asarray(layer.combine.weight), 0)
    norm = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(made, expected / np.maximum(norm, 1e-6), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_l2_or_rms_normalised_and_finite(networks, name):
    graph = random_graph(np.random.default_rng(1), 9)
    assert np.isfinite(predict(networks[name], [graph])).all()


@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=10, deadline=None)
@given(nodes=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_nodes_changes_nothing(networks, name, nodes, seed):
    generator = np.random.default_rng(seed)
    graph = random_graph(generator, nodes)
    again = permuted(graph, generator.permutation(nodes))
    first, second = predict(networks[name], [graph, again])
    assert first == pytest.approx(second, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=10, deadline=None)
@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4), seed=st.integers(0, 2**32 - 1))
def test_padding_and_batch_mates_change_nothing(networks, name, sizes, seed):
    generator = np.random.default_rng(seed)
    graphs = [random_graph(generator, nodes) for nodes in sizes]
    together = predict(networks[name], graphs)
    alone = [predict(networks[name], [graph], nodes=32, kernels=1)[0] for graph in graphs]
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-6)


def test_edges_and_their_direction_matter(networks):
    graph = random_graph(np.random.default_rng(2), 6)
    turned = ScaledGraph(
        opcodes=graph.opcodes, rows=graph.rows, senders=graph.receivers, receivers=graph.senders,
        static=graph.static,
    )  # fmt: skip
    for name in ("paper", "producers", "consumers"):
        first, second = predict(networks[name], [graph, turned])
        assert abs(first - second) > 1e-6


def test_dropout_only_with_a_key():
    model = network(NetworkConfig(opcode_width=4, width=8, dropout=0.5))
    made = batch([random_graph(np.random.default_rng(3), 6)], nodes=8, kernels=1)
    still = model(made)
    assert np.array_equal(still, model(made))
    assert not np.array_equal(still, model(made, key=jax.random.key(1)))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"neighbours": Reduction.MAX}, "sum or mean"),
        ({"pooling": ()}, "at least one of sum, mean, max"),
        ({"dropout": 1.0}, "dropout must lie in"),
    ],
)
def test_configurations_without_meaning_are_refused(fields, text):
    with pytest.raises(ValueError, match=text):
        NetworkConfig(**fields)
