"""Training: kernels with times in, the network of the best validation epoch out. Deterministic per seed."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from kernelcast.errors import KernelcastError
from kernelcast.features.graph import KernelGraph
from kernelcast.features.scaling import Scaling, fit_scaling
from kernelcast.features.schema import Block, FeatureSchema
from kernelcast.model.batch import (
    GraphBatch,
    ScaledGraph,
    batch,
    kernels_per_batch,
    scaled_graphs,
    size_class,
)
from kernelcast.model.loss import log_time_loss
from kernelcast.model.network import KernelNetwork, NetworkConfig

_log = logging.getLogger(__name__)
PAPER_BLOCKS = (Block.PAPER, Block.MASK, Block.TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How a model is trained; the defaults are the paper-faithful model, ``gnn``.

    Attributes:
        network: its shape.
        blocks: of node columns that it reads.
        epochs: at most; a pass over all training kernels each.
        patience: epochs without a better validation error before training stops.
        learning_rate: its peak; warm-up over the first twentieth of the steps, then a cosine to zero.
        weight_decay: of AdamW.
        clip: largest global norm of a gradient.
        node_budget: nodes of one batch, padding included.
        average: decay per step of the running average of weights that is validated and kept; 0: none.
    """

    network: NetworkConfig = field(default_factory=NetworkConfig)
    blocks: tuple[Block, ...] = PAPER_BLOCKS
    epochs: int = 30
    patience: int = 15
    learning_rate: float = 5e-3
    weight_decay: float = 1e-2
    clip: float = 1.0
    node_budget: int = 1024
    average: float = 0.99

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.patience < 1:
            raise ValueError(f"epochs and patience must be >= 1, got {self.epochs} and {self.patience}")


GNN = TrainConfig()
GNN_STATIC = TrainConfig(
    network=NetworkConfig(hidden=(64, 64), static=True, residual=True),
    blocks=(*PAPER_BLOCKS, Block.STATIC),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Kernels with their times.

    Attributes:
        graphs: raw graphs.
        seconds: (kernel,) labels, > 0.
    """

    graphs: Sequence[KernelGraph]
    seconds: np.ndarray

    def __post_init__(self) -> None:
        if len(self.graphs) != len(self.seconds):
            raise ValueError(f"{len(self.graphs)} graphs cannot have {len(self.seconds)} times")
        if not bool(np.all(self.seconds > 0)):
            raise ValueError("every training time must be > 0; leave out kernels that failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One line of a training's history.

    Attributes:
        number: from 1.
        train_loss: mean squared log error over the epoch's batches.
        validation_error: mean |log(predicted / measured)| on the validation kernels.
        best: whether it is the lowest so far.
    """

    number: int
    train_loss: float
    validation_error: float
    best: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A trained model: everything that predicting needs.

    Attributes:
        network: weights of the best epoch.
        scaling: of its inputs.
        centre, spread: mean and deviation of the training labels' log seconds; the network's output is in
            these units.
        config: how it was trained.
        seed: of weights, order and dropout.
        history: one entry per epoch so far.
    """

    network: KernelNetwork
    scaling: Scaling
    centre: float
    spread: float
    config: TrainConfig
    seed: int
    history: tuple[Epoch, ...]


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
        config: of network and training.
        seed: the same seed gives the same weights on the same machine.
        on_best: called at each better epoch, e.g. to save it; an interrupt loses nothing that was saved.
        on_epoch: called after each epoch, for progress.

    Raises:
        KernelcastError: no epoch gave a finite validation error.
    """
    scaling = fit_scaling(training.graphs, schema, frozenset(config.blocks))
    centre = float(np.mean(np.log(training.seconds)))
    spread = max(float(np.std(np.log(training.seconds))), 1e-3)
    data, held = (
        _Padded(
            scaled_graphs(examples.graphs, scaling),
            (np.log(examples.seconds) - centre) / spread,
            config.node_budget,
        )
        for examples in (training, validation)
    )
    state, step = _begun(config, schema, scaling, seed, steps=config.epochs * data.batch_count)
    order = np.random.default_rng(seed)
    key = jax.random.fold_in(jax.random.key(seed), 1)
    best: Trained | None = None
    history: list[Epoch] = []
    for number in range(1, config.epochs + 1):
        state, loss = _pass(step, state, data.epoch(order), key)
        error = spread * _mean_absolute_error(state.average, held)
        better = math.isfinite(error) and (best is None or error < best.history[-1].validation_error)
        epoch = Epoch(number=number, train_loss=spread**2 * loss, validation_error=error, best=better)
        history.append(epoch)
        _log.info("epoch %d: loss %.4f, validation |log| %.4f", number, epoch.train_loss, error)
        if on_epoch is not None:
            on_epoch(epoch)
        if better:
            best = Trained(
                network=state.average,
                scaling=scaling,
                centre=centre,
                spread=spread,
                config=config,
                seed=seed,
                history=tuple(history),
            )
            if on_best is not None:
                on_best(best)
        elif best is not None and number - best.history[-1].number >= config.patience:
            break
    if best is None:
        raise KernelcastError(
            f"training with seed {seed} diverged: no epoch had a finite validation error; lower the learning "
            f"rate ({config.learning_rate:g})"
        )
    return best


class _State(NamedTuple):
    """What a step changes.

    Attributes:
        average: running average of the network's weights.
        steps: taken so far.
    """

    network: KernelNetwork
    average: KernelNetwork
    optimiser: optax.OptState
    steps: int


def _begun(
    config: TrainConfig, schema: FeatureSchema, scaling: Scaling, seed: int, *, steps: int
) -> tuple[_State, _Step]:
    """The state before the first of so many steps, and the compiled step."""
    network = KernelNetwork(
        config.network,
        opcode_count=len(schema.opcodes),
        node_features=len(scaling.node.columns),
        kernel_features=len(scaling.kernel.columns),
        key=jax.random.key(seed),
    )
    optimiser, step = _compiled(config.learning_rate, config.weight_decay, config.clip, config.average, steps)
    held = optimiser.init(eqx.filter(network, eqx.is_array))
    return _State(network=network, average=network, optimiser=held, steps=0), step


def _pass(
    step: _Step,
    state: _State,
    batches: Iterable[tuple[GraphBatch, np.ndarray, np.ndarray]],
    key: PRNGKeyArray,
) -> tuple[_State, float]:
    """The state after a step on each batch, and the mean of their losses."""
    losses: list[Array] = []
    for made, target, weight in batches:
        network, average, optimiser, loss = step(
            state.network,
            state.average,
            state.optimiser,
            made,
            target,
            weight,
            jax.random.fold_in(key, state.steps),
            jnp.float32(state.steps),
        )
        state = _State(network=network, average=average, optimiser=optimiser, steps=state.steps + 1)
        losses.append(loss)
    return state, float(np.mean([float(x) for x in losses]))


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

    def epoch(self, order: np.random.Generator | None) -> Iterator[tuple[GraphBatch, np.ndarray, np.ndarray]]:
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


_Step = Callable[..., tuple[KernelNetwork, KernelNetwork, optax.OptState, Array]]


@lru_cache(maxsize=4)
def _compiled(
    learning_rate: float, weight_decay: float, clip: float, average_decay: float, steps: int
) -> tuple[optax.GradientTransformation, _Step]:
    """The optimiser and its compiled step; remembered, so that seeds share what is compiled."""
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=0.0, peak_value=learning_rate, warmup_steps=max(1, steps // 20), decay_steps=max(2, steps)
    )
    optimiser = optax.chain(optax.clip_by_global_norm(clip), optax.adamw(schedule, weight_decay=weight_decay))

    def objective(
        network: KernelNetwork,
        made: GraphBatch,
        target: Float[Array, " kernel"],
        weight: Float[Array, " kernel"],
        key: PRNGKeyArray,
    ) -> Float[Array, ""]:
        return log_time_loss(network(made, key=key), target, weight)

    @eqx.filter_jit(donate="none")
    def step(
        network: KernelNetwork,
        average: KernelNetwork,
        state: optax.OptState,
        made: GraphBatch,
        target: Float[Array, " kernel"],
        weight: Float[Array, " kernel"],
        key: PRNGKeyArray,
        count: Array,
    ) -> tuple[KernelNetwork, KernelNetwork, optax.OptState, Array]:
        loss, gradient = eqx.filter_value_and_grad(objective)(network, made, target, weight, key)
        parameters = eqx.filter(network, eqx.is_array)
        updates, state = optimiser.update(gradient, state, parameters)
        network = eqx.apply_updates(network, updates)
        # Early on the average must not remember the random start.
        decay = jnp.minimum(average_decay, (1.0 + count) / (10.0 + count)) if average_decay else 0.0
        average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, average, network)
        return network, average, state, loss

    return optimiser, step


@eqx.filter_jit
def _predict(network: KernelNetwork, made: GraphBatch) -> Float[Array, " kernel"]:
    return network(made)


def _mean_absolute_error(network: KernelNetwork, held: _Padded) -> float:
    """Mean |error| in the units of the output, less swayed by a few wrong labels than the loss."""
    total = weights = 0.0
    for made, target, weight in held.epoch(None):
        error = np.abs(np.asarray(_predict(network, made)) - target)
        total += float((error * weight).sum())
        weights += float(weight.sum())
    return total / weights
