"""Layers that many zoo programs share, written as people write them in plain JAX.

Shapes: ``batch … feature`` for sequences, NHWC for images; weights have the outputs last.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import Input, constant, normal, weight


def dense(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return x @ parameters["w"] + parameters["b"]


def dense_parameters(inputs: int, outputs: int, *, dtype: str = "float32") -> dict[str, Input]:
    return {"w": weight(inputs, outputs, dtype=dtype), "b": normal((outputs,), scale=0.02, dtype=dtype)}


def layer_norm(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * parameters["scale"] + parameters["bias"]


def rms_norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    """Normalised in f32 whatever the input's type, as Llama does."""
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def batch_norm(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """With the batch's own moments, as in training."""
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    variance = jnp.square(x - mean).mean(axes)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * parameters["scale"] + parameters["bias"]


def batch_norm_inference(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """With stored moments."""
    factor = parameters["scale"] * lax.rsqrt(parameters["variance"] + 1e-5)
    return x * factor + (parameters["bias"] - parameters["mean"] * factor)


def group_norm(parameters: dict[str, jax.Array], x: jax.Array, groups: int) -> jax.Array:
    batch, height, width, channels = x.shape
    grouped = x.reshape(batch, height, width, groups, channels // groups)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    variance = grouped.var((1, 2, 4), keepdims=True)
    normalised = ((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    return normalised * parameters["scale"] + parameters["bias"]


def norm_parameters(features: int, *, dtype: str = "float32") -> dict[str, Input]:
    return {
        "scale": normal((features,), mean=1.0, scale=0.05, dtype=dtype),
        "bias": normal((features,), scale=0.02, dtype=dtype),
    }


def stored_norm_parameters(features: int, *, dtype: str = "float32") -> dict[str, Input]:
    """Of ``batch_norm_inference``."""
    moments = {
        "mean": normal((features,), scale=0.1, dtype=dtype),
        "variance": constant(0.5, (features,), dtype=dtype),
    }
    return norm_parameters(features, dtype=dtype) | moments


def convolution(w: jax.Array, x: jax.Array, *, stride: int = 1, groups: int = 1) -> jax.Array:
    """Two-dimensional, padded to keep the size: NHWC by HWIO."""
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def max_pool(x: jax.Array, size: int, stride: int) -> jax.Array:
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME")


def split_heads(x: jax.Array, heads: int) -> jax.Array:
    """batch length feature → batch head length depth"""
    batch, length, features = x.shape
    return x.reshape(batch, length, heads, features // heads).transpose(0, 2, 1, 3)


def merge_heads(x: jax.Array) -> jax.Array:
    """batch head length depth → batch length feature"""
    batch, heads, length, depth = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * depth)


def attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """Softmax attention over ``batch head length depth``; masked-out scores become very small."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1).astype(v.dtype), v)


def causal_mask(length: int) -> jax.Array:
    return jnp.tril(jnp.ones((length, length), bool))


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean over all positions of −log softmax at the label."""
    log_probabilities = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(log_probabilities, labels[..., None], -1).mean()
