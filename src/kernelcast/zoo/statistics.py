"""Statistics: clustering, mixtures, regression, moments, sequence labels, Gaussian processes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import indices, normal, uniform, weight
from kernelcast.zoo.program import Built


def kmeans(*, points: int, features: int, clusters: int, steps: int = 2) -> Built:
    """Lloyd's iterations with empty clusters kept."""

    def fit(x: jax.Array, centres: jax.Array) -> tuple[jax.Array, jax.Array]:
        def distances(centres: jax.Array) -> jax.Array:
            return jnp.square(x).sum(-1, keepdims=True) - 2 * x @ centres.T + jnp.square(centres).sum(-1)

        for _ in range(steps):
            nearest = jnp.argmin(distances(centres), -1)
            counts = jax.ops.segment_sum(jnp.ones((points,)), nearest, clusters)
            sums = jax.ops.segment_sum(x, nearest, clusters)
            centres = jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centres)
        return centres, jnp.min(distances(centres), -1).mean()

    return fit, (normal((points, features)), normal((clusters, features)))


def gaussian_mixture(*, points: int, features: int, components: int) -> Built:
    """One expectation–maximisation step with diagonal covariances."""

    def step(
        x: jax.Array, means: jax.Array, variances: jax.Array, weights: jax.Array
    ) -> tuple[jax.Array, ...]:
        difference = x[:, None] - means
        exponent = (jnp.square(difference) / variances + jnp.log(variances)).sum(-1)
        joint = jnp.log(weights) - 0.5 * (exponent + features * 1.8378770664)
        evidence = jax.nn.logsumexp(joint, -1)
        share = jnp.exp(joint - evidence[:, None])
        total = share.sum(0)
        means = share.T @ x / total[:, None]
        variances = share.T @ jnp.square(x) / total[:, None] - jnp.square(means) + 1e-4
        return means, variances, total / points, evidence.mean()

    per = (components, features)
    inputs = (normal((points, features)), normal(per), uniform(per, 0.5, 2.0))
    return step, (*inputs, uniform((components,), 0.05, 0.2))


def logistic_regression(*, rows: int, features: int, classes: int) -> Built:
    """Elastic-net gradient step with class weights, and accuracy."""

    def step(w: jax.Array, x: jax.Array, labels: jax.Array, balance: jax.Array) -> tuple[jax.Array, ...]:
        def loss(w: jax.Array) -> tuple[jax.Array, jax.Array]:
            logits = x @ w
            picked = jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, classes) * balance
            return -picked.sum(-1).mean() + 1e-3 * jnp.square(w).sum(), logits

        (value, logits), slope = jax.value_and_grad(loss, has_aux=True)(w)
        w = w - 0.1 * slope
        w = jnp.sign(w) * jnp.maximum(jnp.abs(w) - 1e-4, 0.0)
        return w, value, (jnp.argmax(logits, -1) == labels).mean()

    inputs = (weight(features, classes), normal((rows, features)), indices((rows,), below=classes))
    return step, (*inputs, uniform((classes,), 0.5, 2.0))


def moments(*, rows: int, columns: int) -> Built:
    """Standardises columns; skewness, kurtosis, extremes and correlation with the first column."""

    def describe(x: jax.Array) -> tuple[jax.Array, ...]:
        mean, deviation = x.mean(0), x.std(0)
        z = (x - mean) / deviation
        return z, (z**3).mean(0), (z**4).mean(0), jnp.abs(z).max(1), (z * z[:, :1]).mean(0)

    return describe, (normal((rows, columns)),)


def conditional_random_field(*, batch: int, length: int, tags: int) -> Built:
    """Gradient of the negative log-likelihood of tag sequences; the forward recursion is a scan."""

    def loss(scores: jax.Array, transitions: jax.Array, labels: jax.Array) -> jax.Array:
        def step(alpha: jax.Array, score: jax.Array) -> tuple[jax.Array, None]:
            return jax.nn.logsumexp(alpha[:, :, None] + transitions, 1) + score, None

        alpha, _ = lax.scan(step, scores[:, 0], scores.swapaxes(0, 1)[1:])
        emitted = jnp.take_along_axis(scores, labels[..., None], -1).sum((1, 2))
        passed = transitions[labels[:, :-1], labels[:, 1:]].sum(1)
        return (jax.nn.logsumexp(alpha, -1) - emitted - passed).mean()

    inputs = (normal((batch, length, tags)), normal((tags, tags)), indices((batch, length), below=tags))
    return jax.value_and_grad(loss, (0, 1)), inputs


def gaussian_process(*, points: int, features: int) -> Built:
    """Matérn and periodic covariance matrices of inputs, and their gradient with respect to scales."""

    def loss(scales: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
        scaled = x / jnp.exp(scales[:features])
        square = jnp.sum(jnp.square(scaled[:, None] - scaled[None]), -1)
        distance = jnp.sqrt(square + 1e-8)
        matern = (1 + 2.236 * distance + 5 / 3 * square) * jnp.exp(-2.236 * distance)
        periodic = jnp.exp(-2 * jnp.square(jnp.sin(distance * jnp.exp(scales[-1]))))
        return w @ (matern * periodic) @ w / points

    inputs = (normal((features + 1,), scale=0.1), normal((points, features)), normal((points,)))
    return jax.value_and_grad(loss), inputs
