"""Image classifiers: ResNet v1 and v2, MobileNet, vision transformer, ConvNeXt, AlexNet."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import constant, indices, normal, weight
from kernelcast.zoo.layers import (
    attention,
    batch_norm,
    batch_norm_inference,
    convolution,
    cross_entropy,
    dense,
    dense_parameters,
    layer_norm,
    max_pool,
    merge_heads,
    norm_parameters,
    split_heads,
    stored_norm_parameters,
)
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def resnet_v1(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """Stem, an identity block and a strided block, post-activation (He et al. 2015)."""
    norm = batch_norm_inference if optimiser is None else batch_norm
    norm_inputs = stored_norm_parameters if optimiser is None else norm_parameters

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        x = max_pool(jax.nn.relu(norm(p["n0"], convolution(p["stem"], x, stride=2))), 3, 2)
        h = jax.nn.relu(norm(p["n1"], convolution(p["a1"], x)))
        x = jax.nn.relu(norm(p["n2"], convolution(p["a2"], h)) + x)
        h = jax.nn.relu(norm(p["n3"], convolution(p["b1"], x, stride=2)))
        short = norm(p["n5"], convolution(p["short"], x, stride=2))
        x = jax.nn.relu(norm(p["n4"], convolution(p["b2"], h)) + short)
        return dense(p["head"], x.mean((1, 2)))

    wide = 2 * channels
    parameters = {
        "stem": weight(7, 7, 3, channels),
        "a1": weight(3, 3, channels, channels),
        "a2": weight(3, 3, channels, channels),
        "b1": weight(3, 3, channels, wide),
        "b2": weight(3, 3, wide, wide),
        "short": weight(1, 1, channels, wide),
        "head": dense_parameters(wide, 10),
    }
    for number, features in enumerate((channels, channels, channels, wide, wide, wide)):
        parameters[f"n{number}"] = norm_inputs(features)
    return _classifier(forward, parameters, batch, size, optimiser)


def resnet_v2(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """Two pre-activation bottleneck blocks (He et al. 2016)."""
    norm = batch_norm_inference if optimiser is None else batch_norm
    norm_inputs = stored_norm_parameters if optimiser is None else norm_parameters
    narrow = channels // 4

    def block(p: Tree, x: jax.Array, stride: int) -> jax.Array:
        h = jax.nn.relu(norm(p["n1"], x))
        short = convolution(p["short"], h, stride=stride)
        h = jax.nn.relu(norm(p["n2"], convolution(p["reduce"], h)))
        h = jax.nn.relu(norm(p["n3"], convolution(p["conv"], h, stride=stride)))
        return convolution(p["expand"], h) + short

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        x = block(p["second"], block(p["first"], convolution(p["stem"], x), 1), 2)
        return dense(p["head"], jax.nn.relu(norm(p["last"], x)).mean((1, 2)))

    layer = {
        "n1": norm_inputs(channels),
        "n2": norm_inputs(narrow),
        "n3": norm_inputs(narrow),
        "short": weight(1, 1, channels, channels),
        "reduce": weight(1, 1, channels, narrow),
        "conv": weight(3, 3, narrow, narrow),
        "expand": weight(1, 1, narrow, channels),
    }
    parameters = {
        "stem": weight(3, 3, 3, channels),
        "first": layer,
        "second": layer,
        "last": norm_inputs(channels),
        "head": dense_parameters(channels, 10),
    }
    return _classifier(forward, parameters, batch, size, optimiser)


def mobilenet(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """Inverted residuals with depthwise convolutions and squeeze-and-excitation (Howard et al. 2019)."""
    norm = batch_norm_inference if optimiser is None else batch_norm
    norm_inputs = stored_norm_parameters if optimiser is None else norm_parameters
    wide = 4 * channels

    def block(p: Tree, x: jax.Array) -> jax.Array:
        h = jax.nn.hard_swish(norm(p["n1"], convolution(p["expand"], x)))
        h = jax.nn.hard_swish(norm(p["n2"], convolution(p["depthwise"], h, groups=wide)))
        squeezed = jax.nn.relu(dense(p["squeeze"], h.mean((1, 2))))
        h = h * jax.nn.hard_sigmoid(dense(p["excite"], squeezed))[:, None, None]
        return x + norm(p["n3"], convolution(p["project"], h))

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        x = jax.nn.relu6(norm(p["n0"], convolution(p["stem"], x, stride=2)))
        x = block(p["second"], block(p["first"], x))
        return dense(p["head"], x.mean((1, 2)))

    layer = {
        "n1": norm_inputs(wide),
        "n2": norm_inputs(wide),
        "n3": norm_inputs(channels),
        "expand": weight(1, 1, channels, wide),
        "depthwise": weight(3, 3, 1, wide),
        "squeeze": dense_parameters(wide, channels),
        "excite": dense_parameters(channels, wide),
        "project": weight(1, 1, wide, channels),
    }
    parameters = {
        "stem": weight(3, 3, 3, channels),
        "n0": norm_inputs(channels),
        "first": layer,
        "second": layer,
        "head": dense_parameters(channels, 10),
    }
    return _classifier(forward, parameters, batch, size, optimiser)


def vision_transformer(
    *, batch: int, size: int, patch: int, features: int, heads: int, optimiser: str | None = None
) -> Built:
    """Patches, a class token and one encoder layer (Dosovitskiy et al. 2021)."""
    side = size // patch

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        x = x.reshape(batch, side, patch, side, patch, 3).transpose(0, 1, 3, 2, 4, 5)
        x = dense(p["patch"], x.reshape(batch, side * side, patch * patch * 3))
        first = jnp.broadcast_to(p["class"], (batch, 1, features))
        x = jnp.concatenate([first, x], 1) + p["position"]
        h = layer_norm(p["n1"], x)
        q, k, v = (split_heads(t, heads) for t in jnp.split(dense(p["qkv"], h), 3, -1))
        x = x + p["gamma1"] * dense(p["out"], merge_heads(attention(q, k, v)))
        h = jax.nn.gelu(dense(p["up"], layer_norm(p["n2"], x)), approximate=False)
        x = x + p["gamma2"] * dense(p["down"], h)
        return dense(p["head"], layer_norm(p["n3"], x)[:, 0])

    parameters = {
        "patch": dense_parameters(patch * patch * 3, features),
        "class": normal((1, 1, features), scale=0.02),
        "position": normal((side * side + 1, features), scale=0.02),
        "qkv": dense_parameters(features, 3 * features),
        "out": dense_parameters(features, features),
        "up": dense_parameters(features, 4 * features),
        "down": dense_parameters(4 * features, features),
        "gamma1": constant(0.1, (features,)),
        "gamma2": constant(0.1, (features,)),
        "head": dense_parameters(features, 10),
    }
    parameters |= {name: norm_parameters(features) for name in ("n1", "n2", "n3")}
    return _classifier(forward, parameters, batch, size, optimiser)


def convnext(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """Patchified stem and one block: 7×7 depthwise, layer norm, GELU, response normalisation (Woo 2023)."""

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        dimensions = ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(x, p["stem"], (4, 4), "VALID", dimension_numbers=dimensions)
        h = convolution(p["depthwise"], layer_norm(p["n1"], x), groups=channels)
        h = jax.nn.gelu(dense(p["up"], layer_norm(p["n2"], h)))
        norm = jnp.sqrt(jnp.square(h).sum((1, 2), keepdims=True) + 1e-6)
        h = p["gamma"] * (h * norm / (norm.mean(-1, keepdims=True) + 1e-6)) + p["beta"] + h
        return dense(p["head"], layer_norm(p["n3"], (x + dense(p["down"], h)).mean((1, 2))))

    parameters = {
        "stem": weight(4, 4, 3, channels),
        "depthwise": weight(7, 7, 1, channels),
        "up": dense_parameters(channels, 4 * channels),
        "down": dense_parameters(4 * channels, channels),
        "gamma": normal((4 * channels,), scale=0.1),
        "beta": normal((4 * channels,), scale=0.1),
        "head": dense_parameters(channels, 10),
    }
    parameters |= {name: norm_parameters(channels) for name in ("n1", "n2", "n3")}
    return _classifier(forward, parameters, batch, size, optimiser)


def alexnet(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """Two convolutions with local response normalisation and pooling, two dense layers (Krizhevsky 2012)."""

    def respond(x: jax.Array) -> jax.Array:
        squares = lax.reduce_window(jnp.square(x), 0.0, lax.add, (1, 1, 1, 5), (1, 1, 1, 1), "SAME")
        return x / (2.0 + 1e-4 * squares) ** 0.75

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        x = max_pool(respond(jax.nn.relu(convolution(p["c1"], x, stride=2) + p["b1"])), 3, 2)
        x = max_pool(respond(jax.nn.relu(convolution(p["c2"], x, groups=2) + p["b2"])), 3, 2)
        x = jax.nn.relu(dense(p["d1"], x.reshape(batch, -1)))
        return dense(p["d2"], x)

    flat = (size // 8) ** 2 * 2 * channels
    parameters = {
        "c1": weight(5, 5, 3, channels),
        "b1": normal((channels,), scale=0.05),
        "c2": weight(5, 5, channels // 2, 2 * channels),
        "b2": normal((2 * channels,), scale=0.05),
        "d1": dense_parameters(flat, 128),
        "d2": dense_parameters(128, 10),
    }
    return _classifier(forward, parameters, batch, size, optimiser)


def _classifier(forward: Tree, parameters: Tree, batch: int, size: int, optimiser: str | None) -> Built:
    images = normal((batch, size, size, 3))
    if optimiser is None:
        return forward, (parameters, images)

    def loss(p: Tree, x: jax.Array, labels: jax.Array) -> jax.Array:
        return cross_entropy(forward(p, x), labels)

    return train(optimiser, loss, parameters, images, indices((batch,), below=10))
