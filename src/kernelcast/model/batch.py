"""Padded batches of kernel graphs in few shapes.

A batch holds kernels of one size class, each padded to the same number of nodes, with a dense adjacency. The
kernels are small (ten nodes in the middle), so a product with a 16 × 16 matrix costs less on a CPU than
gathering and scattering rows, and no kernel can touch another: every operation keeps the kernel axis. The
number of kernels in a batch follows from a node budget, so each size class is one compiled shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from kernelcast.features.graph import KernelGraph
from kernelcast.features.scaling import Scaling

SMALLEST_CLASS = 8
# NumPy on the way in, JAX inside compiled functions.
_Held = Array | np.ndarray


class GraphBatch(NamedTuple):
    """Inputs of the network; a kernel whose mask is all false is padding.

    Attributes:
        opcodes: rows of the opcode table; 0 for padding.
        rows: scaled node features.
        mask: whether a node is real.
        incoming: how many operand slots of the first node the second one feeds.
        static: scaled kernel features.
    """

    opcodes: Int[_Held, "kernel node"]
    rows: Float[_Held, "kernel node feature"]
    mask: Bool[_Held, "kernel node"]
    incoming: Float[_Held, "kernel node node"]
    static: Float[_Held, "kernel static"]


class TileBatch(NamedTuple):
    """The tiles of a batch's kernels, for the network.

    Attributes:
        values: scaled tile columns; a tile that is only padding holds anything.
        columns: which of the node features these are.
    """

    values: Float[_Held, "kernel tile column"]
    columns: Int[_Held, " column"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledGraph:
    """A kernel graph after scaling, ready to be padded.

    Attributes:
        opcodes: (node,) int32.
        rows: (node, feature) float32 scaled.
        senders, receivers: (edge,) int32.
        static: (kernel feature,) float32 scaled.
    """

    opcodes: np.ndarray
    rows: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    static: np.ndarray

    @property
    def node_count(self) -> int:
        return len(self.opcodes)


def scaled_graphs(graphs: Sequence[KernelGraph], scaling: Scaling) -> list[ScaledGraph]:
    """Graphs as the network reads them; all rows are scaled in one pass."""
    if not graphs:
        return []
    rows = scaling.node.apply(np.concatenate([g.rows for g in graphs]))
    static = scaling.kernel.apply(np.stack([g.kernel for g in graphs]))
    ends = np.cumsum([g.node_count for g in graphs])
    return [
        ScaledGraph(
            opcodes=g.opcodes,
            rows=rows[end - g.node_count : end],
            senders=g.senders,
            receivers=g.receivers,
            static=static[k],
        )
        for k, (g, end) in enumerate(zip(graphs, ends, strict=True))
    ]


def size_class(node_count: int) -> int:
    """Nodes that a kernel is padded to: the next power of two, at least 8.

    >>> size_class(3), size_class(8), size_class(9), size_class(600)
    (8, 8, 16, 1024)
    """
    return max(SMALLEST_CLASS, 1 << max(0, node_count - 1).bit_length())


def kernels_per_batch(nodes: int, node_budget: int) -> int:
    """Kernels in a batch of one size class; a kernel larger than the budget gets a batch of its own."""
    return max(1, node_budget // nodes)


def batch(graphs: Sequence[ScaledGraph], *, nodes: int, kernels: int) -> GraphBatch:
    """The graphs, padded to (kernels, nodes).

    Raises:
        ValueError: more graphs than kernels, a graph larger than nodes, or no graph.
    """
    if not 0 < len(graphs) <= kernels:
        raise ValueError(f"a batch of {kernels} kernels holds 1 to {kernels} graphs, got {len(graphs)}")
    if max(g.node_count for g in graphs) > nodes:
        raise ValueError(f"a batch of {nodes} nodes a kernel cannot hold a graph of more")
    width, static_width = graphs[0].rows.shape[1], graphs[0].static.shape[0]
    opcodes = np.zeros((kernels, nodes), dtype=np.int32)
    rows = np.zeros((kernels, nodes, width), dtype=np.float32)
    mask = np.zeros((kernels, nodes), dtype=np.bool_)
    incoming = np.zeros((kernels, nodes, nodes), dtype=np.float32)
    static = np.zeros((kernels, static_width), dtype=np.float32)
    for k, graph in enumerate(graphs):
        count = graph.node_count
        opcodes[k, :count] = graph.opcodes
        rows[k, :count] = graph.rows
        mask[k, :count] = True
        np.add.at(incoming[k], (graph.receivers, graph.senders), 1.0)
        static[k] = graph.static
    return GraphBatch(opcodes=opcodes, rows=rows, mask=mask, incoming=incoming, static=static)


def unbatch(made: GraphBatch) -> list[ScaledGraph]:
    """The graphs of a batch, padding removed. Repeated edges come together, in order of receiver."""
    graphs: list[ScaledGraph] = []
    for k in range(made.mask.shape[0]):
        count = int(np.asarray(made.mask[k]).sum())
        if count:
            counts = np.asarray(made.incoming[k][:count, :count]).astype(np.int64)
            receivers, senders = np.nonzero(counts)
            repeats = counts[receivers, senders]
            graphs.append(
                ScaledGraph(
                    opcodes=np.asarray(made.opcodes[k][:count]),
                    rows=np.asarray(made.rows[k][:count]),
                    senders=np.repeat(senders, repeats).astype(np.int32),
                    receivers=np.repeat(receivers, repeats).astype(np.int32),
                    static=np.asarray(made.static[k]),
                )
            )
    return graphs


def batches(
    graphs: Sequence[ScaledGraph], *, node_budget: int, order: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, GraphBatch]]:
    """(numbers of the graphs, their batch), size class by size class.

    Args:
        graphs: any number, of any sizes.
        node_budget: nodes of one batch, padding included.
        order: (graph,) numbers in the order in which graphs are taken; as given where None.
    """
    classes: dict[int, list[int]] = defaultdict(list)
    for number in range(len(graphs)) if order is None else order:
        classes[size_class(graphs[number].node_count)].append(int(number))
    for nodes in sorted(classes):
        kernels = kernels_per_batch(nodes, node_budget)
        held = classes[nodes]
        for start in range(0, len(held), kernels):
            numbers = held[start : start + kernels]
            made = batch([graphs[n] for n in numbers], nodes=nodes, kernels=kernels)
            yield np.array(numbers, dtype=np.int64), made
