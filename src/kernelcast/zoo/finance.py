"""Finance and tracking: option prices, random paths, volatility, Kalman filters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import normal, random_key, uniform
from kernelcast.zoo.program import Built


def _normal_cdf(x: jax.Array) -> jax.Array:
    return 0.5 * (1 + lax.erf(x * 0.7071067811865476))


def black_scholes(*, options: int, dtype: str = "float32") -> Built:
    """Call and put prices with their delta, gamma and vega."""

    def price(
        spot: jax.Array, strike: jax.Array, years: jax.Array, sigma: jax.Array
    ) -> tuple[jax.Array, ...]:
        rate = 0.03
        root = sigma * jnp.sqrt(years)
        d1 = (jnp.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / root
        d2 = d1 - root
        discounted = strike * jnp.exp(-rate * years)
        call = spot * _normal_cdf(d1) - discounted * _normal_cdf(d2)
        density = jnp.exp(-0.5 * d1 * d1) * 0.3989422804
        gamma = density / (spot * root)
        return call, call - spot + discounted, _normal_cdf(d1), gamma, spot * density * jnp.sqrt(years)

    span = (options,)
    inputs = (uniform(span, 50, 150, dtype=dtype), uniform(span, 50, 150, dtype=dtype))
    return price, (*inputs, uniform(span, 0.1, 2.0, dtype=dtype), uniform(span, 0.1, 0.5, dtype=dtype))


def monte_carlo(*, paths: int, steps: int) -> Built:
    """Asian and barrier options along random paths, with antithetic draws and the standard error."""

    def price(spot: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        draws = jax.random.normal(key, (paths // 2, steps))
        draws = jnp.concatenate([draws, -draws])
        path = spot * jnp.exp(jnp.cumsum(0.0001 + 0.02 * draws, 1))
        asian = jnp.maximum(path.mean(1) - 100.0, 0.0)
        barrier = jnp.where(path.max(1) < 130.0, jnp.maximum(path[:, -1] - 100.0, 0.0), 0.0)
        values = jnp.stack([asian, barrier])
        return values.mean(1), values.std(1) / jnp.sqrt(paths)

    return price, (uniform((), 95.0, 105.0), random_key())


def heston(*, paths: int, steps: int) -> Built:
    """Stochastic volatility by an Euler scan, the draws given."""

    def simulate(draws: jax.Array, variance: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(
            state: tuple[jax.Array, jax.Array], z: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            log_price, v = state
            root = jnp.sqrt(jnp.maximum(v, 0.0) * 0.01)
            correlated = -0.7 * z[0] + 0.714 * z[1]
            v = jnp.abs(v + 2.0 * (0.04 - v) * 0.01 + 0.3 * root * correlated)
            return (log_price - 0.5 * v * 0.01 + root * z[0], v), None

        (log_price, v), _ = lax.scan(step, (jnp.zeros((paths,)), variance), draws)
        return jnp.maximum(jnp.exp(log_price) - 1.0, 0.0), v

    return simulate, (normal((steps, 2, paths)), uniform((paths,), 0.02, 0.06))


def garch(*, series: int, steps: int) -> Built:
    """Gradient of the GARCH(1, 1) likelihood, whose recurrence is a scan over time."""

    def loss(parameters: jax.Array, returns: jax.Array) -> jax.Array:
        omega, alpha, beta = (jax.nn.softplus(parameters[i]) for i in range(3))

        def step(variance: jax.Array, r: jax.Array) -> tuple[jax.Array, jax.Array]:
            likelihood = 0.5 * (jnp.log(variance) + jnp.square(r) / variance)
            return omega + alpha * jnp.square(r) + beta * variance, likelihood

        return lax.scan(step, jnp.ones((series,)), returns)[1].mean()

    return jax.value_and_grad(loss), (normal((3, series), mean=-2.0, scale=0.1), normal((steps, series)))


def kalman_filter(*, tracks: int, steps: int) -> Built:
    """Position and velocity of many tracks with scalar measurements, over a scan."""

    def track(measured: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        motion = jnp.array([[1.0, 0.1], [0.0, 1.0]])

        def step(
            state: tuple[jax.Array, jax.Array], z: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            x, p = state
            x = jnp.einsum("ij,tj->ti", motion, x)
            p = jnp.einsum("ij,tjk,lk->til", motion, p, motion) + 0.01 * jnp.eye(2)
            gain = p[:, :, 0] / (p[:, 0, 0] + noise)[:, None]
            x = x + gain * (z - x[:, 0])[:, None]
            p = p - gain[:, :, None] * p[:, None, 0, :]
            return (x, p), x[:, 0]

        start = (jnp.zeros((tracks, 2)), jnp.tile(jnp.eye(2), (tracks, 1, 1)))
        (_, p), path = lax.scan(step, start, measured)
        return path, p

    return track, (normal((steps, tracks)), uniform((tracks,), 0.1, 1.0))
