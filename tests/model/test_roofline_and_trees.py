"""The baselines: coefficients by hand, kinds never seen, and a clear error without the extra."""

import sys

import numpy as np
import pytest

from kernelcast.core.analytical import Peaks, roofline_seconds
from kernelcast.core.kernel import Kind
from kernelcast.errors import MissingExtraError
from kernelcast.model.roofline import Fitting, analytical_seconds, fit_roofline, kind_of_graph
from kernelcast.model.trees import TreesConfig, fit_trees, summed_features

PEAKS = Peaks(flops_per_s=1e9, bytes_per_s=1e9)


def test_the_longer_of_arithmetic_and_traffic():
    assert roofline_seconds(4e9, 1e9, PEAKS) == 4
    assert roofline_seconds(1e9, 3e9, PEAKS) == 3


def test_a_coefficient_per_kind(examples):
    analytical = analytical_seconds(examples.graphs, PEAKS)
    kinds = np.array([kind_of_graph(g) for g in examples.graphs])
    assert {Kind.LOOP, Kind.REDUCE} <= set(kinds)
    seconds = analytical * np.where(kinds == Kind.LOOP, 3.0, 7.0)
    for fitting in Fitting:
        model = fit_roofline(examples.graphs, seconds, PEAKS, fitting)
        assert model.coefficients.by_kind[Kind.LOOP] == pytest.approx(3)
        assert model.coefficients.by_kind[Kind.REDUCE] == pytest.approx(7)
        np.testing.assert_allclose(model.estimate_graphs(examples.graphs).seconds, seconds)


def test_a_kind_never_seen_takes_the_pooled_coefficient(examples):
    loops = [g for g in examples.graphs if kind_of_graph(g) is Kind.LOOP]
    others = [g for g in examples.graphs if kind_of_graph(g) is Kind.REDUCE]
    model = fit_roofline(loops, 2 * analytical_seconds(loops, PEAKS), PEAKS, Fitting.TOTALS)
    expected = 2 * analytical_seconds(others, PEAKS)
    np.testing.assert_allclose(model.estimate_graphs(others).seconds, expected)


def test_totals_follow_the_long_kernels_and_the_median_all(examples):
    graphs = [g for g in examples.graphs if kind_of_graph(g) is Kind.LOOP][:3]
    analytical = analytical_seconds(graphs, PEAKS)
    seconds = analytical * np.array([1.0, 1.0, 10.0])
    totals = fit_roofline(graphs, seconds, PEAKS, Fitting.TOTALS)
    median = fit_roofline(graphs, seconds, PEAKS, Fitting.MEDIAN)
    assert totals.coefficients.pooled == pytest.approx(seconds.sum() / analytical.sum())
    assert median.coefficients.pooled == pytest.approx(1)


def test_peaks_are_positive():
    with pytest.raises(ValueError, match="bytes_per_s must be a positive number, got -1"):
        Peaks(flops_per_s=1, bytes_per_s=-1)


def test_nothing_to_fit_on_is_an_error():
    with pytest.raises(ValueError, match="at least one kernel"):
        fit_roofline([], np.zeros(0), PEAKS, Fitting.MEDIAN)


def test_trees_learn_and_repeat(examples):
    pytest.importorskip("lightgbm")
    fit = lambda seed: fit_trees(examples, examples, config=TreesConfig(rounds=60), seed=seed)  # noqa: E731
    first = fit(0).estimate_graphs(examples.graphs).seconds
    np.testing.assert_array_equal(first, fit(0).estimate_graphs(examples.graphs).seconds)
    assert np.median(np.abs(np.log(first / examples.seconds))) < 0.2


def test_summed_features_do_not_depend_on_the_order_of_nodes(examples):
    graph = examples.graphs[0]
    order = np.random.default_rng(0).permutation(graph.node_count)
    shuffled = type(graph)(
        opcodes=graph.opcodes[order], rows=graph.rows[order], senders=graph.senders,
        receivers=graph.receivers, slots=graph.slots, kernel=graph.kernel,
    )  # fmt: skip
    first, second = summed_features([graph, shuffled])
    np.testing.assert_allclose(first, second)


def test_without_lightgbm_the_extra_is_named(examples, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"kernelcast\[baselines\]"):
        fit_trees(examples, examples, config=TreesConfig(rounds=1), seed=0)
