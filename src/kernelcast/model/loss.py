"""The loss of the fusion task: squared error of logarithmic time (paper, section 4.2)."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def log_time_loss(
    predicted: Float[Array, " kernel"], target: Float[Array, " kernel"], weight: Float[Array, " kernel"]
) -> Float[Array, ""]:
    """Weighted mean of (y′ − y)², y in log seconds; padding has weight 0.

    Times span nine decades, and an autotuner adds them up and compares the sums, so ratios matter and the
    scale must be absolute.

    >>> float(log_time_loss(jnp.array([1.0, 9.0]), jnp.array([3.0, 0.0]), jnp.array([1.0, 0.0])))
    4.0
    """
    return jnp.sum(weight * (predicted - target) ** 2) / jnp.maximum(jnp.sum(weight), 1e-9)
