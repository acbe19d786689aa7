"""Linear algebra written in array operations: iterations, factorisations and solves without library calls."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import indices, normal, uniform, weight
from kernelcast.zoo.program import Built


def power_iteration(*, rows: int, columns: int, steps: int) -> Built:
    """Leading singular pair of a matrix, as spectral normalisation finds it."""

    def iterate(a: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        for _ in range(steps):
            u = a @ v
            v = a.T @ (u / jnp.linalg.norm(u))
            v = v / jnp.linalg.norm(v)
        return jnp.linalg.norm(a @ v), v

    return iterate, (normal((rows, columns)), normal((columns,)))


def conjugate_gradient(*, size: int, steps: int) -> Built:
    """Solves the five-point Poisson equation without a matrix."""

    def solve(b: jax.Array) -> tuple[jax.Array, jax.Array]:
        def apply(x: jax.Array) -> jax.Array:
            p = jnp.pad(x, 1)
            return 4.1 * x - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

        def step(_: int, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            x, r, p, square = state
            image = apply(p)
            alpha = square / jnp.vdot(p, image)
            x, r = x + alpha * p, r - alpha * image
            following = jnp.vdot(r, r)
            return x, r, r + following / square * p, following

        x, _, _, square = lax.fori_loop(0, steps, step, (jnp.zeros_like(b), b, b, jnp.vdot(b, b)))
        return x, jnp.sqrt(square)

    return solve, (normal((size, size)),)


def householder_qr(*, rows: int, columns: int) -> Built:
    """Triangular factor and transformed right-hand side by Householder reflections in a loop."""

    def factor(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        place = jnp.arange(rows)

        def step(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            a, b = state
            column = jnp.where(place >= k, lax.dynamic_slice_in_dim(a, k, 1, 1)[:, 0], 0.0)
            pivot = lax.dynamic_index_in_dim(column, k, keepdims=False)
            norm = jnp.sqrt(jnp.sum(jnp.square(column)))
            v = column + jnp.where(place == k, jnp.copysign(norm, pivot), 0.0)
            scale = 2.0 / (jnp.sum(jnp.square(v)) + 1e-30)
            return a - scale * jnp.outer(v, v @ a), b - scale * v * (v @ b)

        return lax.fori_loop(0, columns, step, (a, b))

    return factor, (normal((rows, columns)), normal((rows,)))


def column_cholesky(*, size: int) -> Built:
    """Right-looking Cholesky factor, one column of a symmetric matrix per iteration."""

    def factor(x: jax.Array) -> jax.Array:
        a = x @ x.T / size + jnp.eye(size)
        place = jnp.arange(size)

        def step(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            a, lower = state
            column = lax.dynamic_slice_in_dim(a, k, 1, 1)[:, 0]
            pivot = lax.dynamic_index_in_dim(column, k, keepdims=False)
            column = jnp.where(place >= k, column * lax.rsqrt(pivot), 0.0)
            lower = lax.dynamic_update_slice_in_dim(lower, column[:, None], k, 1)
            return a - jnp.outer(column, column), lower

        return lax.fori_loop(0, size, step, (a, jnp.zeros_like(a)))[1]

    return factor, (normal((size, size)),)


def newton_schulz(*, size: int, steps: int, dtype: str = "float32") -> Built:
    """Orthogonalises a momentum matrix by a quintic iteration, as Muon does (Jordan 2024)."""

    def orthogonalise(g: jax.Array, momentum: jax.Array) -> tuple[jax.Array, jax.Array]:
        momentum = 0.95 * momentum + g
        x = (g + 0.95 * momentum) / (jnp.linalg.norm(g.astype(jnp.float32)).astype(g.dtype) + 1e-7)
        for _ in range(steps):
            a = x @ x.T
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return x, momentum

    return orthogonalise, (weight(size, size, dtype=dtype), weight(size, size, dtype=dtype))


def sparse_product(*, rows: int, nonzeros: int, columns: int) -> Built:
    """Coordinate-format sparse matrix times a dense one, and the PageRank step built on it."""

    def multiply(values: jax.Array, row: jax.Array, column: jax.Array, x: jax.Array) -> jax.Array:
        product = jax.ops.segment_sum(values[:, None] * x[column], row, rows)
        damped = 0.85 * product + 0.15 / rows
        return damped / jnp.abs(damped).sum(0)

    places = indices((nonzeros,), below=rows)
    return multiply, (uniform((nonzeros,), 0.0, 1.0), places, places, normal((rows, columns)))


def low_rank_adaptation(*, rows: int, features: int, rank: int, dtype: str = "float32") -> Built:
    """A frozen int8 weight dequantised by blocks, plus a low-rank update (Dettmers et al. 2023)."""
    block = 64

    def apply(x: jax.Array, packed: jax.Array, scale: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        wide = packed.reshape(features, features // block, block).astype(jnp.float32) * scale[..., None]
        w = wide.reshape(features, features).astype(x.dtype)
        return x @ w + 0.5 * (x @ a) @ b

    packed = indices((features, features), below=100, dtype="int8")
    scale = uniform((features, features // block), 1e-4, 1e-3)
    inputs = (normal((rows, features), dtype=dtype), packed, scale)
    return apply, (*inputs, weight(features, rank, dtype=dtype), weight(rank, features, dtype=dtype))


def quantised_dense(*, rows: int, features: int) -> Built:
    """Activations quantised per row to int8, integer product, dequantised, bias and activation."""

    def apply(x: jax.Array, w: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        step = jnp.max(jnp.abs(x), -1, keepdims=True) / 127.0
        q = jnp.clip(jnp.round(x / step), -127, 127).astype(jnp.int8)
        product = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        return jax.nn.gelu(product.astype(jnp.float32) * step * scale + bias)

    w = indices((features, features), below=127, dtype="int8")
    return apply, (normal((rows, features)), w, uniform((features,), 1e-4, 1e-3), normal((features,)))
