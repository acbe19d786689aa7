"""The losses of the tile task: by hand, against the formula in plain Python, and what padding may change."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.model import loss
from kernelcast.model.loss import TileLoss, log_time_loss

# Compiled once for the one shape that all cases are padded to.
KERNELS, TILES = 3, 8
losses = {kind: jax.jit(jax.value_and_grad(partial(loss.tile_loss, kind))) for kind in TileLoss}

PHI = {"hinge": lambda z: max(1 - z, 0.0), "logistic": lambda z: math.log(1 + math.exp(-z))}


def arrays(*kernels):
    """Kernels of (scores, times) as padded arrays."""
    predicted, target = np.full((2, KERNELS, TILES), 7.0, dtype=np.float32)
    present = np.zeros((KERNELS, TILES), dtype=np.bool_)
    for k, (scores, times) in enumerate(kernels):
        predicted[k, : len(scores)], target[k, : len(times)] = scores, times
        present[k, : len(scores)] = True
    return predicted, target, present


def value(kind, *kernels):
    return float(losses[kind](*arrays(*kernels))[0])


def equation_2(scores, times, phi):
    """The paper's formula as it stands there."""
    n = len(scores)
    total = sum(phi(scores[i] - scores[j]) * (times[i] - times[j] > 0) for i in range(n) for j in range(n))
    return total / (n * (n - 1) / 2)


def test_three_tiles_by_hand():
    # Times 1 < 2 < 3, scores 0, 2, 1: pairs (slower, faster) = (2, 1): z = 2, (3, 1): z = 1, (3, 2): z = −1.
    one = ([0.0, 2.0, 1.0], [1.0, 2.0, 3.0])
    assert value(TileLoss.HINGE, one) == pytest.approx((0 + 0 + 2) / 3)
    expected = (math.log1p(math.exp(-2)) + math.log1p(math.exp(-1)) + math.log1p(math.exp(1))) / 3
    assert value(TileLoss.LOGISTIC, one) == pytest.approx(expected, rel=1e-6)
    # First of {0, 2, 1} with weights 1, e^−2, e^−1, then of {2, 1}.
    weights = [1.0, math.exp(-2), math.exp(-1)]
    likelihood = weights[0] / sum(weights) * weights[1] / (weights[1] + weights[2])
    assert value(TileLoss.LIST, one) == pytest.approx(-math.log(likelihood), rel=1e-6)
    assert value(TileLoss.SQUARED_BY_KERNEL, one) == pytest.approx((1 + 0 + 4) / 3)


def test_equal_times_make_no_pair_and_the_divisor_stays():
    # Pairs: third over first z = −5, third over second z = −10; n(n − 1)/2 = 3.
    assert value(TileLoss.HINGE, ([0.0, 5.0, -5.0], [1.0, 1.0, 2.0])) == pytest.approx((6 + 11) / 3)
    assert value(TileLoss.HINGE, ([0.0, 5.0], [1.0, 1.0])) == 0


def test_a_mean_over_kernels_not_over_tiles():
    both = ([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]), ([0.0, 3.0], [1.0, 2.0])
    for kind in (TileLoss.HINGE, TileLoss.LOGISTIC, TileLoss.LIST, TileLoss.SQUARED_BY_KERNEL):
        assert value(kind, *both) == pytest.approx(np.mean([value(kind, k) for k in both]), rel=1e-6)
    assert value(TileLoss.SQUARED_BY_KERNEL, *both) == pytest.approx((14 / 4 + 2 / 2) / 2)
    assert value(TileLoss.SQUARED, *both) == pytest.approx((14 + 2) / 6)


@pytest.mark.parametrize("kind", [TileLoss.HINGE, TileLoss.LOGISTIC, TileLoss.LIST])
def test_a_kernel_with_one_tile_or_none_is_no_part_of_a_rank_loss(kind):
    two = ([0.0, 2.0], [2.0, 1.0])
    for extra in (([4.0], [1.0]), ([], [])):
        assert value(kind, two, extra) == pytest.approx(value(kind, two))
    assert value(kind, ([4.0], [1.0])) == 0


kernel = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-5, 5, width=32), min_size=n, max_size=n),
        st.lists(st.integers(1, 4).map(float), min_size=n, max_size=n),
    )
)


@settings(max_examples=60, deadline=None)
@given(kernels=st.lists(kernel, min_size=1, max_size=KERNELS))
@pytest.mark.parametrize("name", PHI)
def test_it_is_equation_2_of_each_kernel(name, kernels):
    expected = np.mean([equation_2(*k, PHI[name]) for k in kernels])
    assert value(TileLoss(name), *kernels) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(scores=st.lists(st.floats(-5, 5, width=32), min_size=2, max_size=4))
def test_the_likelihoods_of_all_orders_sum_to_one(scores):
    orders = itertools.permutations(range(len(scores)))
    found = [value(TileLoss.LIST, (scores, [float(rank) for rank in order])) for order in orders]
    assert sum(math.exp(-loss) for loss in found) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("kind", TileLoss)
def test_padding_changes_neither_loss_nor_gradient(kind):
    predicted, target, present = arrays(
        ([0.1, 0.7, -0.2], [1.0, 2.0, 3.0]), ([0.5, 0.4], [2.0, 1.0])
    )  # fmt: skip
    other = np.where(present, predicted, 1e6), np.where(present, target, -1e6), present
    first, gradient = losses[kind](predicted, target, present)
    second, other_gradient = losses[kind](*other)
    assert float(first) == pytest.approx(float(second), rel=1e-6)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-5, atol=1e-7)
    assert not np.asarray(gradient)[~present].any()
    assert np.isfinite(np.asarray(gradient)).all()


@pytest.mark.parametrize("kind", TileLoss)
def test_the_true_order_costs_less_than_its_reverse(kind):
    times = [1.0, 2.0, 3.0]
    assert value(kind, (times, times)) < value(kind, (times[::-1], times))


@pytest.mark.parametrize("kind", TileLoss)
def test_large_scores_stay_finite(kind):
    found, gradient = losses[kind](*arrays(([1e4, -1e4, 0.0], [1.0, 2.0, 3.0])))
    assert np.isfinite(float(found))
    assert np.isfinite(np.asarray(gradient)).all()


def test_the_loss_of_the_fusion_task_is_a_weighted_mean():
    assert float(log_time_loss(jnp.array([1.0, 2.0]), jnp.array([0.0, 0.0]), jnp.array([3.0, 1.0]))) == 7 / 4
