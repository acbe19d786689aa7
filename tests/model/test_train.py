"""Training: it learns, it repeats, it stops, and an interrupt loses nothing that was best."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from kernelcast.errors import KernelcastError
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.model.config import GNN_STATIC, TrainConfig
from kernelcast.model.examples import Examples
from kernelcast.model.train import train


def leaves(trained):
    return jax.tree.leaves(eqx.filter(trained.network, eqx.is_array))


def test_it_learns_a_simple_law(trained, examples):
    spread = np.abs(np.log(examples.seconds) - np.log(examples.seconds).mean()).mean()
    assert min(e.validation_error for e in trained.history) < 0.35 * spread
    assert trained.history[-1].best


def test_the_same_seed_gives_the_same_weights(fit, trained):
    again, other = fit(), fit(seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(leaves(trained), leaves(again), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(leaves(trained), leaves(other), strict=True))


def test_it_stops_when_validation_gets_no_better(examples, small_config):
    epochs = []
    config = replace(small_config, patience=1)
    upside_down = Examples(graphs=examples.graphs[120:], seconds=1 / examples.seconds[120:])
    training = Examples(graphs=examples.graphs[:120], seconds=examples.seconds[:120])
    train(training, upside_down, schema=KERNELCAST_1, config=config, seed=0, on_epoch=epochs.append)
    assert len(epochs) < config.epochs
    assert not epochs[-1].best


def test_a_training_that_diverges_gives_no_model(fit, small_config):
    saved = []
    config = replace(small_config, epochs=2, learning_rate=float("nan"))
    with pytest.raises(KernelcastError, match="seed 0 diverged: no epoch had a finite validation error"):
        fit(config=config, on_best=saved.append)
    assert not saved


def test_an_interrupt_leaves_the_best_so_far(fit, small_config):
    saved = []

    def interrupt(epoch):
        if epoch.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(config=small_config, on_best=saved.append, on_epoch=interrupt)
    assert saved
    assert saved[-1].history[-1].best


def test_the_static_model_reads_static_columns(fit, small_config):
    network = replace(small_config.network, static=True, hidden=(8,), residual=True)
    trained = fit(config=replace(small_config, network=network, blocks=GNN_STATIC.blocks, epochs=2))
    assert trained.scaling.kernel.columns.size > 0
    assert trained.network.direct is not None


def test_examples_need_positive_times(examples):
    with pytest.raises(ValueError, match="must be > 0"):
        Examples(graphs=examples.graphs[:1], seconds=np.array([0.0]))
    with pytest.raises(ValueError, match="1 graphs cannot have 2 times"):
        Examples(graphs=examples.graphs[:1], seconds=np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="epochs and patience"):
        TrainConfig(epochs=0)
