"""The network of the paper's section 4, whole: opcodes, features and edges in, one number per kernel out.

For the fusion task the number is standardised log seconds; for the tile task it is one score per tile. The
tile's columns stand on every node, as in the paper, so they reach the first layer only as a sum that is the
same for all nodes: the linear map is applied to graph and tiles apart, once each, and what follows carries an
axis of tiles. That is the same function as a graph per tile, without its copies.

Reading of equation 1, which leaves two things open. (1) f_k stands there twice, around the concatenation and
on each neighbour; we take two layers, ``combine`` and one per direction of edge. (2) *neighbours* of a
directed graph may be producers, consumers, or both; ``Direction`` chooses, and for both the two reductions
are concatenated, so that the direction is kept:

    ε_i^0 = f(X_i)
    ε_i^k = l2norm(f_k(concat(ε_i^(k−1), reduce_j f_k'(ε_j^(k−1)))))

A feed-forward layer is one linear map and a rectifier. Where options depart from the paper, they say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kernelcast.model.batch import GraphBatch, TileBatch


class Direction(StrEnum):
    """Whose embeddings a node gathers."""

    PRODUCERS = "producers"
    CONSUMERS = "consumers"
    BOTH = "both"


class Reduction(StrEnum):
    """How several embeddings become one."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"


class Normalisation(StrEnum):
    """What follows each graph layer: the paper's L2 norm, or the root mean square with a learned scale."""

    L2 = "l2"
    RMS = "rms"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Shape of the network; the defaults are the paper's network.

    Attributes:
        opcode_width: numbers of an opcode's embedding.
        width: numbers of a node's embedding.
        hops: graph layers, k.
        direction: of the edges followed.
        neighbours: reduction over a node's neighbours, SUM or MEAN.
        pooling: reductions over the nodes whose results are concatenated to the kernel embedding.
        normalisation: after each graph layer.
        residual: adds a layer's input to its output (not in the paper).
        hidden: width of hidden layers between kernel embedding and output; empty: linear, as in the paper.
        static: whether the kernel's static features join the kernel embedding, and reach the output by a
            linear map of their own besides (not in the paper).
        dropout: fraction of node embeddings' numbers dropped in training (not in the paper).
    """

    opcode_width: int = 32
    width: int = 64
    hops: int = 3
    direction: Direction = Direction.BOTH
    neighbours: Reduction = Reduction.SUM
    pooling: tuple[Reduction, ...] = (Reduction.MEAN, Reduction.MAX)
    normalisation: Normalisation = Normalisation.L2
    residual: bool = False
    hidden: tuple[int, ...] = ()
    static: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.neighbours is Reduction.MAX:
            raise ValueError("neighbours is reduced by sum or mean; max has no dense form here")
        if not self.pooling:
            raise ValueError("pooling needs at least one of sum, mean, max")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")


class Dense(eqx.Module):
    """A linear map of the last axis, with a bias."""

    weight: Float[Array, "input output"]
    bias: Float[Array, " output"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray, gain: float = 2.0) -> None:
        self.weight = jax.random.normal(key, (inputs, outputs)) * math.sqrt(gain / max(1, inputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "*axes input"]) -> Float[Array, "*axes output"]:
        return x @ self.weight + self.bias


class GraphLayer(eqx.Module):
    """One hop of equation 1."""

    producers: Dense | None
    consumers: Dense | None
    combine: Dense
    scale: Float[Array, " width"]
    neighbours: Reduction = eqx.field(static=True)
    normalisation: Normalisation = eqx.field(static=True)
    residual: bool = eqx.field(static=True)

    def __init__(self, config: NetworkConfig, *, key: PRNGKeyArray) -> None:
        width = config.width
        keys = jax.random.split(key, 3)
        follows = config.direction
        self.producers = None if follows is Direction.CONSUMERS else Dense(width, width, key=keys[0])
        self.consumers = None if follows is Direction.PRODUCERS else Dense(width, width, key=keys[1])
        parts = 1 + (self.producers is not None) + (self.consumers is not None)
        self.combine = Dense(parts * width, width, key=keys[2])
        self.scale = jnp.ones(width)
        self.neighbours = config.neighbours
        self.normalisation = config.normalisation
        self.residual = config.residual

    def __call__(
        self, nodes: Float[Array, "kernel node *tile width"], incoming: Float[Array, "kernel node node"]
    ) -> Float[Array, "kernel node *tile width"]:
        parts = [nodes]
        if self.producers is not None:
            parts.append(self._gather(incoming, self.producers(nodes)))
        if self.consumers is not None:
            parts.append(self._gather(jnp.swapaxes(incoming, 1, 2), self.consumers(nodes)))
        made = jax.nn.relu(self.combine(jnp.concatenate(parts, axis=-1)))  # kernel node *tile width
        if self.normalisation is Normalisation.L2:
            made = made * jax.lax.rsqrt(jnp.sum(made**2, axis=-1, keepdims=True) + 1e-12)
        else:
            made = made * jax.lax.rsqrt(jnp.mean(made**2, axis=-1, keepdims=True) + 1e-5) * self.scale
        return nodes + made if self.residual else made

    def _gather(
        self, adjacency: Float[Array, "kernel node node"], messages: Float[Array, "kernel node *tile width"]
    ) -> Float[Array, "kernel node *tile width"]:
        kernels, nodes = messages.shape[:2]
        # All tiles of a kernel have the same edges: one product serves them.
        flat = jax.nn.relu(messages).reshape(kernels, nodes, -1)
        gathered = adjacency @ flat  # kernel node (*tile width)
        if self.neighbours is Reduction.MEAN:
            gathered = gathered / jnp.maximum(adjacency.sum(axis=-1, keepdims=True), 1.0)
        return gathered.reshape(messages.shape)


class KernelNetwork(eqx.Module):
    """(log seconds − centre) / spread of kernels, centre and spread being the ``Trained``'s; or, trained with
    a rank loss, scores of tiles: lower is faster.

    >>> network = KernelNetwork(
    ...     NetworkConfig(width=8), opcode_count=4, node_features=3, kernel_features=2, key=jax.random.key(0)
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
    layers: tuple[GraphLayer, ...]
    hidden: tuple[Dense, ...]
    last: Dense
    direct: Dense | None
    config: NetworkConfig = eqx.field(static=True)

    def __init__(
        self,
        config: NetworkConfig,
        *,
        opcode_count: int,
        node_features: int,
        kernel_features: int,
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(key, 4 + config.hops + len(config.hidden))
        self.config = config
        self.opcodes = jax.random.normal(keys[0], (opcode_count, config.opcode_width)) * 0.3
        self.first = Dense(config.opcode_width + node_features, config.width, key=keys[1])
        self.layers = tuple(GraphLayer(config, key=k) for k in keys[4 : 4 + config.hops])
        widths = [
            len(config.pooling) * config.width + (kernel_features if config.static else 0),
            *config.hidden,
        ]
        self.hidden = tuple(
            Dense(a, b, key=k)
            for a, b, k in zip(widths[:-1], widths[1:], keys[4 + config.hops :], strict=True)
        )
        self.last = Dense(widths[-1], 1, key=keys[2], gain=0.01)
        self.direct = Dense(kernel_features, 1, key=keys[3], gain=0.01) if config.static else None

    def __call__(
        self, batch: GraphBatch, tiles: TileBatch | None = None, *, key: PRNGKeyArray | None = None
    ) -> Float[Array, " kernel *tile"]:
        """One number per kernel, or per kernel and tile; those of padding have no meaning.

        Args:
            batch: scaled inputs.
            tiles: scaled tiles of each kernel, which stand in for the tile columns of the batch's rows.
            key: for dropout; None outside training.
        """
        mask, incoming = jnp.asarray(batch.mask), jnp.asarray(batch.incoming)
        nodes = node_embeddings(self.opcodes, self.first, batch, tiles)  # kernel node *tile width
        real = _beside(mask, nodes)
        nodes = nodes * real
        for number, layer in enumerate(self.layers):
            nodes = layer(nodes, incoming) * real
            if key is not None and self.config.dropout > 0:
                keep = jax.random.bernoulli(
                    jax.random.fold_in(key, number), 1 - self.config.dropout, nodes.shape
                )
                nodes = jnp.where(keep, nodes / (1 - self.config.dropout), 0.0)
        kernel = self._pool(nodes, mask)  # kernel *tile pooled
        static = jnp.asarray(batch.static)
        if self.config.static:
            shown = static if tiles is None else static[:, None]
            shown = jnp.broadcast_to(shown, (*kernel.shape[:-1], static.shape[-1]))
            kernel = jnp.concatenate([kernel, shown], axis=-1)
        for dense in self.hidden:
            kernel = jax.nn.relu(dense(kernel))
        made = self.last(kernel)[..., 0]  # kernel *tile
        if self.direct is None:
            return made
        direct = self.direct(static)
        return made + (direct[:, 0] if tiles is None else direct)

    def _pool(
        self, nodes: Float[Array, "kernel node *tile width"], mask: Bool[Array, "kernel node"]
    ) -> Float[Array, "kernel *tile pooled"]:
        """The chosen combination of sum, mean and max over a kernel's nodes."""
        real = _beside(mask, nodes)
        total = nodes.sum(axis=1)
        pooled: list[Array] = []
        for reduction in self.config.pooling:
            if reduction is Reduction.SUM:
                pooled.append(total)
            elif reduction is Reduction.MEAN:
                pooled.append(total / jnp.maximum(real.sum(axis=1), 1))
            else:
                lowest = jnp.where(real.any(axis=1, keepdims=True), -jnp.inf, 0.0)  # 0 for padding kernels
                pooled.append(jnp.where(real, nodes, lowest).max(axis=1))
        return jnp.concatenate(pooled, axis=-1)


def node_embeddings(
    opcodes: Float[Array, "opcode embedding"], first: Dense, batch: GraphBatch, tiles: TileBatch | None
) -> Float[Array, "kernel node *tile width"]:
    """f(X): the feed-forward layer over each node's opcode embedding and features, ε⁰ of equation 1."""
    joined = jnp.concatenate([opcodes[batch.opcodes], batch.rows], axis=-1)  # kernel node (embedding feature)
    if tiles is None:
        return jax.nn.relu(first(joined))
    slots = opcodes.shape[1] + jnp.asarray(tiles.columns)
    graph = joined @ first.weight.at[slots].set(0.0) + first.bias  # kernel node width
    tile = jnp.asarray(tiles.values) @ first.weight[slots]  # kernel tile width
    return jax.nn.relu(graph[:, :, None] + tile[:, None])


def _beside(
    mask: Bool[Array, "kernel node"], nodes: Float[Array, "kernel node *tile width"]
) -> Bool[Array, "kernel node *one"]:
    """The mask with axes of length one where the embeddings have tiles and width."""
    return mask.reshape(*mask.shape, *(1,) * (nodes.ndim - 2))
