"""The offset of bytes and operations: fitted exactly where it is exact, and taken off and added back."""

from dataclasses import replace

import numpy as np
import pytest

from kernelcast.features.schema import KERNELCAST_1
from kernelcast.model.checkpoint import load_checkpoint, save_checkpoint
from kernelcast.model.config import GNN_RANK
from kernelcast.model.examples import Examples
from kernelcast.model.predict import Predictor
from kernelcast.model.trees import TreesConfig, fit_trees
from kernelcast.model.work_time import TERMS, WorkTime, fit_work_time


def work(examples, *terms):
    columns = [KERNELCAST_1.kernel_index[name] for name in terms]
    return np.stack([graph.kernel[columns] for graph in examples.graphs]).astype(np.float64)


def test_a_sum_of_terms_is_found_again(examples):
    terms = work(examples, "bytes_in", "operations")
    seconds = terms @ np.array([1e-10, 3e-10]) + 2e-7
    found = fit_work_time(examples.graphs, seconds)
    np.testing.assert_allclose(np.exp(found.log_seconds(examples.graphs)), seconds, rtol=1e-6)
    assert len(found.seconds_per) == len(TERMS) + 1
    assert found.seconds_per[-1] == pytest.approx(2e-7, rel=1e-4)


def test_no_term_is_negative_and_no_kernel_is_shorter_than_any(examples):
    seconds = 1.0 / (1e6 + work(examples, "bytes_in")[:, 0])  # larger kernels take less
    found = fit_work_time(examples.graphs, seconds)
    assert min(found.seconds_per) >= 0
    nothing = WorkTime(seconds_per=(0.0,) * (len(TERMS) + 1), least_s=2e-9)
    assert np.exp(nothing.log_seconds(examples.graphs)).min() == pytest.approx(2e-9)
    with pytest.raises(ValueError, match="at least one kernel"):
        fit_work_time([], np.zeros(0))


def test_a_network_learns_the_rest_and_its_checkpoint_keeps_the_offset(
    fit, small_config, examples, provenance, tmp_path
):
    trained = fit(config=replace(small_config, offset=True, epochs=3))
    assert trained.work_time is not None
    predictor = Predictor(trained, provenance)
    found = predictor.estimate_graphs(examples.graphs[:20])
    by_hand = trained.work_time.log_seconds(examples.graphs[:20])
    assert np.abs(np.log(found.seconds) - by_hand).max() < 3
    save_checkpoint(tmp_path, trained, provenance, KERNELCAST_1)
    assert load_checkpoint(tmp_path, KERNELCAST_1).trained.work_time == trained.work_time
    again = Predictor.load(tmp_path).estimate_graphs(examples.graphs[:20])
    np.testing.assert_array_equal(again.seconds, found.seconds)


def test_trees_learn_the_rest(examples):
    pytest.importorskip("lightgbm")
    half = Examples(graphs=examples.graphs[:80], seconds=examples.seconds[:80])
    rest = Examples(graphs=examples.graphs[80:], seconds=examples.seconds[80:])
    errors = {}
    for offset in (False, True):
        model = fit_trees(half, rest, config=TreesConfig(rounds=3, offset=offset), seed=0)
        errors[offset] = np.abs(np.log(model.estimate_graphs(rest.graphs).seconds / rest.seconds)).mean()
    assert errors[True] < errors[False]  # after three rounds plain trees know little


def test_ranks_have_no_offset():
    with pytest.raises(ValueError, match="the tile task has none"):
        replace(GNN_RANK, offset=True)
