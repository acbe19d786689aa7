"""Graph networks: message passing, attention over edges, interaction of particles."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from kernelcast.zoo.inputs import indices, normal, sorted_indices, weight
from kernelcast.zoo.layers import cross_entropy, dense, dense_parameters, layer_norm, norm_parameters
from kernelcast.zoo.program import Built
from kernelcast.zoo.steps import Tree, train


def message_passing(*, nodes: int, edges: int, features: int, optimiser: str | None = None) -> Built:
    """Edge and node networks with sums over incoming edges (Battaglia et al. 2018)."""

    def forward(p: Tree, x: jax.Array, e: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
        for layer in p["layers"]:
            joined = jnp.concatenate([e, x[senders], x[receivers]], -1)
            e = e + layer_norm(
                layer["norm"], dense(layer["edge2"], jax.nn.relu(dense(layer["edge1"], joined)))
            )
            received = jax.ops.segment_sum(e, receivers, nodes)
            x = x + dense(
                layer["node2"], jax.nn.relu(dense(layer["node1"], jnp.concatenate([x, received], -1)))
            )
        return dense(p["head"], x)

    def loss(p: Tree, x: jax.Array, e: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
        return jnp.square(forward(p, x, e, senders, receivers)).mean()

    layer = {
        "edge1": dense_parameters(3 * features, features),
        "edge2": dense_parameters(features, features),
        "norm": norm_parameters(features),
        "node1": dense_parameters(2 * features, features),
        "node2": dense_parameters(features, features),
    }
    parameters = {"layers": [layer, layer], "head": dense_parameters(features, 3)}
    ends = (indices((edges,), below=nodes), sorted_indices((edges,), below=nodes))
    inputs = (normal((nodes, features)), normal((edges, features)), *ends)
    return (
        (forward, (parameters, *inputs)) if optimiser is None else train(optimiser, loss, parameters, *inputs)
    )


def graph_convolution(*, nodes: int, edges: int, features: int, optimiser: str | None = None) -> Built:
    """Two layers with symmetric degree normalisation and mean pooling (Kipf & Welling 2017)."""

    def forward(p: Tree, x: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
        ones = jnp.ones((edges,))
        out_degree = jax.lax.rsqrt(jnp.maximum(jax.ops.segment_sum(ones, senders, nodes), 1))
        in_degree = jax.lax.rsqrt(jnp.maximum(jax.ops.segment_sum(ones, receivers, nodes), 1))
        for name in ("d1", "d2"):
            sent = (dense(p[name], x) * out_degree[:, None])[senders]
            x = jax.nn.relu(jax.ops.segment_sum(sent, receivers, nodes) * in_degree[:, None])
        return dense(p["head"], x)

    def loss(p: Tree, x: jax.Array, senders: jax.Array, receivers: jax.Array, labels: jax.Array) -> jax.Array:
        return cross_entropy(forward(p, x, senders, receivers), labels)

    parameters = {
        "d1": dense_parameters(features, features),
        "d2": dense_parameters(features, features),
        "head": dense_parameters(features, 7),
    }
    ends = indices((edges,), below=nodes)
    inputs = (normal((nodes, features)), ends, ends)
    if optimiser is None:
        return forward, (parameters, *inputs)
    return train(optimiser, loss, parameters, *inputs, indices((nodes,), below=7))


def graph_attention(*, nodes: int, edges: int, features: int, heads: int) -> Built:
    """Softmax over the incoming edges of each node (Veličković et al. 2018)."""

    def forward(p: Tree, x: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
        h = (x @ p["w"]).reshape(nodes, heads, features)
        from_sender, from_receiver = (h * p["a"]).sum(-1), (h * p["b"]).sum(-1)
        scores = jax.nn.leaky_relu(from_sender[senders] + from_receiver[receivers], 0.2)
        largest = jax.ops.segment_max(scores, receivers, nodes)
        weights = jnp.exp(scores - largest[receivers])
        total = jax.ops.segment_sum(weights, receivers, nodes)
        weights = weights / (total[receivers] + 1e-9)
        return jax.nn.elu(jax.ops.segment_sum(h[senders] * weights[..., None], receivers, nodes).mean(1))

    parameters = {
        "w": weight(features, heads * features),
        "a": normal((heads, features), scale=0.2),
        "b": normal((heads, features), scale=0.2),
    }
    ends = (indices((edges,), below=nodes), sorted_indices((edges,), below=nodes))
    return forward, (parameters, normal((nodes, features)), *ends)
