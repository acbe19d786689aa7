"""Programs whose time is memory traffic: where fusion decides, and where tuning gains most."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import normal, weight
from kernelcast.zoo.layers import (
    attention,
    causal_mask,
    group_norm,
    merge_heads,
    norm_parameters,
    split_heads,
)
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree


def nbody(*, bodies: int) -> Built:
    """Softened gravity between all pairs."""

    def forces(x: jax.Array, y: jax.Array) -> jax.Array:
        difference = x[:, None] - y[None]
        distance = jnp.sqrt(jnp.sum(difference * difference, -1) + 1e-3)
        return jnp.sum(difference / distance[..., None] ** 3, 1)

    return forces, (normal((bodies, 3)), normal((bodies, 3)))


def rbf(*, points: int, features: int) -> Built:
    """Radial basis functions: kernel matrix times weights, and its column sums."""

    def evaluate(x: jax.Array, y: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        kernel = jnp.exp(-jnp.sum(jnp.square(x[:, None] - y[None]), -1))
        return kernel @ w, kernel.sum(0)

    # Distances stay moderate in any dimension: exp of a large one is denormal, which is slow and untypical.
    data = normal((points, features), scale=min(1.0, 4.0 / features**0.5))
    return evaluate, (data, data, normal((points, 8)))


def stencil(*, size: int, steps: int) -> Built:
    """Explicit heat steps with the five-point Laplacian and periodic borders."""

    def heat(x: jax.Array) -> jax.Array:
        for _ in range(steps):
            neighbours = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)
            x = x + 0.1 * (neighbours - 4 * x)
        return x

    return heat, (normal((size, size)),)


def groupnorm_silu(*, batch: int, size: int, channels: int) -> Built:
    def apply(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jax.nn.silu(group_norm(parameters, x, 8))

    return apply, (norm_parameters(channels), normal((batch, size, size, channels)))


def squared_differences(*, size: int) -> Built:
    """Sum of squared neighbour differences along the three axes of a volume."""

    def roughness(x: jax.Array) -> jax.Array:
        return sum((jnp.sum(jnp.square(jnp.diff(x, axis=axis))) for axis in range(3)), jnp.float32(0))

    return roughness, (normal((size, size, size)),)


def rmsnorm_rotary(*, rows: int, features: int) -> Built:
    """Root-mean-square norm followed by a rotary embedding."""

    def apply(x: jax.Array, scale: jax.Array, cosine: jax.Array, sine: jax.Array) -> jax.Array:
        y = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale
        a, b = jnp.split(y, 2, -1)
        return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)

    half = (features // 2,)
    return apply, (normal((rows, features)), normal((features,)), normal(half), normal(half))


def double_softmax(*, rows: int, columns: int) -> Built:
    """Softmax over each axis of one matrix, combined two ways."""

    def apply(x: jax.Array, bias: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = jax.nn.softmax(x + bias, -1)
        z = jax.nn.softmax(x + bias, 0)
        return y * z, (y + z).sum(0)

    return apply, (normal((rows, columns)), normal((rows, columns)))


def layernorm_backward(*, rows: int, features: int) -> Built:
    def loss(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return jnp.sum(jnp.tanh((x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias) ** 2)

    inputs = (normal((rows, features)), normal((features,)), normal((features,)))
    return jax.grad(loss, (0, 1, 2)), inputs


def scan_gradient(*, steps: int, batch: int, features: int) -> Built:
    """Gradient through a scan: the backward loop reads what the forward loop stacked."""

    def loss(w: jax.Array, x: jax.Array, h: jax.Array) -> jax.Array:
        def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = jnp.tanh(h @ w + x)
            return h, h * jax.nn.sigmoid(x)

        last, outputs = lax.scan(step, h, x)
        return jnp.sum(jnp.square(last)) + jnp.sum(jnp.square(outputs))

    inputs = (weight(features, features), normal((steps, batch, features)), normal((batch, features)))
    return jax.grad(loss, (0, 1)), inputs


def transformer_train(*, batch: int, length: int, features: int, heads: int) -> Built:
    """One pre-norm transformer block with squared error and momentum."""

    def norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias

    def forward(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        h = norm(x, p["scale1"], p["bias1"])
        q, k, v = (split_heads(h @ p[name], heads) for name in ("query", "key", "value"))
        x = x + merge_heads(attention(q, k, v, causal_mask(length))) @ p["output"]
        h = norm(x, p["scale2"], p["bias2"])
        return x + jax.nn.gelu(h @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]

    def step(p: Tree, velocity: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Tree, Tree]:
        value, gradient = jax.value_and_grad(lambda p: jnp.mean((forward(p, x) - y) ** 2))(p)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradient)
        return value, jax.tree.map(lambda p, v: p - 0.01 * v, p, velocity), velocity

    hidden = 4 * features
    square = {name: weight(features, features) for name in ("query", "key", "value", "output")}
    vectors = {name: normal((features,), scale=0.05) for name in ("bias1", "bias2", "down_bias")}
    scales = {name: normal((features,), mean=1.0, scale=0.05) for name in ("scale1", "scale2")}
    feed_forward = {
        "up": weight(features, hidden),
        "up_bias": normal((hidden,), scale=0.05),
        "down": weight(hidden, features),
    }
    parameters = square | vectors | scales | feed_forward
    velocity = {name: normal(p.shape, scale=1e-3) for name, p in parameters.items()}
    data = normal((batch, length, features))
    return step, (parameters, velocity, data, data)
