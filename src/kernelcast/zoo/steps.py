"""Training steps: a loss made into one update of its parameters, with the optimisers that people use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from kernelcast.zoo.inputs import Input, constant, normal, uniform
from kernelcast.zoo.program import Built

Loss = Callable[..., jax.Array]
# A parameter, gradient or state tree: dictionaries, lists and tuples of arrays.
Tree = Any


def train(optimiser: str, loss: Loss, parameters: Tree, *batch: Tree) -> Built:
    """The step of the named optimiser on ``loss(parameters, *batch)``, with arguments for it.

    Args:
        optimiser: a key of ``OPTIMISERS``.
        loss: returns a scalar.
        parameters: tree of ``Input``.
        batch: further arguments of the loss, trees of ``Input``.
    """
    update, state = OPTIMISERS[optimiser]

    def step(parameters: Tree, state: Tree, *batch: jax.Array) -> tuple[jax.Array, Tree, Tree]:
        value, gradient = jax.value_and_grad(loss)(parameters, *batch)
        return value, *update(parameters, gradient, state)

    return step, (parameters, state(parameters), *batch)


def clip_by_global_norm(gradient: Tree, limit: float) -> Tree:
    """The gradient scaled down so that its norm over all leaves is at most the limit."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(leaf.astype(jnp.float32))) for leaf in jax.tree.leaves(gradient)))
    factor = jnp.minimum(1.0, limit / (norm + 1e-6))
    return jax.tree.map(lambda leaf: (leaf * factor).astype(leaf.dtype), gradient)


def sgd(parameters: Tree, gradient: Tree, state: Tree) -> tuple[Tree, Tree]:
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), state


def momentum(parameters: Tree, gradient: Tree, velocity: Tree) -> tuple[Tree, Tree]:
    """Nesterov momentum with coupled weight decay, as convolution nets are trained."""
    gradient = jax.tree.map(lambda p, g: g + 1e-4 * p, parameters, gradient)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradient)
    return jax.tree.map(lambda p, v, g: p - 0.1 * (g + 0.9 * v), parameters, velocity, gradient), velocity


def rmsprop(parameters: Tree, gradient: Tree, square: Tree) -> tuple[Tree, Tree]:
    square = jax.tree.map(lambda s, g: 0.9 * s + 0.1 * g * g, square, gradient)
    updated = jax.tree.map(lambda p, s, g: p - 1e-3 * g / (jnp.sqrt(s) + 1e-7), parameters, square, gradient)
    return updated, square


def adagrad(parameters: Tree, gradient: Tree, square: Tree) -> tuple[Tree, Tree]:
    square = jax.tree.map(lambda s, g: s + g * g, square, gradient)
    return jax.tree.map(lambda p, s, g: p - 1e-2 * g * jax.lax.rsqrt(s), parameters, square, gradient), square


def adam(parameters: Tree, gradient: Tree, state: Tree) -> tuple[Tree, Tree]:
    """Adam (Kingma & Ba 2015) with bias correction."""
    mean, square, count = state
    count = count + 1.0
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)

    def moved(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        return p - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(moved, parameters, mean, square), (mean, square, count)


def adamw(parameters: Tree, gradient: Tree, state: Tree) -> tuple[Tree, Tree]:
    """Adam with decoupled weight decay, a warm-up and a clipped gradient, as language models are trained."""
    mean, square, count = state
    gradient = clip_by_global_norm(gradient, 1.0)
    count = count + 1.0
    rate = 3e-4 * jnp.minimum(count / 1000.0, jax.lax.rsqrt(count / 1000.0))
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * jnp.square(g), square, gradient)

    def moved(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        adapted = (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.95**count)) + 1e-8)
        return (p - rate * (adapted + 0.1 * p)).astype(p.dtype)

    return jax.tree.map(moved, parameters, mean, square), (mean, square, count)


def _like(parameters: Tree, make: Callable[[Input], Input]) -> Tree:
    return jax.tree.map(make, parameters)


def _velocity(parameters: Tree) -> Tree:
    return _like(parameters, lambda p: normal(p.shape, scale=1e-3, dtype=p.dtype))


def _square(parameters: Tree) -> Tree:
    return _like(parameters, lambda p: uniform(p.shape, 1e-6, 1e-4, dtype=p.dtype))


def _moments(parameters: Tree) -> Tree:
    return _velocity(parameters), _square(parameters), constant(10.0)


OPTIMISERS: dict[str, tuple[Callable[[Tree, Tree, Tree], tuple[Tree, Tree]], Callable[[Tree], Tree]]] = {
    "sgd": (sgd, lambda parameters: ()),
    "momentum": (momentum, _velocity),
    "rmsprop": (rmsprop, _square),
    "adagrad": (adagrad, _square),
    "adam": (adam, _moments),
    "adamw": (adamw, _moments),
}
