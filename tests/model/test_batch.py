"""Batches: what goes in comes out, and nothing else in the batch touches a kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.model.batch import (
    ScaledGraph,
    batch,
    batches,
    kernels_per_batch,
    scaled_graphs,
    size_class,
    unbatch,
)


@st.composite
def graphs(draw, largest=20):
    """Any scaled graph: edges may repeat, nodes may have none."""
    nodes = draw(st.integers(1, largest))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edges = draw(st.integers(0, 2 * nodes))
    order = np.lexsort((s := generator.integers(0, nodes, edges), r := generator.integers(0, nodes, edges)))
    return ScaledGraph(
        opcodes=generator.integers(1, 100, nodes).astype(np.int32),
        rows=generator.normal(size=(nodes, 3)).astype(np.float32),
        senders=s[order].astype(np.int32),
        receivers=r[order].astype(np.int32),
        static=generator.normal(size=2).astype(np.float32),
    )


def assert_equal(first, second):
    for name in ("opcodes", "rows", "senders", "receivers", "static"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@settings(max_examples=50, deadline=None)
@given(st.lists(graphs(), min_size=1, max_size=5), st.integers(0, 3))
def test_unbatch_undoes_batch(made, padding):
    again = unbatch(batch(made, nodes=32, kernels=len(made) + padding))
    assert len(again) == len(made)
    for first, second in zip(made, again, strict=True):
        assert_equal(first, second)


@settings(max_examples=30, deadline=None)
@given(st.lists(graphs(largest=40), max_size=30), st.sampled_from([8, 64, 256]))
def test_batches_cover_every_graph_once_in_few_shapes(made, node_budget):
    numbers, shapes = [], set()
    for held, padded in batches(made, node_budget=node_budget):
        numbers.extend(held.tolist())
        shapes.add(padded.mask.shape)
        for number, again in zip(held, unbatch(padded), strict=True):
            assert_equal(made[number], again)
    assert sorted(numbers) == list(range(len(made)))
    assert len(shapes) <= len({size_class(g.node_count) for g in made})


def test_size_classes_and_budget():
    assert [size_class(n) for n in (1, 8, 9, 16, 17, 1000)] == [8, 8, 16, 16, 32, 1024]
    assert kernels_per_batch(16, 2048) == 128
    assert kernels_per_batch(4096, 2048) == 1


def test_what_does_not_fit_is_refused(examples, trained):
    made = scaled_graphs(examples.graphs[:3], trained.scaling)
    with pytest.raises(ValueError, match="holds 1 to 2 graphs, got 3"):
        batch(made, nodes=64, kernels=2)
    with pytest.raises(ValueError, match="cannot hold a graph of more"):
        batch(made, nodes=1, kernels=3)
    assert scaled_graphs([], trained.scaling) == []
