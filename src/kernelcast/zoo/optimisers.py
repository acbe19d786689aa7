"""Optimiser updates alone, over the parameter trees of typical layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo import steps
from kernelcast.zoo.inputs import constant, normal, uniform
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, clip_by_global_norm


def _layers(features: int, dtype: str = "float32") -> Tree:
    return {
        "w1": normal((features, 2 * features), scale=0.05, dtype=dtype),
        "b1": normal((2 * features,), scale=0.05, dtype=dtype),
        "w2": normal((2 * features, features), scale=0.05, dtype=dtype),
        "b2": normal((features,), scale=0.05, dtype=dtype),
        "word": normal((3 * features, features), scale=0.05, dtype=dtype),
    }


def update(*, optimiser: str, features: int) -> Built:
    """One update of an optimiser of ``steps``, the gradient given."""
    apply, state = steps.OPTIMISERS[optimiser]
    parameters = _layers(features)
    return apply, (parameters, parameters, state(parameters))


def adafactor(*, features: int) -> Built:
    """Factored second moments and relative step sizes (Shazeer & Stern 2018)."""

    def apply(parameters: Tree, gradient: Tree, rows: Tree, columns: Tree) -> tuple[Tree, Tree, Tree]:
        square = jax.tree.map(lambda g: jnp.square(g) + 1e-30, gradient)
        rows = jax.tree.map(lambda r, s: 0.99 * r + 0.01 * s.mean(-1), rows, square)
        columns = jax.tree.map(lambda c, s: 0.99 * c + 0.01 * s.mean(-2), columns, square)

        def moved(p: jax.Array, g: jax.Array, r: jax.Array, c: jax.Array) -> jax.Array:
            scaled = g * lax.rsqrt(r / r.mean())[:, None] * lax.rsqrt(c)[None]
            scaled = scaled / jnp.maximum(1.0, jnp.sqrt(jnp.square(scaled).mean()))
            return p - 1e-2 * jnp.maximum(1e-3, jnp.sqrt(jnp.square(p).mean())) * scaled

        return jax.tree.map(moved, parameters, gradient, rows, columns), rows, columns

    parameters = {name: p for name, p in _layers(features).items() if len(p.shape) == 2}
    rows = {name: uniform(p.shape[:1], 1e-4, 1e-2) for name, p in parameters.items()}
    columns = {name: uniform(p.shape[1:], 1e-4, 1e-2) for name, p in parameters.items()}
    return apply, (parameters, parameters, rows, columns)


def lamb(*, features: int) -> Built:
    """Adam with a trust ratio per layer (You et al. 2020)."""

    def apply(parameters: Tree, gradient: Tree, mean: Tree, square: Tree) -> tuple[Tree, Tree, Tree]:
        gradient = clip_by_global_norm(gradient, 1.0)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)

        def moved(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
            direction = m / (jnp.sqrt(s) + 1e-6) + 0.01 * p
            size, length = jnp.linalg.norm(p), jnp.linalg.norm(direction)
            ratio = jnp.where((size > 0) & (length > 0), size / length, 1.0)
            return p - 1e-3 * ratio * direction

        return jax.tree.map(moved, parameters, mean, square), mean, square

    parameters = _layers(features)
    square = {name: uniform(p.shape, 1e-6, 1e-4) for name, p in parameters.items()}
    return apply, (parameters, parameters, parameters, square)


def shampoo_statistics(*, features: int) -> Built:
    """Kronecker factors and a coupled Newton iteration for their inverse root (Gupta et al. 2018)."""

    def apply(w: jax.Array, gradient: jax.Array, left: jax.Array) -> tuple[jax.Array, jax.Array]:
        left = 0.95 * left + 0.05 * gradient @ gradient.T
        damped = left + 1e-3 * jnp.trace(left) / features * jnp.eye(features)
        scale = 1.0 / jnp.linalg.norm(damped)
        y, z = damped * scale, jnp.eye(features)
        for _ in range(4):
            t = 1.5 * jnp.eye(features) - 0.5 * z @ y
            y, z = y @ t, t @ z
        return w - 0.01 * jnp.sqrt(scale) * z @ gradient, left

    w = normal((features, features), scale=0.05)
    return apply, (w, w, constant(0.01, (features, features)))


def mixed_precision(*, features: int) -> Built:
    """Unscales half-precision gradients, skips the step if one is not finite, keeps f32 masters."""

    def apply(master: Tree, gradient: Tree, scale: jax.Array) -> tuple[Tree, Tree, jax.Array]:
        wide = jax.tree.map(lambda g: g.astype(jnp.float32) / scale, gradient)
        finite = jnp.all(jnp.stack([jnp.isfinite(g).all() for g in jax.tree.leaves(wide)]))
        moved = jax.tree.map(lambda p, g: jnp.where(finite, p - 0.01 * jnp.sign(g), p), master, wide)
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), moved)
        return moved, half, jnp.where(finite, scale * 1.001, scale * 0.5)

    return apply, (_layers(features), _layers(features, "float16"), constant(1024.0))
