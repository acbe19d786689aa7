"""One step of training, the same for both tasks: gradient, AdamW, running average of the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from kernelcast.features.scaling import Scaling
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.config import TrainConfig
from kernelcast.model.trained import Network, new_network

# (network, one batch as a tuple of arrays, key for dropout) → loss
Objective = Callable[[Network, Any, PRNGKeyArray], Float[Array, ""]]
Step = Callable[..., tuple[Network, Network, optax.OptState, Array]]


class State(NamedTuple):
    """What a step changes.

    Attributes:
        average: running average of the network's weights.
        steps: taken so far.
    """

    network: Network
    average: Network
    optimiser: optax.OptState
    steps: int


def begun(
    config: TrainConfig,
    schema: FeatureSchema,
    scaling: Scaling,
    objective: Objective,
    seed: int,
    *,
    steps: int,
) -> tuple[State, Step]:
    """The state before the first of so many steps, and the compiled step.

    Args:
        objective: a function of a module, so that it is the same object for every seed.
    """
    network = new_network(config, schema, scaling, jax.random.key(seed))
    optimiser, step = _compiled(
        config.learning_rate, config.weight_decay, config.clip, config.average, steps, objective
    )
    held = optimiser.init(eqx.filter(network, eqx.is_array))
    return State(network=network, average=network, optimiser=held, steps=0), step


def run_epoch(step: Step, state: State, batches: Iterable[Any], key: PRNGKeyArray) -> tuple[State, float]:
    """The state after a step on each batch, and the mean of their losses."""
    losses: list[Array] = []
    for made in batches:
        network, average, optimiser, loss = step(
            state.network,
            state.average,
            state.optimiser,
            made,
            jax.random.fold_in(key, state.steps),
            jnp.float32(state.steps),
        )
        state = State(network=network, average=average, optimiser=optimiser, steps=state.steps + 1)
        losses.append(loss)
    return state, float(np.mean([float(x) for x in losses]))


@lru_cache(maxsize=4)
def _compiled(
    learning_rate: float,
    weight_decay: float,
    clip: float,
    average_decay: float,
    steps: int,
    objective: Objective,
) -> tuple[optax.GradientTransformation, Step]:
    """The optimiser and its compiled step; remembered, so that seeds share what is compiled."""
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=0.0, peak_value=learning_rate, warmup_steps=max(1, steps // 20), decay_steps=max(2, steps)
    )
    optimiser = optax.chain(optax.clip_by_global_norm(clip), optax.adamw(schedule, weight_decay=weight_decay))

    @eqx.filter_jit(donate="none")
    def step(
        network: Network, average: Network, state: optax.OptState, made: Any, key: PRNGKeyArray, count: Array
    ) -> tuple[Network, Network, optax.OptState, Array]:
        loss, gradient = eqx.filter_value_and_grad(objective)(network, made, key)
        parameters = eqx.filter(network, eqx.is_array)
        updates, state = optimiser.update(gradient, state, parameters)
        network = eqx.apply_updates(network, updates)
        # Early on the average must not remember the random start.
        decay = jnp.minimum(average_decay, (1.0 + count) / (10.0 + count)) if average_decay else 0.0
        average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, average, network)
        return network, average, state, loss

    return optimiser, step
