"""Language models: BERT, GPT, mixture of experts, encoder–decoder for translation."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import indices, normal, weight
from kernelcast.zoo.layers import (
    attention,
    causal_mask,
    cross_entropy,
    dense,
    dense_parameters,
    layer_norm,
    merge_heads,
    norm_parameters,
    split_heads,
)
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def _attention_parameters(features: int, *, dtype: str = "float32") -> Tree:
    return {name: dense_parameters(features, features, dtype=dtype) for name in ("q", "k", "v", "out")}


def _attend(p: Tree, x: jax.Array, context: jax.Array, heads: int, mask: jax.Array | None) -> jax.Array:
    q = split_heads(dense(p["q"], x), heads)
    k, v = (split_heads(dense(p[name], context), heads) for name in ("k", "v"))
    return dense(p["out"], merge_heads(attention(q, k, v, mask)))


def bert(
    *,
    batch: int,
    length: int,
    features: int,
    heads: int,
    vocabulary: int = 1000,
    dtype: str = "float32",
    optimiser: str | None = None,
) -> Built:
    """Embeddings, one post-norm encoder layer and the masked-word head (Devlin et al. 2019)."""

    def forward(p: Tree, tokens: jax.Array, kinds: jax.Array) -> jax.Array:
        x = p["word"][tokens] + p["position"][None] + p["kind"][kinds]
        x = layer_norm(p["embedding_norm"], x)
        mask = (tokens != 0)[:, None, None, :]
        x = layer_norm(p["norm1"], x + _attend(p["attention"], x, x, heads, mask))
        hidden = jax.nn.gelu(dense(p["up"], x), approximate=False)
        x = layer_norm(p["norm2"], x + dense(p["down"], hidden))
        head = layer_norm(p["head_norm"], jax.nn.gelu(dense(p["head"], x), approximate=False))
        return head @ p["word"].T

    def loss(p: Tree, tokens: jax.Array, kinds: jax.Array, labels: jax.Array) -> jax.Array:
        return cross_entropy(forward(p, tokens, kinds), labels)

    parameters = {
        "word": normal((vocabulary, features), scale=0.05, dtype=dtype),
        "position": normal((length, features), scale=0.05, dtype=dtype),
        "kind": normal((2, features), scale=0.05, dtype=dtype),
        "attention": _attention_parameters(features, dtype=dtype),
        "up": dense_parameters(features, 4 * features, dtype=dtype),
        "down": dense_parameters(4 * features, features, dtype=dtype),
        "head": dense_parameters(features, features, dtype=dtype),
    }
    for name in ("embedding_norm", "norm1", "norm2", "head_norm"):
        parameters[name] = norm_parameters(features, dtype=dtype)
    tokens, kinds = indices((batch, length), below=vocabulary), indices((batch, length), below=2)
    if optimiser is None:
        return forward, (parameters, tokens, kinds)
    return train(optimiser, loss, parameters, tokens, kinds, indices((batch, length), below=vocabulary))


def gpt(
    *,
    batch: int,
    length: int,
    features: int,
    heads: int,
    vocabulary: int = 800,
    dtype: str = "float32",
    optimiser: str | None = None,
) -> Built:
    """One pre-norm decoder layer with tied embeddings (Radford et al. 2019)."""

    def forward(p: Tree, tokens: jax.Array) -> jax.Array:
        x = p["word"][tokens] + p["position"]
        h = layer_norm(p["norm1"], x)
        q, k, v = jnp.split(dense(p["qkv"], h), 3, -1)
        q, k, v = (split_heads(t, heads) for t in (q, k, v))
        x = x + dense(p["out"], merge_heads(attention(q, k, v, causal_mask(length))))
        x = x + dense(p["down"], jax.nn.gelu(dense(p["up"], layer_norm(p["norm2"], x))))
        return layer_norm(p["norm3"], x) @ p["word"].T

    def loss(p: Tree, tokens: jax.Array) -> jax.Array:
        return cross_entropy(forward(p, tokens)[:, :-1], tokens[:, 1:])

    parameters = {
        "word": normal((vocabulary, features), scale=0.05, dtype=dtype),
        "position": normal((length, features), scale=0.05, dtype=dtype),
        "qkv": dense_parameters(features, 3 * features, dtype=dtype),
        "out": dense_parameters(features, features, dtype=dtype),
        "up": dense_parameters(features, 4 * features, dtype=dtype),
        "down": dense_parameters(4 * features, features, dtype=dtype),
    }
    for name in ("norm1", "norm2", "norm3"):
        parameters[name] = norm_parameters(features, dtype=dtype)
    tokens = indices((batch, length), below=vocabulary)
    if optimiser is None:
        return forward, (parameters, tokens)
    return train(optimiser, loss, parameters, tokens)


def mixture_of_experts(
    *, tokens: int, features: int, experts: int, chosen: int, optimiser: str | None = None
) -> Built:
    """A switch layer: top-k routing into expert slots of fixed capacity, and a balance loss (Fedus 2021)."""
    capacity = 2 * chosen * tokens // experts

    def forward(p: Tree, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        probabilities = jax.nn.softmax(x @ p["router"])
        gates, routes = lax.top_k(probabilities, chosen)
        gates = gates / gates.sum(-1, keepdims=True)
        assigned = jax.nn.one_hot(routes.reshape(-1), experts, dtype=jnp.float32)
        slot = ((jnp.cumsum(assigned, 0) - 1) * assigned).sum(-1).astype(jnp.int32)
        kept = (slot < capacity)[:, None] * jax.nn.one_hot(slot, capacity, dtype=jnp.float32)
        dispatch = assigned[:, :, None] * kept[:, None, :]
        repeated = jnp.repeat(x, chosen, axis=0)
        inside = jnp.einsum("tec,td->ecd", dispatch, repeated)
        hidden = jax.nn.gelu(jnp.einsum("ecd,edh->ech", inside, p["up"]))
        outside = jnp.einsum("ech,ehd->ecd", hidden, p["down"])
        mixed = jnp.einsum("tec,ecd->td", dispatch * gates.reshape(-1)[:, None, None], outside)
        balance = experts * jnp.sum(probabilities.mean(0) * assigned.mean(0))
        return x + mixed.reshape(tokens, chosen, features).sum(1), balance

    def loss(p: Tree, x: jax.Array, target: jax.Array) -> jax.Array:
        y, balance = forward(p, x)
        return jnp.square(y - target).mean() + 0.01 * balance

    parameters = {
        "router": weight(features, experts),
        "up": normal((experts, features, 2 * features), scale=features**-0.5),
        "down": normal((experts, 2 * features, features), scale=(2 * features) ** -0.5),
    }
    x = normal((tokens, features))
    return (forward, (parameters, x)) if optimiser is None else train(optimiser, loss, parameters, x, x)


def encoder_decoder(
    *, batch: int, length: int, features: int, heads: int, optimiser: str | None = None, vocabulary: int = 600
) -> Built:
    """Transformer for translation: one encoder and one decoder layer, sinusoidal positions."""

    def positions() -> jax.Array:
        half = features // 2
        angles = jnp.arange(length)[:, None] / 10000.0 ** (jnp.arange(half) / half)
        return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)

    def feed_forward(p: Tree, x: jax.Array) -> jax.Array:
        return dense(p["down"], jax.nn.relu(dense(p["up"], x)))

    def forward(p: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
        x = p["word"][source] * math.sqrt(features) + positions()
        padding = (source > 0)[:, None, None, :]
        h = layer_norm(p["norm1"], x)
        x = x + _attend(p["self"], h, h, heads, padding)
        x = x + feed_forward(p["encoder"], layer_norm(p["norm2"], x))
        y = p["word"][target] * math.sqrt(features) + positions()
        h = layer_norm(p["norm3"], y)
        y = y + _attend(p["causal"], h, h, heads, causal_mask(length))
        y = y + _attend(p["cross"], layer_norm(p["norm4"], y), x, heads, padding)
        y = y + feed_forward(p["decoder"], layer_norm(p["norm5"], y))
        return y @ p["word"].T

    def loss(p: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
        log_probabilities = jax.nn.log_softmax(forward(p, source, target))
        smoothed = 0.9 * jax.nn.one_hot(target, vocabulary) + 0.1 / vocabulary
        return -jnp.sum(smoothed * log_probabilities, -1).mean()

    layer = {"up": dense_parameters(features, 4 * features), "down": dense_parameters(4 * features, features)}
    parameters: Tree = {
        "word": normal((vocabulary, features), scale=0.05),
        "encoder": layer,
        "decoder": layer,
    }
    parameters |= {name: _attention_parameters(features) for name in ("self", "causal", "cross")}
    parameters |= {f"norm{number}": norm_parameters(features) for number in range(1, 6)}
    tokens = indices((batch, length), below=vocabulary)
    if optimiser is None:
        return forward, (parameters, tokens, tokens)
    return train(optimiser, loss, parameters, tokens, tokens)
