"""The losses of both tasks (paper, section 4.2): absolute time for fusion, the order of a kernel's tiles.

A loss of tiles takes (kernel, tile) arrays in which each row holds the tiles of one kernel; what is padding
is told by ``present``. No tile is ever compared with a tile of another kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class TileLoss(StrEnum):
    """What the network is trained to get right about the tiles of a kernel."""

    HINGE = "hinge"  # pairwise rank loss with φ(z) = (1 − z)₊
    LOGISTIC = "logistic"  # pairwise rank loss with φ(z) = log(1 + e^−z)
    LIST = "list"  # ListMLE: the likelihood of the whole order
    SQUARED = "squared"  # squared error of log time, each example counting the same
    SQUARED_BY_KERNEL = "squared-by-kernel"  # the same, each kernel counting the same


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


def tile_loss(
    kind: TileLoss,
    predicted: Float[Array, "kernel tile"],
    target: Float[Array, "kernel tile"],
    present: Bool[Array, "kernel tile"],
) -> Float[Array, ""]:
    """The loss of a kind.

    Args:
        kind: which.
        predicted: scores, lower is faster; of the squared errors, log seconds.
        target: log seconds; the order is all that rank losses see of them.
        present: whether a tile is real.
    """
    if kind is TileLoss.LIST:
        return list_loss(predicted, target, present)
    if kind is TileLoss.SQUARED:
        return log_time_loss(predicted.ravel(), target.ravel(), present.ravel().astype(predicted.dtype))
    if kind is TileLoss.SQUARED_BY_KERNEL:
        return log_time_loss_by_kernel(predicted, target, present)
    return pairwise_rank_loss(predicted, target, present, hinge if kind is TileLoss.HINGE else logistic)


def hinge(z: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """φ(z) = (1 − z)₊."""
    return jnp.maximum(1.0 - z, 0.0)


def logistic(z: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """φ(z) = log(1 + e^−z), without overflow."""
    return jax.nn.softplus(-z)


def pairwise_rank_loss(
    predicted: Float[Array, "kernel tile"],
    target: Float[Array, "kernel tile"],
    present: Bool[Array, "kernel tile"],
    phi: Callable[[Float[Array, "*axes"]], Float[Array, "*axes"]],
) -> Float[Array, ""]:
    """Mean over kernels of the paper's equation 2, with n the kernel's tiles in the batch:

        L = Σᵢ Σⱼ φ(y′ᵢ − y′ⱼ) · pos(yᵢ − yⱼ) / (n · (n − 1) / 2)

    pos(z) is 1 if z > 0, else 0: equal times make no pair. A kernel with one tile has no pairs and is no part
    of the mean.

    >>> one = jnp.array([[0.0, 0.5]]), jnp.array([[1.0, 2.0]]), jnp.array([[True, True]])
    >>> float(pairwise_rank_loss(*one, hinge))
    0.5
    """
    both = present[:, :, None] & present[:, None, :]
    slower = (target[:, :, None] > target[:, None, :]) & both  # kernel i j: i takes longer than j
    terms = jnp.where(slower, phi(predicted[:, :, None] - predicted[:, None, :]), 0.0)
    count = present.sum(axis=1)
    pairs = count * (count - 1) / 2
    return _mean(terms.sum(axis=(1, 2)) / jnp.maximum(pairs, 1), count > 1)


def list_loss(
    predicted: Float[Array, "kernel tile"],
    target: Float[Array, "kernel tile"],
    present: Bool[Array, "kernel tile"],
) -> Float[Array, ""]:
    """Mean over kernels of ListMLE (Xia et al., 2008): −log of the probability that drawing tiles without
    replacement with weights exp(−score) draws them from the fastest to the slowest.

        L = Σᵢ (y′ᵢ + log Σ_{j not before i} e^(−y′ⱼ)),  i in ascending order of y

    Of equal times the one given first counts as faster: shuffle the tiles before. A kernel with one tile says
    nothing and is no part of the mean.

    >>> same = jnp.zeros((1, 2)), jnp.array([[1.0, 2.0]]), jnp.array([[True, True]])
    >>> round(float(list_loss(*same)), 6) == round(float(jnp.log(2.0)), 6)
    True
    """
    order = jnp.argsort(jnp.where(present, target, jnp.inf), axis=1, stable=True)
    utility = -jnp.take_along_axis(predicted, order, axis=1)
    real = jnp.take_along_axis(present, order, axis=1)
    # A large negative number in place of −∞: the latter has no gradient through the cumulative sum.
    held = jnp.where(real, utility, -1e9)
    left = jax.lax.cumlogsumexp(held, axis=1, reverse=True)
    count = present.sum(axis=1)
    return _mean(jnp.where(real, left - utility, 0.0).sum(axis=1), count > 1)


def log_time_loss_by_kernel(
    predicted: Float[Array, "kernel tile"],
    target: Float[Array, "kernel tile"],
    present: Bool[Array, "kernel tile"],
) -> Float[Array, ""]:
    """Mean over kernels of the mean of (y′ − y)² over the kernel's tiles, so that a kernel with thousands of
    tiles counts no more than one with three.

    >>> two = jnp.array([[1.0, 1.0], [2.0, 9.0]]), jnp.zeros((2, 2)), jnp.array([[True, True], [True, False]])
    >>> float(log_time_loss_by_kernel(*two))
    2.5
    """
    errors = jnp.where(present, (predicted - target) ** 2, 0.0).sum(axis=1)
    count = present.sum(axis=1)
    return _mean(errors / jnp.maximum(count, 1), count > 0)


def _mean(values: Float[Array, " kernel"], counted: Bool[Array, " kernel"]) -> Float[Array, ""]:
    return jnp.where(counted, values, 0.0).sum() / jnp.maximum(counted.sum(), 1)
