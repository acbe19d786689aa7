"""Spectra: mel features of speech, deconvolution in the frequency domain."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from kernelcast.zoo.inputs import constant, normal, uniform
from kernelcast.zoo.program import Built


def mel_spectrogram(*, batch: int, samples: int, window: int, bands: int) -> Built:
    """Framed, windowed Fourier transform, power, mel bands, log and cepstrum."""
    hop = window // 2
    frames = (samples - window) // hop + 1

    def analyse(signal: jax.Array, bank: jax.Array, cosines: jax.Array) -> tuple[jax.Array, jax.Array]:
        start = jnp.arange(frames)[:, None] * hop + jnp.arange(window)
        hann = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(window) / window)
        emphasised = signal - 0.97 * jnp.roll(signal, 1, -1)
        spectrum = jnp.fft.rfft(emphasised[:, start] * hann)
        power = jnp.square(spectrum.real) + jnp.square(spectrum.imag)
        mel = jnp.log(power @ bank + 1e-6)
        mel = (mel - mel.mean(1, keepdims=True)) / (mel.std(1, keepdims=True) + 1e-5)
        return mel, mel @ cosines

    bank = uniform((window // 2 + 1, bands), 0.0, 0.1)
    return analyse, (normal((batch, samples)), bank, normal((bands, 13)))


def fourier_filter(*, size: int) -> Built:
    """Wiener deconvolution of an image in the frequency domain, complex arithmetic in between."""

    def restore(image: jax.Array, kernel: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        spectrum, response = jnp.fft.rfft2(image), jnp.fft.rfft2(kernel)
        power = jnp.square(jnp.abs(response))
        restored = jnp.conj(response) * spectrum / (power + noise)
        phase = jnp.angle(restored) * jnp.log1p(jnp.abs(restored))
        return jnp.fft.irfft2(restored), phase

    return restore, (normal((size, size)), normal((size, size)), constant(0.1))
