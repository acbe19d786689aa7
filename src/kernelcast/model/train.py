"""Training for the fusion task: kernels with times in, the network of the best validation epoch out.

Deterministic per seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kernelcast.features.scaling import fit_scaling
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.batch import (
    GraphBatch,
    ScaledGraph,
    batch,
    kernels_per_batch,
    scaled_graphs,
    size_class,
)
from kernelcast.model.config import TrainConfig
from kernelcast.model.epochs import Task, run_epochs
from kernelcast.model.examples import Examples
from kernelcast.model.loss import log_time_loss
from kernelcast.model.trained import Epoch, Network, Trained
from kernelcast.model.work_time import WorkTime, fit_work_time

# Inputs, targets and weights of one batch.
_Batch = tuple[GraphBatch, np.ndarray, np.ndarray]


def train(
    training: Examples,
    validation: Examples,
    *,
    schema: FeatureSchema,
    config: TrainConfig,
    seed: int,
    on_best: Callable[[Trained], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Trained:
    """The model of the best validation epoch.

    Args:
        training: what is fitted; scaling and centre come from it alone.
        validation: chooses the epoch; kernels of other programs than the training's.
        schema: of the graphs.
        config: of network and training, for the fusion task.
        seed: the same seed gives the same weights on the same machine.
        on_best: called at each better epoch, e.g. to save it; an interrupt loses nothing that was saved.
        on_epoch: called after each epoch, for progress.

    Raises:
        ValueError: the config is one of the tile task.
        KernelcastError: no epoch gave a finite validation error.
    """
    if config.tiles is not None:
        raise ValueError("a config of the tile task goes to train_tiles, with tiles to train on")
    scaling = fit_scaling(training.graphs, schema, frozenset(config.blocks))
    work_time = fit_work_time(training.graphs, training.seconds) if config.offset else None
    logs, held_logs = (_learned_logs(examples, work_time) for examples in (training, validation))
    centre = float(np.mean(logs))
    spread = max(float(np.std(logs)), 1e-3)
    data, held = (
        _Padded(scaled_graphs(examples.graphs, scaling), (wanted - centre) / spread, config.node_budget)
        for examples, wanted in ((training, logs), (validation, held_logs))
    )
    order = np.random.default_rng(seed)
    task = Task(
        scaling=scaling,
        centre=centre,
        spread=spread,
        objective=_objective,
        batches=lambda: data.epoch(order),
        batch_count=data.batch_count,
        validation_error=lambda network: spread * _mean_absolute_error(network, held),
        loss_unit=spread**2,
        work_time=work_time,
    )
    return run_epochs(task, schema=schema, config=config, seed=seed, on_best=on_best, on_epoch=on_epoch)


class _Padded:
    """Kernels padded once per size class, so that an epoch only picks rows."""

    def __init__(self, graphs: Sequence[ScaledGraph], targets: np.ndarray, node_budget: int) -> None:
        classes: dict[int, list[int]] = defaultdict(list)
        for number, graph in enumerate(graphs):
            classes[size_class(graph.node_count)].append(number)
        self._classes: list[tuple[int, GraphBatch, np.ndarray]] = []
        for nodes, numbers in sorted(classes.items()):
            padded = batch([graphs[n] for n in numbers], nodes=nodes, kernels=len(numbers))
            kernels = kernels_per_batch(nodes, node_budget)
            self._classes.append((kernels, padded, targets[numbers].astype(np.float32)))

    @property
    def batch_count(self) -> int:
        return sum(-(-len(targets) // kernels) for kernels, _, targets in self._classes)

    def epoch(self, order: np.random.Generator | None) -> Iterator[_Batch]:
        """(inputs, targets, weights) of every batch; shuffled within and across size classes by ``order``."""
        plan: list[tuple[int, np.ndarray]] = []
        for number, (kernels, _, targets) in enumerate(self._classes):
            rows = np.arange(len(targets)) if order is None else order.permutation(len(targets))
            plan.extend((number, rows[start : start + kernels]) for start in range(0, len(rows), kernels))
        for at in range(len(plan)) if order is None else order.permutation(len(plan)):
            number, rows = plan[at]
            kernels, padded, targets = self._classes[number]
            # A short last batch repeats its first kernel with weight 0: one shape per size class.
            filled = np.concatenate([rows, np.full(kernels - len(rows), rows[0])])
            weight = (np.arange(kernels) < len(rows)).astype(np.float32)
            yield GraphBatch(*(np.asarray(part)[filled] for part in padded)), targets[filled], weight


def _learned_logs(examples: Examples, work_time: WorkTime | None) -> np.ndarray:
    """(kernel,) log seconds, or what the work time leaves over of them."""
    logs = np.log(examples.seconds)
    return logs if work_time is None else logs - work_time.log_seconds(examples.graphs)


def _objective(network: Network, made: _Batch, key: PRNGKeyArray) -> Float[Array, ""]:
    inputs, target, weight = made
    return log_time_loss(network(inputs, key=key), jnp.asarray(target), jnp.asarray(weight))


@eqx.filter_jit
def _predict(network: Network, made: GraphBatch) -> Float[Array, " kernel"]:
    return network(made)


def _mean_absolute_error(network: Network, held: _Padded) -> float:
    """Mean |error| in the units of the output, less swayed by a few wrong labels than the loss."""
    total = weights = 0.0
    for made, target, weight in held.epoch(None):
        error = np.abs(np.asarray(_predict(network, made)) - target)
        total += float((error * weight).sum())
        weights += float(weight.sum())
    return total / weights
