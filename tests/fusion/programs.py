"""Small real programs whose plans the tests impose: each has something that fusion could get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Made = tuple[Callable[..., Any], tuple[Any, ...]]


def softmax_twice(x, bias):
    rows, columns = jax.nn.softmax(x + bias, -1), jax.nn.softmax(x + bias, 0)
    return rows * columns, (rows + columns).sum(0)


def norm_backward(x, gain, bias):
    def loss(x, gain, bias):
        centred = x - x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return jnp.sum(jnp.tanh(centred * scale * gain + bias) ** 2)

    return jax.grad(loss, (0, 1, 2))(x, gain, bias)


def n_body(x, y):
    distance = x[:, None] - y[None]
    radius = jnp.sqrt(jnp.sum(distance * distance, -1) + 1e-3)
    return jnp.sum(distance / radius[..., None] ** 3, 1)


def stencil(x):
    for _ in range(2):
        around = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)
        x = x + 0.1 * (around - 4 * x)
    return x


def adam(parameter, gradient, first, second):
    gradient = gradient / jnp.maximum(jnp.sqrt(jnp.sum(gradient * gradient)), 1.0)
    first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient * gradient
    return parameter - 1e-3 * first / (jnp.sqrt(second) + 1e-8), first, second


def attention(x, w, v):
    query, key, value = jnp.split(x @ w, 3, -1)
    scores = jnp.where(jnp.tril(jnp.ones((16, 16), bool)), query @ key.T / 4, -1e9)
    return jax.nn.gelu(jax.nn.softmax(scores, -1) @ value @ v) + x


def convolutions(x, w):
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = jax.nn.relu((y - y.mean((0, 1, 2))) * jax.lax.rsqrt(y.var((0, 1, 2)) + 1e-5))
    pooled = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return pooled, y.sum((1, 2))


def scan_update(x, v):
    """Reads the old state after the new one was made from it."""

    def body(carry, i):
        x, total = carry
        y = jnp.tanh(x) * 2 + 1
        updated = jax.lax.dynamic_update_slice(x, v * (i + 1.0), (i * 3,))
        return (updated, total + y * jnp.flip(updated)), y.sum()

    return jax.lax.scan(body, (x, jnp.zeros_like(x)), jnp.arange(8))


def scan_rolled(x, v):
    def body(carry, i):
        x, total = carry
        y = jnp.sin(x)
        updated = jax.lax.dynamic_update_slice(x, v + y[:4] * 0.5, (i * 3,))
        return (updated, total + (y * 3 + jnp.roll(y, 1)) * updated.sum()), None

    return jax.lax.scan(body, (x, jnp.zeros_like(x)), jnp.arange(8))


def swap(x):
    def body(_, carry):
        a, b = carry
        return jnp.tanh(b) * 0.5, jnp.sin(a) + jnp.tanh(b) * 0.25

    return jax.lax.fori_loop(0, 5, body, (x, x * 2))


def state_reduced(x):
    """The next state is computed again where the old one is reduced with it."""

    def body(_, carry):
        x, total = carry
        y = jnp.tanh(x) * 1.1
        return y, total + (y * jnp.flip(x)).sum() + y.max()

    return jax.lax.fori_loop(0, 6, body, (x, jnp.float32(0)))


def update_then_read(p, v):
    y = jnp.sin(p)
    updated = jax.lax.dynamic_update_slice(p, v * y[:4], (0,))
    return updated, y * jnp.flip(y) * updated.sum()


def nested_loops(x, v):
    def inner(carry, j):
        a, b = carry
        y = jnp.sin(a) * jnp.tanh(b)
        updated = jax.lax.dynamic_update_slice(a, v * y[:4], (j * 2,))
        return (updated, b + y * jnp.flip(y)), y.sum()

    def outer(carry, i):
        (a, b), sums = jax.lax.scan(inner, carry, jnp.arange(3))
        z = jnp.cos(a) * i
        a = a.at[i].add(z.sum())
        return (a, b * 0.9 + z * jnp.roll(a, 1)), sums.sum()

    return jax.lax.scan(outer, (x, jnp.ones_like(x)), jnp.arange(4))


def branches(x, v):
    y = jnp.sin(x)
    result = jax.lax.cond(
        x.sum() > 0,
        lambda a: (jnp.tanh(a * y) + jnp.flip(a), a.at[:4].set(v)),
        lambda a: (a * jnp.cos(y), a.at[3:7].set(v * 2)),
        x,
    )
    return result, jnp.exp(-result[0] * y).sum(), y * jnp.flip(y) + result[1]


def branches_in_loop(x):
    def body(carry, i):
        a, b = carry
        c, d = jax.lax.cond(
            i % 2 == 0,
            lambda a, b: (jnp.sin(a) * b, a + jnp.flip(b)),
            lambda a, b: (b.at[i].set(a.sum()), jnp.cos(b) * a),
            a, b,
        )  # fmt: skip
        return (c + 0.1 * b, d * 0.5 + jnp.flip(a)), a.sum()

    return jax.lax.scan(body, (x, jnp.ones_like(x)), jnp.arange(6))


def scatters(x, index, update):
    y = jnp.sin(x)
    added, written = y.at[index].add(jnp.cos(update)), x.at[index].set(update * 2)
    return added * written, (y * jnp.roll(y, 1)).sum(), added.sum()


def embedding_step(table, index, w):
    def loss(table, w):
        return jnp.mean(jax.nn.log_softmax(jnp.tanh(table[index] @ w))[:, 0])

    gradients = jax.grad(loss, (0, 1))(table, w)
    return jax.tree.map(lambda a, b: a - 0.1 * b, (table, w), gradients)


def recurrent_gradient(w, x, h):
    def run(w):
        def body(h, u):
            h = jnp.tanh(u @ w + h * 0.5)
            return h, (h * 2, h.sum())

        return sum(jnp.sum(z**2) for z in jax.tree.leaves(jax.lax.scan(body, h, x)))

    return jax.grad(run)(w)


def newton(x):
    def more(carry):
        return (carry[1] > 1e-3) & (carry[2] < 20)

    def body(carry):
        root = carry[0]
        return root - (root**2 - x) / (2 * root), jnp.abs(root**2 - x).max(), carry[2] + 1

    return jax.lax.while_loop(more, body, (x, jnp.float32(1), 0))[0]


def cache_update(cache, key, start):
    def body(t, carry):
        cache, total = carry
        cache = jax.lax.dynamic_update_slice(cache, jnp.tanh(key * t)[None], (start + t, 0))
        return cache, total + cache.sum(0) * 0.1

    return jax.lax.fori_loop(0, 6, body, (cache, jnp.zeros_like(key)))


def sorting(x):
    order = jnp.argsort(x, -1)
    taken = jnp.take_along_axis(x, order, -1)
    return taken, jnp.cumsum(taken, 0), jax.lax.top_k(x * 2, 3), jnp.argmax(x, 1)


def integers(a, b):
    return (a ^ b) << 3, (a // jnp.maximum(b, 1)).sum(), jnp.where(a > b, a, b).astype(jnp.bfloat16) * 2


def halves(a, b):
    return jax.nn.softmax((a @ b).astype(jnp.float32)).astype(jnp.bfloat16) * a.sum()


def complex_numbers(a):
    return (jnp.exp(1j * a) * a.T).real.T + jnp.abs(a + 2j)


def constant_table(x):
    return x * jnp.asarray(np.arange(64, dtype="f").reshape(8, 8)) + jnp.roll(x, 1, 0) * 2


def nothing_much(x):
    return x[:0] * 2, x.sum(), jnp.float32(3.0)


def random_state(key, x):
    """The next state is a view of what another kernel computes."""

    def body(carry, _):
        key, x = carry
        key, now = jax.random.split(key)
        return (key, x + jax.random.normal(now, x.shape) * 0.1), x.sum()

    return jax.lax.scan(body, (key, x), None, length=4)


def segment_means(x, segment):
    """The zeros that a scatter overwrites are also used elsewhere."""
    rectified = jnp.maximum(x, jnp.zeros_like(x))
    sums = jnp.zeros_like(x).at[segment].add(rectified)
    counts = jnp.zeros(x.shape[0]).at[segment].add(1.0)
    return sums / jnp.maximum(counts, 1.0)[:, None] - rectified


def programs() -> dict[str, Made]:
    """Name to function and example arguments. A name that ends in ``donated`` gives away argument 0."""
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype("float32")

    x, v = normal(64), normal(4)
    weights = normal(16, 48) * 0.3
    made: dict[str, Made] = {
        "softmax_twice": (softmax_twice, (normal(64, 128), normal(128))),
        "norm_backward": (norm_backward, (normal(64, 128), normal(128), normal(128))),
        "n_body": (n_body, (normal(48, 3), normal(48, 3))),
        "stencil": (stencil, (normal(24, 24),)),
        "adam": (adam, (*(normal(64, 64) for _ in range(3)), np.abs(normal(64, 64)))),
        "attention": (attention, (normal(16, 16), weights, normal(16, 16))),
        "convolutions": (convolutions, (normal(2, 8, 8, 4), normal(3, 3, 4, 8))),
        "scan_update": (scan_update, (x, v)),
        "scan_update_donated": (scan_update, (x, v)),
        "scan_rolled": (scan_rolled, (x, v)),
        "swap": (swap, (x,)),
        "state_reduced": (state_reduced, (x,)),
        "update_then_read": (update_then_read, (x, v)),
        "update_then_read_donated": (update_then_read, (x, v)),
        "nested_loops": (nested_loops, (x, v)),
        "branches": (branches, (x, v)),
        "branches_in_loop": (branches_in_loop, (x,)),
        "scatters": (scatters, (normal(32, 8), np.array([3, 1, 7, 30, 3], "int32"), normal(5, 8))),
        "embedding_step": (
            embedding_step,
            (normal(50, 16), np.arange(12, dtype="int32") * 3, normal(16, 16)),
        ),
        "recurrent_gradient": (
            recurrent_gradient,
            (normal(16, 16) * 0.1, normal(10, 4, 16), normal(4, 16)),
        ),
        "newton": (newton, (np.abs(normal(16, 16)) + 1,)),
        "cache_update": (cache_update, (normal(32, 64), normal(64), np.int32(3))),
        "sorting": (sorting, (normal(16, 32),)),
        "integers": (
            integers,
            (np.arange(64, dtype="int32").reshape(8, 8), np.arange(64, dtype="int32").reshape(8, 8)[::-1]),
        ),
        "halves": (halves, (normal(16, 32).astype(jnp.bfloat16), normal(32, 16).astype(jnp.bfloat16))),
        "complex_numbers": (complex_numbers, (normal(8, 8),)),
        "constant_table": (constant_table, (normal(8, 8),)),
        "random_state": (random_state, (np.array([1, 2], "uint32"), normal(8))),
        "segment_means": (segment_means, (normal(12, 8), np.arange(12, dtype="int32") % 5)),
        "nothing_much": (nothing_much, (normal(8),)),
    }
    return made
