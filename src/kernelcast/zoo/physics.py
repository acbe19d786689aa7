"""Physics: molecular dynamics, shallow water, lattice Boltzmann, waves, reaction–diffusion."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from kernelcast.zoo.inputs import indices, normal, uniform
from kernelcast.zoo.program import Built


def lennard_jones(*, particles: int, box: float) -> Built:
    """Energy and forces of all pairs under the minimum-image convention, and one Verlet step."""

    def energy(x: jax.Array) -> jax.Array:
        difference = x[:, None] - x[None]
        difference = difference - box * jnp.round(difference / box)
        square = jnp.sum(jnp.square(difference), -1) + jnp.eye(particles)
        sixth = (1.0 / jnp.maximum(square, 0.5)) ** 3
        inside = (square < 6.25) & ~jnp.eye(particles, dtype=bool)
        return 2.0 * jnp.sum(jnp.where(inside, sixth * sixth - sixth, 0.0))

    def step(x: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        value, slope = jax.value_and_grad(energy)(x)
        half = v - 0.0005 * slope
        return jnp.mod(x + 0.001 * half, box), half, value + 0.5 * jnp.sum(jnp.square(half))

    return step, (uniform((particles, 3), 0.0, box), normal((particles, 3)))


def neighbour_forces(*, particles: int, neighbours: int) -> Built:
    """Coulomb and spring forces along a neighbour list, summed by scatter."""

    def forces(x: jax.Array, charge: jax.Array, listed: jax.Array) -> jax.Array:
        difference = x[:, None] - x[listed]
        distance = jnp.sqrt(jnp.sum(jnp.square(difference), -1) + 1e-2)
        strength = charge[:, None] * charge[listed] / distance**3 * jax.lax.erfc(distance)
        strength = strength - jnp.where(distance < 1.0, 1.0 - 1.0 / distance, 0.0)
        pull = strength[..., None] * difference
        return pull.sum(1) - jnp.zeros_like(x).at[listed.reshape(-1)].add(pull.reshape(-1, 3))

    listed = indices((particles, neighbours), below=particles)
    return forces, (normal((particles, 3), scale=3.0), normal((particles,)), listed)


def shallow_water(*, rows: int, columns: int, steps: int) -> Built:
    """Height and two velocities by central differences, with drag and the Coriolis force."""

    def advance(h: jax.Array, u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        for _ in range(steps):
            along = lambda a: 0.5 * (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1))  # noqa: E731
            across = lambda a: 0.5 * (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0))  # noqa: E731
            speed = jnp.sqrt(u * u + v * v + 1e-6)
            du = -u * along(u) - v * across(u) - 9.8 * along(h) + 0.1 * v - 0.01 * speed * u
            dv = -u * along(v) - v * across(v) - 9.8 * across(h) - 0.1 * u - 0.01 * speed * v
            dh = -along(h * u) - across(h * v)
            h, u, v = h + 1e-3 * dh, u + 1e-3 * du, v + 1e-3 * dv
        return h, u, v

    field = normal((rows, columns), scale=0.1)
    return advance, (uniform((rows, columns), 0.9, 1.1), field, field)


def lattice_boltzmann(*, rows: int, columns: int) -> Built:
    """Streaming and relaxation on the nine-speed lattice, with bounce-back walls."""
    speeds = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
    opposite = (0, 3, 4, 1, 2, 7, 8, 5, 6)

    def step(f: jax.Array, wall: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, f.dtype)
        moved = jnp.stack([jnp.roll(f[i], speed, (0, 1)) for i, speed in enumerate(speeds)])
        density = moved.sum(0)
        ux = (moved[1] + moved[5] + moved[8] - moved[3] - moved[6] - moved[7]) / density
        uy = (moved[2] + moved[5] + moved[6] - moved[4] - moved[7] - moved[8]) / density
        square = 1.5 * (ux * ux + uy * uy)
        balanced: list[jax.Array] = []
        for i, (x, y) in enumerate(speeds):
            along = 3.0 * (x * ux + y * uy)
            balanced.append(weights[i] * density * (1 + along + 0.5 * along * along - square))
        relaxed = moved - 0.6 * (moved - jnp.stack(balanced))
        bounced = moved[jnp.array(opposite)]
        return jnp.where(wall < 0.1, bounced, relaxed), ux * uy

    inputs = (uniform((9, rows, columns), 0.05, 0.15), uniform((rows, columns), 0.0, 1.0))
    return step, inputs


def wave_equation(*, size: int, steps: int) -> Built:
    """A scan over time of the three-dimensional wave equation with an absorbing rim."""

    def simulate(now: jax.Array, before: jax.Array, speed: jax.Array) -> tuple[jax.Array, jax.Array]:
        rim = jnp.minimum(jnp.arange(size), jnp.arange(size)[::-1])
        damping = jnp.exp(-jnp.maximum(0.0, 4.0 - rim) * 0.02)
        damping = damping[:, None, None] * damping[:, None] * damping

        def step(
            state: tuple[jax.Array, jax.Array], _: None
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            now, before = state
            padded = jnp.pad(now, 1)
            laplacian = padded[2:, 1:-1, 1:-1] + padded[:-2, 1:-1, 1:-1] + padded[1:-1, 2:, 1:-1]
            laplacian += padded[1:-1, :-2, 1:-1] + padded[1:-1, 1:-1, 2:] + padded[1:-1, 1:-1, :-2]
            following = damping * (2 * now - before + speed * (laplacian - 6 * now))
            return (following, now), following[size // 2, size // 2]

        (last, _), trace = jax.lax.scan(step, (now, before), None, length=steps)
        return last, trace

    field = normal((size, size, size), scale=0.1)
    return simulate, (field, field, uniform((size, size, size), 0.05, 0.15))


def reaction_diffusion(*, size: int, dtype: str = "float32") -> Built:
    """One Gray–Scott step with the nine-point Laplacian as a convolution."""

    def step(u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        kernel = jnp.array([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]], u.dtype)

        def laplacian(a: jax.Array) -> jax.Array:
            wrapped = jnp.pad(a, 1, mode="wrap")
            return jax.lax.conv(wrapped[None, None], kernel[None, None], (1, 1), "VALID")[0, 0]

        reaction = u * v * v
        u = u + laplacian(u) - reaction + 0.055 * (1 - u)
        return u, v + 0.5 * laplacian(v) + reaction - (0.055 + 0.062) * v

    return step, (uniform((size, size), 0.0, 1.0, dtype=dtype), uniform((size, size), 0.0, 1.0, dtype=dtype))


def rigid_rotations(*, bodies: int) -> Built:
    """Integrates quaternions and angular velocities, and rotates eight corners of each body."""

    def step(q: jax.Array, spin: jax.Array, inertia: jax.Array, corners: jax.Array) -> tuple[jax.Array, ...]:
        spin = spin - 0.01 * jnp.cross(spin, inertia * spin) / inertia
        w, x, y, z = (q[:, i] for i in range(4))
        a, b, c = (spin[:, i] for i in range(3))
        rate = jnp.stack(
            [-x * a - y * b - z * c, w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a], -1
        )
        q = q + 0.005 * rate
        q = q / jnp.linalg.norm(q, axis=-1, keepdims=True)
        v = q[:, None, 1:]
        turned = corners + 2 * jnp.cross(v, jnp.cross(v, corners) + q[:, None, :1] * corners)
        return q, spin, turned.min(1), turned.max(1)

    inputs = (
        normal((bodies, 4)),
        normal((bodies, 3)),
        uniform((bodies, 3), 0.5, 2.0),
        normal((bodies, 8, 3)),
    )
    return step, inputs
