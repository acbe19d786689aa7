"""Recurrent nets: LSTM and GRU language models, WaveRNN, characters to features, translation, state space."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from kernelcast.zoo.inputs import indices, normal, random_key, uniform, weight
from kernelcast.zoo.layers import (
    convolution,
    cross_entropy,
    dense,
    dense_parameters,
    layer_norm,
    norm_parameters,
)
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def _lstm_cell(p: Tree, state: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    h, c = state
    i, f, g, o = jnp.split(dense(p, jnp.concatenate([x, h], -1)), 4, -1)
    c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def _gru_cell(p: Tree, h: jax.Array, x: jax.Array) -> jax.Array:
    from_input, from_state = dense(p["x"], x), dense(p["h"], h)
    xr, xz, xn = jnp.split(from_input, 3, -1)
    hr, hz, hn = jnp.split(from_state, 3, -1)
    z = jax.nn.sigmoid(xz + hz)
    return (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn) + z * h


def _gru_parameters(inputs: int, features: int) -> Tree:
    return {"x": dense_parameters(inputs, 3 * features), "h": dense_parameters(features, 3 * features)}


def _run_lstm(p: Tree, x: jax.Array, *, reverse: bool = False) -> jax.Array:
    """Outputs of an LSTM over ``batch length feature``."""
    features = p["b"].shape[0] // 4
    zeros = jnp.zeros((x.shape[0], features), x.dtype)

    def step(
        state: tuple[jax.Array, jax.Array], x: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        h, c = _lstm_cell(p, state, x)
        return (h, c), h

    return lax.scan(step, (zeros, zeros), x.swapaxes(0, 1), reverse=reverse)[1].swapaxes(0, 1)


def _run_gru(p: Tree, x: jax.Array, *, reverse: bool = False) -> jax.Array:
    """Outputs of a GRU over ``batch length feature``."""
    features = p["h"]["b"].shape[0] // 3

    def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = _gru_cell(p, h, x)
        return h, h

    zeros = jnp.zeros((x.shape[0], features), x.dtype)
    return lax.scan(step, zeros, x.swapaxes(0, 1), reverse=reverse)[1].swapaxes(0, 1)


def language_model(
    *, cell: str, batch: int, length: int, features: int, vocabulary: int = 500, optimiser: str | None = None
) -> Built:
    """Embedding, one recurrent layer, projection to words; ``cell`` is ``lstm`` or ``gru``."""
    run = {"lstm": _run_lstm, "gru": _run_gru}[cell]

    def forward(p: Tree, tokens: jax.Array) -> jax.Array:
        return dense(p["head"], run(p["cell"], p["word"][tokens]))

    def loss(p: Tree, tokens: jax.Array) -> jax.Array:
        return cross_entropy(forward(p, tokens)[:, :-1], tokens[:, 1:])

    lstm = dense_parameters(2 * features, 4 * features)
    parameters = {
        "word": normal((vocabulary, features), scale=0.1),
        "cell": lstm if cell == "lstm" else _gru_parameters(features, features),
        "head": dense_parameters(features, vocabulary),
    }
    tokens = indices((batch, length), below=vocabulary)
    return (
        (forward, (parameters, tokens)) if optimiser is None else train(optimiser, loss, parameters, tokens)
    )


def unrolled_lstm(*, batch: int, inputs: int, features: int, steps: int) -> Built:
    """A few LSTM steps without a loop, as a streaming recogniser runs them."""

    def forward(p: Tree, x: jax.Array, h: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
        for _ in range(steps):
            h, c = _lstm_cell(p, (h, c), x)
        return h, c

    state = normal((batch, features))
    return forward, (dense_parameters(inputs + features, 4 * features), normal((batch, inputs)), state, state)


def wavernn(*, batch: int, length: int, features: int, optimiser: str | None = None) -> Built:
    """Coarse and fine halves of audio samples from one split GRU (Kalchbrenner et al. 2018)."""
    conditions = 20

    def forward(p: Tree, mel: jax.Array, samples: jax.Array) -> tuple[jax.Array, jax.Array]:
        inputs = jnp.concatenate([samples.astype(jnp.float32) / 127.5 - 1.0, dense(p["mel"], mel)], -1)

        def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            r, u, e = jnp.split(h @ p["recurrent"], 3, -1)
            xr, xu, xe = jnp.split(dense(p["input"], x), 3, -1)
            u = jax.nn.sigmoid(u + xu)
            h = u * h + (1 - u) * jnp.tanh(jax.nn.sigmoid(r + xr) * e + xe)
            coarse, fine = jnp.split(h, 2, -1)
            coarse = dense(p["coarse2"], jax.nn.relu(dense(p["coarse1"], coarse)))
            return h, (coarse, dense(p["fine2"], jax.nn.relu(dense(p["fine1"], fine))))

        return lax.scan(step, jnp.zeros((batch, features)), inputs.swapaxes(0, 1))[1]

    def loss(p: Tree, mel: jax.Array, samples: jax.Array) -> jax.Array:
        coarse, fine = forward(p, mel, samples)
        labels = samples.swapaxes(0, 1)
        return cross_entropy(coarse, labels[..., 0]) + cross_entropy(fine, labels[..., 1])

    half = features // 2
    parameters = {
        "mel": dense_parameters(40, conditions),
        "recurrent": weight(features, 3 * features),
        "input": dense_parameters(conditions + 2, 3 * features),
        "coarse1": dense_parameters(half, half),
        "coarse2": dense_parameters(half, 256),
        "fine1": dense_parameters(half, half),
        "fine2": dense_parameters(half, 256),
    }
    inputs = (normal((batch, length, 40)), indices((batch, length, 2), below=256))
    return (
        (forward, (parameters, *inputs)) if optimiser is None else train(optimiser, loss, parameters, *inputs)
    )


def wavernn_sample(*, batch: int, length: int, features: int) -> Built:
    """Draws one sample after the other, each fed back."""

    def generate(p: Tree, conditions: jax.Array, key: jax.Array) -> jax.Array:
        def step(carry: Tree, condition: jax.Array) -> tuple[Tree, jax.Array]:
            h, last, key = carry
            key, drawn = jax.random.split(key)
            h = _gru_cell(p["cell"], h, jnp.concatenate([last[:, None], condition], -1))
            level = jax.random.categorical(drawn, dense(p["head"], h))
            return (h, level / 31.5 - 1.0, key), level

        start = (jnp.zeros((batch, features)), jnp.zeros((batch,)), key)
        return lax.scan(step, start, conditions.swapaxes(0, 1))[1]

    parameters = {"cell": _gru_parameters(17, features), "head": dense_parameters(features, 64)}
    return generate, (parameters, normal((batch, length, 16)), random_key())


def char2feats(
    *, batch: int, characters: int, frames: int, features: int, optimiser: str | None = None
) -> Built:
    """Characters to acoustic features: convolution bank, highway, GRU, attention (Wang et al. 2017)."""

    def forward(p: Tree, text: jax.Array, previous: jax.Array) -> jax.Array:
        e = jax.nn.relu(dense(p["prenet"], p["letter"][text]))
        bank = [jax.nn.relu(convolution(w[None], e[:, None])[:, 0]) for w in p["bank"]]
        h = layer_norm(p["norm"], dense(p["project"], jnp.concatenate(bank, -1))) + e
        gate = jax.nn.sigmoid(dense(p["gate"], h))
        h = gate * jax.nn.relu(dense(p["highway"], h)) + (1 - gate) * h
        h = jnp.concatenate([_run_gru(p["forth"], h), _run_gru(p["back"], h, reverse=True)], -1)
        query = jax.nn.relu(dense(p["query"], previous))
        scores = jnp.einsum("btf,bsf->bts", query, dense(p["key"], h)) * features**-0.5
        return dense(p["head"], jnp.concatenate([query, jax.nn.softmax(scores) @ h], -1))

    def loss(p: Tree, text: jax.Array, previous: jax.Array) -> jax.Array:
        return jnp.abs(forward(p, text, previous) - previous).mean()

    parameters = {
        "letter": normal((64, features), scale=0.3),
        "prenet": dense_parameters(features, features),
        "bank": [weight(width, features, features) for width in (1, 2, 3)],
        "project": dense_parameters(3 * features, features),
        "norm": norm_parameters(features),
        "gate": dense_parameters(features, features),
        "highway": dense_parameters(features, features),
        "forth": _gru_parameters(features, features // 2),
        "back": _gru_parameters(features, features // 2),
        "query": dense_parameters(40, features),
        "key": dense_parameters(features, features),
        "head": dense_parameters(2 * features, 40),
    }
    inputs = (indices((batch, characters), below=64), normal((batch, frames, 40)))
    return (
        (forward, (parameters, *inputs)) if optimiser is None else train(optimiser, loss, parameters, *inputs)
    )


def translation(
    *, batch: int, length: int, features: int, vocabulary: int = 400, optimiser: str | None = None
) -> Built:
    """Bidirectional LSTM encoder, LSTM decoder with additive attention (Bahdanau et al. 2015)."""

    def forward(p: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
        e = p["word"][source]
        encoded = jnp.concatenate([_run_lstm(p["forth"], e), _run_lstm(p["back"], e, reverse=True)], -1)
        keys = dense(p["key"], encoded)

        def step(carry: Tree, word: jax.Array) -> tuple[Tree, jax.Array]:
            context, h, c = carry
            h, c = _lstm_cell(p["decoder"], (h, c), jnp.concatenate([word, context], -1))
            scores = jnp.tanh(keys + dense(p["query"], h)[:, None]) @ p["score"]
            weights = jax.nn.softmax(jnp.where(source > 0, scores, -1e9))
            context = jnp.einsum("bs,bsf->bf", weights, encoded)
            return (context, h, c), jnp.concatenate([h, context], -1)

        zeros = jnp.zeros((batch, features))
        _, outputs = lax.scan(step, (zeros, zeros, zeros), p["word"][target].swapaxes(0, 1))
        return dense(p["head"], outputs).swapaxes(0, 1)

    def loss(p: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
        return cross_entropy(forward(p, source, target)[:, :-1], target[:, 1:])

    half = features // 2
    parameters = {
        "word": normal((vocabulary, features), scale=0.2),
        "forth": dense_parameters(features + half, 4 * half),
        "back": dense_parameters(features + half, 4 * half),
        "key": dense_parameters(features, features),
        "query": dense_parameters(features, features),
        "score": normal((features,), scale=features**-0.5),
        "decoder": dense_parameters(3 * features, 4 * features),
        "head": dense_parameters(2 * features, vocabulary),
    }
    tokens = indices((batch, length), below=vocabulary)
    if optimiser is None:
        return forward, (parameters, tokens, tokens)
    return train(optimiser, loss, parameters, tokens, tokens)


def mamba(*, batch: int, length: int, features: int, states: int, optimiser: str | None = None) -> Built:
    """A selective state-space block, its recurrence as an associative scan (Gu & Dao 2023)."""

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        h, gate = jnp.split(x @ p["in"], 2, -1)
        padded = jnp.pad(h, ((0, 0), (3, 0), (0, 0)))
        h = jax.nn.silu(sum(padded[:, i : i + length] * p["conv"][i] for i in range(4)) + p["conv_bias"])
        step = jax.nn.softplus(h @ p["step"] + p["step_bias"])
        into, out = jnp.split(h @ p["select"], 2, -1)
        decay = jnp.exp(step[..., None] * -jnp.exp(p["rate"]))
        drive = (step * h)[..., None] * into[:, :, None, :]

        def combine(a: Tree, b: Tree) -> Tree:
            return a[0] * b[0], a[1] * b[0] + b[1]

        _, state = lax.associative_scan(combine, (decay, drive), axis=1)
        y = jnp.einsum("blfs,bls->blf", state, out) + h * p["skip"]
        return x + (y * jax.nn.silu(gate)) @ p["out"]

    def loss(p: Tree, x: jax.Array, target: jax.Array) -> jax.Array:
        return jnp.square(forward(p, x) - target).mean()

    parameters = {
        "in": weight(features, 2 * features),
        "conv": normal((4, features), scale=0.5),
        "conv_bias": normal((features,), scale=0.1),
        "step": weight(features, features),
        "step_bias": uniform((features,), -4.0, -2.0),
        "select": weight(features, 2 * states),
        "rate": uniform((features, states), 0.0, 2.0),
        "skip": normal((features,), mean=1.0, scale=0.1),
        "out": weight(features, features),
    }
    x = normal((batch, length, features))
    return (forward, (parameters, x)) if optimiser is None else train(optimiser, loss, parameters, x, x)
