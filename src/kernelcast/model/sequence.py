"""The paper's sequence baseline (section 6.1): an LSTM over a kernel's nodes in topological order.

A node is embedded exactly as in the graph network, by its opcode, its features and the first feed-forward
layer; what is missing is the graph. Whatever the graph network does better, it does by the edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kernelcast.model.batch import GraphBatch, TileBatch
from kernelcast.model.network import Dense, node_embeddings


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceConfig:
    """Shape of the sequence network.

    Attributes:
        opcode_width: numbers of an opcode's embedding.
        width: numbers of a node's embedding.
        state: numbers of the LSTM's state.
    """

    opcode_width: int = 32
    width: int = 64
    state: int = 64


class SequenceNetwork(eqx.Module):
    """One number per kernel, or per kernel and tile, as ``KernelNetwork`` gives them; reads no edges.

    >>> network = SequenceNetwork(
    ...     SequenceConfig(width=8, state=8), opcode_count=4, node_features=3, kernel_features=2,
    ...     key=jax.random.key(0),
    ... )
    >>> one_of_padding = GraphBatch(
    ...     opcodes=jnp.zeros((1, 8), int), rows=jnp.zeros((1, 8, 3)), mask=jnp.zeros((1, 8), bool),
    ...     incoming=jnp.zeros((1, 8, 8)), static=jnp.zeros((1, 2)),
    ... )
    >>> network(one_of_padding).shape
    (1,)
    """

    opcodes: Float[Array, "opcode embedding"]
    first: Dense
    gates: Dense
    recurrent: Float[Array, "state gate"]
    last: Dense
    config: SequenceConfig = eqx.field(static=True)

    def __init__(
        self,
        config: SequenceConfig,
        *,
        opcode_count: int,
        node_features: int,
        kernel_features: int,
        key: PRNGKeyArray,
    ) -> None:
        del kernel_features  # of the static block, which this network does not read
        keys = jax.random.split(key, 5)
        self.config = config
        self.opcodes = jax.random.normal(keys[0], (opcode_count, config.opcode_width)) * 0.3
        self.first = Dense(config.opcode_width + node_features, config.width, key=keys[1])
        self.gates = Dense(config.width, 4 * config.state, key=keys[2], gain=1.0)
        self.recurrent = jax.random.normal(keys[3], (config.state, 4 * config.state)) * config.state**-0.5
        self.last = Dense(config.state, 1, key=keys[4], gain=0.01)

    def __call__(
        self, batch: GraphBatch, tiles: TileBatch | None = None, *, key: PRNGKeyArray | None = None
    ) -> Float[Array, " kernel *tile"]:
        """One number per kernel, or per kernel and tile; those of padding have no meaning.

        Args:
            batch: scaled inputs; a node comes after all whose values it reads.
            tiles: scaled tiles of each kernel, which stand in for the tile columns of the batch's rows.
            key: unused; this network has no dropout.
        """
        del key
        nodes = node_embeddings(self.opcodes, self.first, batch, tiles)  # kernel node *tile width
        inputs = jnp.moveaxis(self.gates(nodes), 1, 0)  # node kernel *tile gate
        mask = jnp.moveaxis(jnp.asarray(batch.mask), 1, 0).reshape(
            inputs.shape[0], -1, *(1,) * (inputs.ndim - 2)
        )
        state = jnp.zeros((*inputs.shape[1:-1], self.config.state))

        def read(held: tuple[Array, Array], at: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
            output, cell = held
            gate, is_real = at
            enter, forget, leave, value = jnp.split(gate + output @ self.recurrent, 4, axis=-1)
            # The bias of one keeps early gradients alive along the sequence (Jozefowicz et al., 2015).
            new_cell = jax.nn.sigmoid(forget + 1.0) * cell + jax.nn.sigmoid(enter) * jnp.tanh(value)
            new_output = jax.nn.sigmoid(leave) * jnp.tanh(new_cell)
            return (jnp.where(is_real, new_output, output), jnp.where(is_real, new_cell, cell)), None

        (output, _), _ = jax.lax.scan(read, (state, state), (inputs, mask))
        return self.last(output)[..., 0]
