"""Image processing: blur, edges, bilateral filter, colour, warping, similarity, morphology."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from kernelcast.zoo.inputs import normal, uniform
from kernelcast.zoo.program import Built


def blur_and_edges(*, size: int, radius: int, dtype: str = "float32") -> Built:
    """Separable Gaussian blur, Sobel gradients, their magnitude and direction."""

    def shifted(x: jax.Array, axis: int, offset: int) -> jax.Array:
        length = x.shape[axis] - 2 * radius
        return jax.lax.slice_in_dim(x, radius + offset, radius + offset + length, axis=axis)

    def detect(image: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = [2.718281828 ** (-(offset**2) / radius) for offset in range(-radius, radius + 1)]
        blurred = image
        for axis in (0, 1):
            width = [(radius, radius) if a == axis else (0, 0) for a in (0, 1)]
            padded = jnp.pad(blurred, width, mode="edge")
            parts = [w * shifted(padded, axis, k - radius) for k, w in enumerate(weights)]
            blurred = sum(parts[1:], parts[0]) / sum(weights)
        p = jnp.pad(blurred, 1, mode="reflect")
        gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
        gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
        # Regularised: where both gradients are rounding noise, a bare angle would be noise too.
        return jnp.sqrt(gx * gx + gy * gy), jnp.arctan2(jnp.abs(gy), jnp.abs(gx) + 1e-2)

    return detect, (uniform((size, size), 0.0, 1.0, dtype=dtype),)


def bilateral_filter(*, height: int, width: int, radius: int) -> Built:
    """Edge-preserving blur: weights of distance and of colour."""

    def apply(image: jax.Array) -> jax.Array:
        padded = jnp.pad(image, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
        total, weights = jnp.zeros_like(image), jnp.zeros((height, width, 1))
        for dy in range(2 * radius + 1):
            for dx in range(2 * radius + 1):
                near = padded[dy : dy + height, dx : dx + width]
                distance = (dy - radius) ** 2 + (dx - radius) ** 2
                colour = jnp.square(near - image).sum(-1, keepdims=True)
                weight = jnp.exp(-distance / (2.0 * radius) - colour / 0.02)
                total, weights = total + weight * near, weights + weight
        return total / weights

    return apply, (uniform((height, width, 3), 0.0, 1.0),)


def colour_jitter(*, batch: int, size: int) -> Built:
    """Brightness, contrast, saturation, hue rotation, flip, cutout and standardisation of a batch."""

    def augment(images: jax.Array, strength: jax.Array, centre: jax.Array) -> jax.Array:
        a, b, c, d = (strength[:, i, None, None, None] for i in range(4))
        x = images * (0.8 + 0.4 * a)
        mean = x.mean((1, 2, 3), keepdims=True)
        x = (x - mean) * (0.8 + 0.4 * b) + mean
        grey = x @ jnp.array([0.299, 0.587, 0.114])
        x = grey[..., None] + (x - grey[..., None]) * (0.6 + 0.8 * c)
        angle = 0.2 * (d[..., 0] - 0.5)
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        r, g, k = x[..., 0], x[..., 1], x[..., 2]
        x = jnp.stack([r, g * cosine - k * sine, g * sine + k * cosine], -1)
        x = jnp.where(a > 0.5, x[:, :, ::-1], x)
        place = jnp.arange(size)
        inside = jnp.abs(place[None] - centre[:, :1] * size) < size / 8
        across = jnp.abs(place[None] - centre[:, 1:] * size) < size / 8
        x = jnp.where((inside[:, :, None] & across[:, None])[..., None], 0.5, jnp.clip(x, 0.0, 1.0))
        return (x - x.mean((1, 2), keepdims=True)) / (x.std((1, 2), keepdims=True) + 1e-3)

    inputs = (uniform((batch, size, size, 3), 0.0, 1.0), uniform((batch, 4), 0.0, 1.0))
    return augment, (*inputs, uniform((batch, 2), 0.2, 0.8))


def bilinear_warp(*, height: int, width: int, channels: int) -> Built:
    """Samples an image along a flow field, as optical flow and spatial transformers do."""

    def warp(image: jax.Array, flow: jax.Array) -> jax.Array:
        y = jnp.clip(jnp.arange(height)[:, None] + flow[..., 0], 0.0, height - 1.001)
        x = jnp.clip(jnp.arange(width)[None] + flow[..., 1], 0.0, width - 1.001)
        top, left = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
        dy, dx = (y - top)[..., None], (x - left)[..., None]
        above = image[top, left] * (1 - dx) + image[top, left + 1] * dx
        below = image[top + 1, left] * (1 - dx) + image[top + 1, left + 1] * dx
        return above * (1 - dy) + below * dy

    flow = normal((height, width, 2), scale=4.0)
    return warp, (uniform((height, width, channels), 0.0, 1.0), flow)


def structural_similarity(*, size: int, dtype: str = "float32") -> Built:
    """Local means, variances and covariance of two images by sliding sums (Wang et al. 2004)."""

    def compare(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        def mean(a: jax.Array) -> jax.Array:
            zero = jnp.zeros((), a.dtype)
            return jax.lax.reduce_window(a, zero, jax.lax.add, (7, 7), (1, 1), "VALID") / 49.0

        mx, my = mean(x), mean(y)
        vx, vy, vxy = mean(x * x) - mx * mx, mean(y * y) - my * my, mean(x * y) - mx * my
        above = (2 * mx * my + 1e-4) * (2 * vxy + 9e-4)
        ratio = above / ((mx * mx + my * my + 1e-4) * (vx + vy + 9e-4))
        return ratio, ratio.astype(jnp.float32).mean()

    image = uniform((size, size), 0.0, 1.0, dtype=dtype)
    return compare, (image, image)


def distance_transform(*, size: int) -> Built:
    """Grey-scale dilation and erosion, and a chamfer distance by repeated minima."""

    def transform(image: jax.Array) -> tuple[jax.Array, jax.Array]:
        window, strides = (5, 5), (1, 1)
        dilated = jax.lax.reduce_window(image, -jnp.inf, jax.lax.max, window, strides, "SAME")
        eroded = -jax.lax.reduce_window(-image, -jnp.inf, jax.lax.max, window, strides, "SAME")
        distance = jnp.where(image > 0.9, 0.0, 100.0)
        for _ in range(3):
            padded = jnp.pad(distance, 1, constant_values=100.0)
            straight = jnp.minimum(
                jnp.minimum(padded[:-2, 1:-1], padded[2:, 1:-1]),
                jnp.minimum(padded[1:-1, :-2], padded[1:-1, 2:]),
            )
            distance = jnp.minimum(distance, straight + 1.0)
        return dilated - eroded, distance

    return transform, (uniform((size, size), 0.0, 1.0),)
