"""Ranking and retrieval: DLRM, two towers, deep & cross, contrastive images and texts, policy gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import indices, normal, uniform, weight
from kernelcast.zoo.layers import dense, dense_parameters
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def _click_loss(logits: jax.Array, clicked: jax.Array) -> jax.Array:
    return (jnp.maximum(logits, 0) - logits * clicked + jnp.log1p(jnp.exp(-jnp.abs(logits)))).mean()


def dlrm(*, batch: int, tables: int, rows: int, features: int, optimiser: str | None = None) -> Built:
    """Embedding bags, bottom and top networks, pairwise interactions (Naumov et al. 2019)."""
    pairs = (tables + 1) * tables // 2

    def forward(p: Tree, numbers: jax.Array, categories: jax.Array) -> jax.Array:
        bottom = jax.nn.relu(dense(p["bottom2"], jax.nn.relu(dense(p["bottom1"], jnp.log1p(numbers)))))
        bags = jax.vmap(lambda table, ids: table[ids].sum(1), (0, 1), 1)(p["tables"], categories)
        together = jnp.concatenate([bottom[:, None], bags], 1)
        products = jnp.einsum("bif,bjf->bij", together, together)
        above, below = jnp.triu_indices(tables + 1, 1)
        crossed = jnp.concatenate([bottom, products[:, above, below]], -1)
        return dense(p["top2"], jax.nn.relu(dense(p["top1"], crossed)))[:, 0]

    def loss(p: Tree, numbers: jax.Array, categories: jax.Array, clicked: jax.Array) -> jax.Array:
        return _click_loss(forward(p, numbers, categories), clicked)

    parameters = {
        "tables": normal((tables, rows, features), scale=0.1),
        "bottom1": dense_parameters(13, 64),
        "bottom2": dense_parameters(64, features),
        "top1": dense_parameters(features + pairs, 128),
        "top2": dense_parameters(128, 1),
    }
    inputs = (uniform((batch, 13), 0.0, 100.0), indices((batch, tables, 3), below=rows))
    if optimiser is None:
        return forward, (parameters, *inputs)
    return train(optimiser, loss, parameters, *inputs, uniform((batch,), 0.0, 1.0))


def two_tower(*, batch: int, rows: int, features: int, optimiser: str | None = None) -> Built:
    """User and item towers with in-batch softmax and popularity correction (Yi et al. 2019)."""

    def tower(p: Tree, ids: jax.Array) -> jax.Array:
        x = dense(p["d2"], jax.nn.selu(dense(p["d1"], p["table"][ids].mean(1))))
        return x * lax.rsqrt(jnp.square(x).sum(-1, keepdims=True) + 1e-6)

    def loss(p: Tree, users: jax.Array, items: jax.Array, popularity: jax.Array) -> jax.Array:
        scores = tower(p["user"], users) @ tower(p["item"], items).T / 0.07
        log_probabilities = jax.nn.log_softmax(scores - jnp.log(popularity))
        return -jnp.diagonal(log_probabilities).mean()

    side = {
        "table": normal((rows, features), scale=0.2),
        "d1": dense_parameters(features, 2 * features),
        "d2": dense_parameters(2 * features, features),
    }
    parameters = {"user": side, "item": side}
    ids = indices((batch, 8), below=rows)
    inputs = (ids, ids, uniform((batch,), 1e-4, 1e-2))
    return (loss, (parameters, *inputs)) if optimiser is None else train(optimiser, loss, parameters, *inputs)


def deep_cross(*, batch: int, features: int, optimiser: str | None = None) -> Built:
    """Cross layers beside a deep network, and a factorisation machine (Wang et al. 2021)."""

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        crossed = x
        for layer in p["cross"]:
            crossed = x * dense(layer, crossed) + crossed
        deep = jax.nn.relu(dense(p["deep2"], jax.nn.relu(dense(p["deep1"], x))))
        factors = x @ p["factors"]
        pairs = 0.5 * (jnp.square(factors) - jnp.square(x) @ jnp.square(p["factors"])).sum(-1)
        return dense(p["head"], jnp.concatenate([crossed, deep], -1))[:, 0] + pairs

    def loss(p: Tree, x: jax.Array, clicked: jax.Array) -> jax.Array:
        return _click_loss(forward(p, x), clicked)

    parameters = {
        "cross": [dense_parameters(features, features) for _ in range(2)],
        "deep1": dense_parameters(features, 2 * features),
        "deep2": dense_parameters(2 * features, 64),
        "factors": weight(features, 16),
        "head": dense_parameters(features + 64, 1),
    }
    x = normal((batch, features))
    if optimiser is None:
        return forward, (parameters, x)
    return train(optimiser, loss, parameters, x, uniform((batch,), 0.0, 1.0))


def contrastive(*, batch: int, features: int, views: int = 2) -> Built:
    """Gradient of the normalised temperature-scaled loss of two views (Chen et al. 2020)."""

    def loss(embeddings: jax.Array) -> jax.Array:
        norm = jnp.sqrt(jnp.square(embeddings).sum(-1, keepdims=True) + 1e-8)
        flat = (embeddings / norm).reshape(views * batch, features)
        scores = flat @ flat.T / 0.5
        scores = jnp.where(jnp.eye(views * batch, dtype=bool), -1e9, scores)
        positive = jnp.roll(jnp.arange(views * batch), batch)
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), positive[:, None], 1).mean()

    return jax.value_and_grad(loss), (normal((views, batch, features)),)


def policy_gradient(*, environments: int, steps: int, features: int, optimiser: str | None = None) -> Built:
    """Clipped policy loss with generalised advantages from a backward scan (Schulman et al. 2017)."""
    actions = 6

    def advantages(rewards: jax.Array, values: jax.Array, ended: jax.Array) -> jax.Array:
        following = jnp.concatenate([values[1:], values[-1:]])
        errors = rewards + 0.99 * following * (1 - ended) - values

        def step(carry: jax.Array, at: Tree) -> tuple[jax.Array, jax.Array]:
            error, end = at
            carry = error + 0.99 * 0.95 * (1 - end) * carry
            return carry, carry

        return lax.scan(step, jnp.zeros((environments,)), (errors, ended), reverse=True)[1]

    def loss(p: Tree, seen: jax.Array, taken: jax.Array, old: jax.Array, rewards: jax.Array) -> jax.Array:
        h = jnp.tanh(dense(p["d2"], jnp.tanh(dense(p["d1"], seen))))
        log_probabilities = jax.nn.log_softmax(dense(p["policy"], h))
        values = dense(p["value"], h)[..., 0]
        ended = (rewards > 2.0).astype(jnp.float32)
        gains = advantages(rewards, lax.stop_gradient(values), ended)
        returns = gains + lax.stop_gradient(values)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        ratio = jnp.exp(jnp.take_along_axis(log_probabilities, taken[..., None], -1)[..., 0] - old)
        surrogate = jnp.minimum(ratio * gains, jnp.clip(ratio, 0.8, 1.2) * gains)
        entropy = -jnp.sum(jnp.exp(log_probabilities) * log_probabilities, -1)
        return -surrogate.mean() + 0.5 * jnp.square(values - returns).mean() - 0.01 * entropy.mean()

    parameters = {
        "d1": dense_parameters(features, 64),
        "d2": dense_parameters(64, 64),
        "policy": dense_parameters(64, actions),
        "value": dense_parameters(64, 1),
    }
    span = (steps, environments)
    inputs = (
        normal((*span, features)),
        indices(span, below=actions),
        normal(span, mean=-1.8, scale=0.1),
        normal(span),
    )
    return (loss, (parameters, *inputs)) if optimiser is None else train(optimiser, loss, parameters, *inputs)
