"""Images to images and boxes: U-Net and SSD."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from kernelcast.zoo.inputs import indices, normal, uniform, weight
from kernelcast.zoo.layers import (
    convolution,
    group_norm,
    max_pool,
    norm_parameters,
)
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def unet(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """Segmentation with one level of skip connection, Dice plus cross-entropy (Ronneberger et al. 2015)."""

    def double(p: Tree, x: jax.Array) -> jax.Array:
        x = jax.nn.leaky_relu(group_norm(p["n1"], convolution(p["c1"], x), 4))
        return jax.nn.leaky_relu(group_norm(p["n2"], convolution(p["c2"], x), 4))

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        fine = double(p["down"], x)
        coarse = double(p["middle"], max_pool(fine, 2, 2))
        raised = jnp.repeat(jnp.repeat(coarse, 2, 1), 2, 2)
        merged = jnp.concatenate([fine, convolution(p["up"], raised)], -1)
        return convolution(p["head"], double(p["last"], merged))[..., 0]

    def loss(p: Tree, x: jax.Array, mask: jax.Array) -> jax.Array:
        logits = forward(p, x)
        probability = jax.nn.sigmoid(logits)
        overlap = 2 * jnp.sum(probability * mask, (1, 2)) + 1
        dice = 1 - overlap / (jnp.sum(probability + mask, (1, 2)) + 1)
        crossed = jnp.maximum(logits, 0) - logits * mask + jnp.log1p(jnp.exp(-jnp.abs(logits)))
        return dice.mean() + crossed.mean()

    def pair(inputs: int, outputs: int) -> Tree:
        convolutions = {"c1": weight(3, 3, inputs, outputs), "c2": weight(3, 3, outputs, outputs)}
        return convolutions | {"n1": norm_parameters(outputs), "n2": norm_parameters(outputs)}

    parameters = {
        "down": pair(3, channels),
        "middle": pair(channels, 2 * channels),
        "up": weight(3, 3, 2 * channels, channels),
        "last": pair(2 * channels, channels),
        "head": weight(1, 1, channels, 1),
    }
    images = normal((batch, size, size, 3))
    if optimiser is None:
        return forward, (parameters, images)
    return train(optimiser, loss, parameters, images, uniform((batch, size, size), 0.0, 1.0))


def ssd(*, batch: int, size: int, channels: int, classes: int = 20, optimiser: str | None = None) -> Built:
    """Single-shot detection: two feature maps, class and box heads, boxes decoded (Liu et al. 2016)."""
    anchors = 4

    def heads(p: Tree, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        x1 = jax.nn.relu6(convolution(p["c1"], x, stride=2))
        x2 = jax.nn.relu6(convolution(p["c2"], x1, stride=2))
        x3 = jax.nn.relu6(convolution(p["c3"], x2, stride=2))
        scores = [convolution(p["class"], h).reshape(batch, -1, classes) for h in (x2, x3)]
        boxes = [convolution(p["box"], h).reshape(batch, -1, 4) for h in (x2, x3)]
        return jnp.concatenate(scores, 1), jnp.concatenate(boxes, 1)

    def decode(p: Tree, x: jax.Array, priors: jax.Array) -> tuple[jax.Array, jax.Array]:
        scores, offsets = heads(p, x)
        centre = priors[:, :2] + offsets[..., :2] * 0.1 * priors[:, 2:]
        extent = priors[:, 2:] * jnp.exp(jnp.clip(offsets[..., 2:] * 0.2, -4, 4))
        corners = jnp.concatenate([centre - extent / 2, centre + extent / 2], -1)
        return jnp.clip(corners, 0, 1), jax.nn.softmax(scores, -1)[..., 1:]

    def loss(p: Tree, x: jax.Array, labels: jax.Array, targets: jax.Array) -> jax.Array:
        scores, offsets = heads(p, x)
        probability = jax.nn.sigmoid(scores)
        positive = jax.nn.one_hot(labels, classes)
        agreed = jnp.where(positive > 0, probability, 1 - probability)
        focal = -jnp.square(1 - agreed) * jnp.log(agreed + 1e-6)
        difference = jnp.abs(offsets - targets)
        huber = jnp.where(difference < 1, 0.5 * jnp.square(difference), difference - 0.5).sum(-1)
        return focal.mean() + jnp.where(labels > 0, huber, 0.0).mean()

    parameters = {
        "c1": weight(3, 3, 3, channels),
        "c2": weight(3, 3, channels, channels),
        "c3": weight(3, 3, channels, channels),
        "class": weight(3, 3, channels, anchors * classes),
        "box": weight(3, 3, channels, anchors * 4),
    }
    boxes = anchors * ((size // 4) ** 2 + (size // 8) ** 2)
    images = normal((batch, size, size, 3))
    if optimiser is None:
        return decode, (parameters, images, uniform((boxes, 4), 0.1, 0.9))
    labels = indices((batch, boxes), below=classes)
    return train(optimiser, loss, parameters, images, labels, normal((batch, boxes, 4)))
