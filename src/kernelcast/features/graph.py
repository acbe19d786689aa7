"""The featuriser: kernels in, graphs of numbers out. The same for training and serving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.features.access import evaluation_sites
from kernelcast.features.flat import FlatKernel, flatten
from kernelcast.features.nodes import NodeRows
from kernelcast.features.opcodes import opcode_id
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.static import kernel_vector, write_kernel_columns
from kernelcast.features.tiles import tile_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGraph:
    """One kernel as numbers: raw, before transforms and scaling.

    Attributes:
        opcodes: (node,) int32 rows of the opcode table.
        rows: (node, feature) float32 in the schema's node columns.
        senders, receivers: (edge,) int32; the receiver reads the sender's value. One edge per operand slot.
        slots: (edge,) int32 operand number.
        kernel: (kernel feature,) float32 in the schema's kernel columns.
    """

    opcodes: np.ndarray
    rows: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    slots: np.ndarray
    kernel: np.ndarray

    @property
    def node_count(self) -> int:
        return len(self.opcodes)

    @property
    def edge_count(self) -> int:
        return len(self.senders)


class Featuriser:
    """Makes graphs of kernels under schema ``kernelcast-1``; remembers the rows of instructions seen.

    >>> from kernelcast.fusion.extract import kernel_from_text
    >>> kernel = kernel_from_text("HloModule k ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] tanh(x) }")
    >>> graph = Featuriser().graph(kernel)
    >>> graph.node_count, graph.edge_count, graph.rows.shape == (2, len(KERNELCAST_1.node))
    (2, 1, True)
    """

    def __init__(self) -> None:
        self._rows = NodeRows()

    def graph(self, kernel: Kernel, tile: Tile | None = None) -> KernelGraph:
        """The graph of one kernel, with the bounds of a tile on every node where one is given."""
        return self.graph_of_flat(flatten(kernel), tile)

    def graphs(self, kernels: Sequence[Kernel]) -> list[KernelGraph]:
        """The graphs of several kernels, in order."""
        return [self.graph(kernel) for kernel in kernels]

    def graph_of_flat(self, kernel: FlatKernel, tile: Tile | None = None) -> KernelGraph:
        """The graph of a flattened kernel: what ``graph`` does after flattening."""
        shapes = [instruction.shape for instruction in kernel.instructions]
        rows = np.stack([
            self._rows.row(instruction, [shapes[o] for o in operands], reducer)
            for instruction, operands, reducer in zip(
                kernel.instructions, kernel.operands, kernel.reducers, strict=True
            )
        ])  # fmt: skip
        write_kernel_columns(rows, kernel, evaluation_sites(kernel))
        if tile is not None:
            rows[:, KERNELCAST_1.tile_columns] = tile_rows([tile])
        edges = [
            (sender, receiver, slot)
            for receiver, operands in enumerate(kernel.operands)
            for slot, sender in enumerate(operands)
        ]
        columns = np.array(edges, dtype=np.int32).reshape(-1, 3).T
        return KernelGraph(
            opcodes=np.array([opcode_id(i.opcode) for i in kernel.instructions], dtype=np.int32),
            rows=rows,
            senders=columns[0],
            receivers=columns[1],
            slots=columns[2],
            kernel=kernel_vector(rows, kernel),
        )
