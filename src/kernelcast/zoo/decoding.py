"""Llama layers, and what happens while text is decoded: caches, beams, sampling."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import constant, indices, normal, random_key, uniform, weight
from kernelcast.zoo.layers import (
    attention,
    causal_mask,
    merge_heads,
    rms_norm,
    split_heads,
)
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def _rotate(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Rotary position embedding of ``batch head length depth`` (Su et al. 2021)."""
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-jnp.arange(half) / half)
    angles = positions[:, None] * frequencies
    cosine, sine = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)


def _llama_parameters(features: int, heads: int, groups: int, dtype: str) -> Tree:
    depth = features // heads
    hidden = features * 8 // 3
    return {
        "norm1": normal((features,), mean=1.0, scale=0.05, dtype=dtype),
        "norm2": normal((features,), mean=1.0, scale=0.05, dtype=dtype),
        "q": weight(features, features, dtype=dtype),
        "k": weight(features, groups * depth, dtype=dtype),
        "v": weight(features, groups * depth, dtype=dtype),
        "out": weight(features, features, dtype=dtype),
        "gate": weight(features, hidden, dtype=dtype),
        "up": weight(features, hidden, dtype=dtype),
        "down": weight(hidden, features, dtype=dtype),
    }


def _swiglu(p: Tree, x: jax.Array) -> jax.Array:
    return (jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]


def llama(
    *,
    batch: int,
    length: int,
    features: int,
    heads: int,
    groups: int,
    dtype: str = "float32",
    optimiser: str | None = None,
) -> Built:
    """One layer: RMS norm, rotary grouped-query attention, SwiGLU (Touvron et al. 2023)."""

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        h = rms_norm(p["norm1"], x)
        positions = jnp.arange(length, dtype=jnp.float32)
        q = _rotate(split_heads(h @ p["q"], heads), positions)
        k = _rotate(split_heads(h @ p["k"], groups), positions)
        v = split_heads(h @ p["v"], groups)
        k, v = (jnp.repeat(t, heads // groups, axis=1) for t in (k, v))
        x = x + merge_heads(attention(q, k, v, causal_mask(length))) @ p["out"]
        return x + _swiglu(p, rms_norm(p["norm2"], x))

    def loss(p: Tree, x: jax.Array, target: jax.Array) -> jax.Array:
        return jnp.square(forward(p, x) - target).astype(jnp.float32).mean()

    parameters = _llama_parameters(features, heads, groups, dtype)
    x = normal((batch, length, features), dtype=dtype)
    return (forward, (parameters, x)) if optimiser is None else train(optimiser, loss, parameters, x, x)


def llama_decode(*, batch: int, context: int, features: int, heads: int, groups: int) -> Built:
    """One token through one layer, its key and value written into the cache."""
    depth = features // heads

    def step(
        p: Tree, x: jax.Array, keys: jax.Array, values: jax.Array, position: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        h = rms_norm(p["norm1"], x[:, None])
        place = position[None].astype(jnp.float32)
        q = _rotate(split_heads(h @ p["q"], heads), place)
        k = _rotate(split_heads(h @ p["k"], groups), place)
        keys = lax.dynamic_update_slice(keys, k, (0, 0, position, 0))
        values = lax.dynamic_update_slice(values, split_heads(h @ p["v"], groups), (0, 0, position, 0))
        q = q.reshape(batch, groups, heads // groups, depth)
        scores = jnp.einsum("bgrd,bgtd->bgrt", q, keys) / math.sqrt(depth)
        scores = jnp.where(jnp.arange(context) <= position, scores, -jnp.inf)
        mixed = jnp.einsum("bgrt,bgtd->bgrd", jax.nn.softmax(scores, -1), values)
        x = x + mixed.reshape(batch, features) @ p["out"]
        return x + _swiglu(p, rms_norm(p["norm2"], x)), keys, values

    cache = normal((batch, groups, context, depth))
    parameters = _llama_parameters(features, heads, groups, "float32")
    position = constant(context // 2, dtype="int32")
    return step, (parameters, normal((batch, features)), cache, cache, position)


def beam_search(*, batch: int, beams: int, vocabulary: int, features: int, steps: int) -> Built:
    """Beam search over a small recurrent model, back-pointers resolved at the end."""

    def decode(p: Tree, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(carry: Tree, _: None) -> tuple[Tree, tuple[jax.Array, jax.Array]]:
            state, tokens, scores = carry
            state = jnp.tanh(p["word"][tokens] @ p["w"] + state @ p["u"])
            extended = jax.nn.log_softmax(state @ p["word"].T) + scores[..., None]
            scores, best = lax.top_k(extended.reshape(batch, beams * vocabulary), beams)
            parents, tokens = best // vocabulary, best % vocabulary
            state = jnp.take_along_axis(state, parents[..., None], 1)
            return (state, tokens, scores), (parents, tokens)

        tokens = jnp.zeros((batch, beams), jnp.int32)
        scores = jnp.where(jnp.arange(beams) == 0, 0.0, -1e9) * jnp.ones((batch, 1))
        (_, _, scores), (parents, tokens) = lax.scan(step, (state, tokens, scores), None, length=steps)

        def back(beam: jax.Array, link: Tree) -> tuple[jax.Array, jax.Array]:
            parent, token = link
            return jnp.take_along_axis(parent, beam, 1), jnp.take_along_axis(token, beam, 1)

        _, sequences = lax.scan(
            back, jnp.tile(jnp.arange(beams), (batch, 1)), (parents, tokens), reverse=True
        )
        return sequences, scores

    parameters = {
        "word": normal((vocabulary, features), scale=0.3),
        "w": weight(features, features),
        "u": weight(features, features),
    }
    return decode, (parameters, normal((batch, beams, features)))


def token_sampling(*, batch: int, vocabulary: int) -> Built:
    """Temperature, repetition penalty, top-k and nucleus cut, then a draw by the Gumbel trick."""

    def sample(
        logits: jax.Array, seen: jax.Array, temperature: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        penalised = jnp.where(seen > 0, jnp.where(logits > 0, logits / 1.2, logits * 1.2), logits)
        scaled = penalised / temperature[:, None]
        values, order = lax.top_k(scaled, 64)
        probabilities = jax.nn.softmax(values)
        outside = jnp.cumsum(probabilities, -1) - probabilities > 0.9
        noise = -jnp.log(-jnp.log(jax.random.uniform(key, values.shape, minval=1e-6, maxval=1.0)))
        choice = jnp.argmax(jnp.where(outside, -jnp.inf, values + noise), -1)
        return jnp.take_along_axis(order, choice[:, None], 1)[:, 0], jax.nn.logsumexp(scaled, -1)

    counts = indices((batch, vocabulary), below=3)
    return sample, (normal((batch, vocabulary), scale=2.0), counts, uniform((batch,), 0.5, 1.5), random_key())
