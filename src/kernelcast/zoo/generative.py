"""Generative models: VAE, ConvDRAW, denoising diffusion, adversarial nets, radiance fields."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import normal, random_key, uniform, weight
from kernelcast.zoo.layers import (
    attention,
    batch_norm,
    convolution,
    dense,
    dense_parameters,
    group_norm,
    norm_parameters,
)
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def _binary_cross_entropy(logits: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.maximum(logits, 0) - logits * target + jnp.log1p(jnp.exp(-jnp.abs(logits)))


def vae(*, batch: int, pixels: int, hidden: int, latent: int, optimiser: str | None = None) -> Built:
    """Dense variational auto-encoder with its own noise (Kingma & Welling 2014)."""

    def bound(p: Tree, x: jax.Array, key: jax.Array) -> jax.Array:
        mean, log_variance = jnp.split(dense(p["encode2"], jnp.tanh(dense(p["encode1"], x))), 2, -1)
        z = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape)
        logits = dense(p["decode2"], jnp.tanh(dense(p["decode1"], z)))
        divergence = 0.5 * jnp.sum(jnp.exp(log_variance) + jnp.square(mean) - 1 - log_variance, -1)
        return (_binary_cross_entropy(logits, x).sum(-1) + divergence).mean()

    parameters = {
        "encode1": dense_parameters(pixels, hidden),
        "encode2": dense_parameters(hidden, 2 * latent),
        "decode1": dense_parameters(latent, hidden),
        "decode2": dense_parameters(hidden, pixels),
    }
    inputs = (uniform((batch, pixels), 0.0, 1.0), random_key())
    return (
        (bound, (parameters, *inputs)) if optimiser is None else train(optimiser, bound, parameters, *inputs)
    )


def convdraw(*, batch: int, size: int, channels: int, steps: int, optimiser: str | None = None) -> Built:
    """Recurrent convolutional auto-encoder that draws on a canvas (Gregor et al. 2016)."""
    coarse = size // 4

    def cell(w: jax.Array, state: Tree, x: jax.Array) -> Tree:
        h, c = state
        i, f, o, g = jnp.split(convolution(w, jnp.concatenate([x, h], -1)), 4, -1)
        c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def bound(p: Tree, x: jax.Array, noise: jax.Array) -> jax.Array:
        zeros = jnp.zeros((batch, coarse, coarse, channels))
        encoder, decoder = (zeros, zeros), (zeros, zeros)
        canvas, divergence = jnp.zeros_like(x), jnp.zeros((batch,))
        for t in range(steps):
            error = x - jax.nn.sigmoid(canvas)
            seen = convolution(p["read"], jnp.concatenate([x, error], -1), stride=4)
            encoder = cell(p["encoder"], encoder, jnp.concatenate([seen, decoder[0]], -1))
            mean, log_scale = jnp.split(convolution(p["posterior"], encoder[0]), 2, -1)
            prior_mean, prior_scale = jnp.split(convolution(p["prior"], decoder[0]), 2, -1)
            z = mean + jnp.exp(0.5 * log_scale) * noise[t]
            spread = (jnp.exp(log_scale) + jnp.square(mean - prior_mean)) / jnp.exp(prior_scale)
            divergence += 0.5 * jnp.sum(prior_scale - log_scale + spread - 1, (1, 2, 3))
            decoder = cell(p["decoder"], decoder, z)
            drawn = lax.conv_transpose(
                decoder[0], p["write"], (4, 4), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            canvas = canvas + drawn
        return (_binary_cross_entropy(canvas, x).sum((1, 2, 3)) + divergence).mean()

    latent = channels // 2
    parameters = {
        "read": weight(5, 5, 6, channels),
        "encoder": weight(3, 3, 3 * channels, 4 * channels),
        "posterior": weight(3, 3, channels, 2 * latent),
        "prior": weight(3, 3, channels, 2 * latent),
        "decoder": weight(3, 3, latent + channels, 4 * channels),
        "write": weight(5, 5, channels, 3),
    }
    inputs = (uniform((batch, size, size, 3), 0.0, 1.0), normal((steps, batch, coarse, coarse, latent)))
    return (
        (bound, (parameters, *inputs)) if optimiser is None else train(optimiser, bound, parameters, *inputs)
    )


def _time_embedding(time: jax.Array, features: int) -> jax.Array:
    frequencies = jnp.exp(-jnp.log(10000.0) * jnp.arange(features // 2) / (features // 2))
    angles = time[:, None] * frequencies
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)


def diffusion(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """A residual block with time embedding and self-attention, in a noise predictor (Ho et al. 2020)."""

    def predict(p: Tree, x: jax.Array, time: jax.Array) -> jax.Array:
        x = convolution(p["stem"], x)
        embedded = dense(p["time2"], jax.nn.silu(dense(p["time1"], _time_embedding(time, channels))))
        h = convolution(p["c1"], jax.nn.silu(group_norm(p["n1"], x, 8)))
        scale, shift = jnp.split(embedded[:, None, None], 2, -1)
        h = group_norm(p["n2"], h, 8) * (1 + scale) + shift
        x = x + convolution(p["c2"], jax.nn.silu(h))
        flat = group_norm(p["n3"], x, 8).reshape(batch, 1, size * size, channels)
        mixed = attention(*jnp.split(dense(p["qkv"], flat), 3, -1))
        x = x + dense(p["out"], mixed).reshape(x.shape)
        return convolution(p["head"], x)

    def denoise(p: Tree, x: jax.Array, time: jax.Array, noise: jax.Array) -> jax.Array:
        kept = jnp.square(jnp.cos(0.5 * jnp.pi * time / 1000.0))[:, None, None, None]
        before = jnp.square(jnp.cos(0.5 * jnp.pi * (time - 1) / 1000.0))[:, None, None, None]
        predicted = predict(p, x, time)
        clean = jnp.clip((x - jnp.sqrt(1 - kept) * predicted) * lax.rsqrt(kept + 1e-4), -1, 1)
        return jnp.sqrt(before) * clean + jnp.sqrt(1 - before) * (0.9 * predicted + 0.1 * noise)

    def loss(p: Tree, x: jax.Array, time: jax.Array, noise: jax.Array) -> jax.Array:
        kept = jnp.square(jnp.cos(0.5 * jnp.pi * time / 1000.0))[:, None, None, None]
        noisy = jnp.sqrt(kept) * x + jnp.sqrt(1 - kept) * noise
        return jnp.square(predict(p, noisy, time) - noise).mean()

    parameters = {
        "stem": weight(3, 3, 3, channels),
        "time1": dense_parameters(channels, 2 * channels),
        "time2": dense_parameters(2 * channels, 2 * channels),
        "c1": weight(3, 3, channels, channels),
        "c2": weight(3, 3, channels, channels),
        "qkv": dense_parameters(channels, 3 * channels),
        "out": dense_parameters(channels, channels),
        "head": weight(3, 3, channels, 3),
    }
    parameters |= {name: norm_parameters(channels) for name in ("n1", "n2", "n3")}
    images = normal((batch, size, size, 3))
    inputs = (images, uniform((batch,), 1.0, 999.0), images)
    if optimiser is None:
        return denoise, (parameters, *inputs)
    return train(optimiser, loss, parameters, *inputs)


def gan(*, batch: int, size: int, channels: int, optimiser: str | None = None) -> Built:
    """Transposed-convolution generator; trained against a convolutional critic (Radford et al. 2016)."""
    coarse = size // 4
    dimensions = ("NHWC", "HWIO", "NHWC")

    def generate(p: Tree, z: jax.Array) -> jax.Array:
        x = dense(p["seed"], z).reshape(batch, coarse, coarse, 2 * channels)
        x = jax.nn.relu(batch_norm(p["n1"], x))
        x = lax.conv_transpose(x, p["up1"], (2, 2), "SAME", dimension_numbers=dimensions)
        x = jax.nn.relu(batch_norm(p["n2"], x))
        return jnp.tanh(lax.conv_transpose(x, p["up2"], (2, 2), "SAME", dimension_numbers=dimensions))

    def criticise(p: Tree, x: jax.Array) -> jax.Array:
        x = jax.nn.leaky_relu(convolution(p["down1"], x, stride=2), 0.2)
        x = jax.nn.leaky_relu(convolution(p["down2"], x, stride=2), 0.2)
        return dense(p["score"], x.reshape(batch, -1))[:, 0]

    def loss(p: Tree, z: jax.Array, real: jax.Array) -> jax.Array:
        fake = generate(p, z)
        wanted = jax.nn.softplus(-criticise(p, fake)).mean()
        told = jax.nn.softplus(criticise(p, lax.stop_gradient(fake))) + jax.nn.softplus(-criticise(p, real))
        return wanted + told.mean()

    parameters = {
        "seed": dense_parameters(32, coarse * coarse * 2 * channels),
        "n1": norm_parameters(2 * channels),
        "up1": weight(4, 4, 2 * channels, channels),
        "n2": norm_parameters(channels),
        "up2": weight(4, 4, channels, 3),
        "down1": weight(4, 4, 3, channels),
        "down2": weight(4, 4, channels, channels),
        "score": dense_parameters(coarse * coarse * channels, 1),
    }
    z = normal((batch, 32))
    if optimiser is None:
        return generate, (parameters, z)
    return train(optimiser, loss, parameters, z, normal((batch, size, size, 3), scale=0.5))


def radiance_field(*, rays: int, samples: int, features: int, optimiser: str | None = None) -> Built:
    """Positional encoding, a small network and volume rendering along rays (Mildenhall et al. 2020)."""

    def render(p: Tree, origins: jax.Array, directions: jax.Array) -> jax.Array:
        depths = jnp.linspace(2.0, 6.0, samples)
        points = origins[:, None] + directions[:, None] * depths[:, None]
        angles = (points[..., None] * 2.0 ** jnp.arange(4)).reshape(rays, samples, 12)
        h = jnp.concatenate([points, jnp.sin(angles), jnp.cos(angles)], -1)
        h = jax.nn.relu(dense(p["d2"], jax.nn.relu(dense(p["d1"], h))))
        output = dense(p["head"], h)
        colours, density = jax.nn.sigmoid(output[..., :3]), jax.nn.softplus(output[..., 3])
        alpha = 1 - jnp.exp(-density * (4.0 / samples))
        through = jnp.cumprod(1 - alpha + 1e-6, -1)
        through = jnp.concatenate([jnp.ones((rays, 1)), through[:, :-1]], -1)
        return jnp.sum((alpha * through)[..., None] * colours, 1)

    def loss(p: Tree, origins: jax.Array, directions: jax.Array, colours: jax.Array) -> jax.Array:
        return jnp.square(render(p, origins, directions) - colours).mean()

    parameters = {
        "d1": dense_parameters(27, features),
        "d2": dense_parameters(features, features),
        "head": dense_parameters(features, 4),
    }
    inputs = (normal((rays, 3), scale=0.1), normal((rays, 3)))
    if optimiser is None:
        return render, (parameters, *inputs)
    return train(optimiser, loss, parameters, *inputs, uniform((rays, 3), 0.0, 1.0))


def vector_quantiser(*, batch: int, size: int, features: int, codes: int) -> Built:
    """Nearest codes, straight-through losses and the moving-average codebook (van den Oord et al. 2017)."""

    def quantise(
        x: jax.Array, codebook: jax.Array, counts: jax.Array, sums: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
        flat = x.reshape(-1, features)
        squares = jnp.square(flat).sum(-1, keepdims=True) + jnp.square(codebook).sum(-1)
        nearest = jnp.argmin(squares - 2 * flat @ codebook.T, -1)
        chosen = jax.nn.one_hot(nearest, codes)
        quantised = codebook[nearest].reshape(x.shape)
        counts = 0.99 * counts + 0.01 * chosen.sum(0)
        sums = 0.99 * sums + 0.01 * chosen.T @ flat
        usage = chosen.mean(0)
        perplexity = jnp.exp(-jnp.sum(usage * jnp.log(usage + 1e-10)))
        commitment = 0.25 * jnp.square(x - quantised).mean()
        return quantised, commitment, perplexity, counts, sums / (counts[:, None] + 1e-5)

    inputs = (
        normal((batch, size, size, features)),
        normal((codes, features)),
        uniform((codes,), 0.5, 2.0),
        normal((codes, features)),
    )
    return quantise, inputs


def coupling_flow(*, batch: int, features: int, hidden: int, optimiser: str | None = None) -> Built:
    """Coupling flow: affine layers with alternating masks, exact likelihood (Dinh et al. 2017)."""
    half = features // 2

    def likelihood(p: Tree, x: jax.Array) -> jax.Array:
        log_determinant = jnp.zeros((batch,))
        for layer in p:
            a, b = x[:, :half], x[:, half:]
            log_scale, shift = jnp.split(dense(layer["out"], jax.nn.elu(dense(layer["in"], a))), 2, -1)
            log_scale = jnp.tanh(log_scale)
            log_determinant += log_scale.sum(-1)
            x = jnp.concatenate([b * jnp.exp(log_scale) + shift, a], -1)
        gaussian = -0.5 * jnp.sum(jnp.square(x) + jnp.log(2 * jnp.pi), -1)
        return -(gaussian + log_determinant).mean()

    layer = {"in": dense_parameters(half, hidden), "out": dense_parameters(hidden, 2 * half)}
    parameters = [layer, layer, layer]
    x = normal((batch, features))
    return (likelihood, (parameters, x)) if optimiser is None else train(optimiser, likelihood, parameters, x)
