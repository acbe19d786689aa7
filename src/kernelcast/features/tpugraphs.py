"""Graphs of numbers as TpuGraphs publishes them, from any program: a kernel's module or a whole program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelcast.features.graph import KernelGraph
from kernelcast.features.opcodes import UNKNOWN, opcode_id
from kernelcast.features.tpugraphs_rows import node_row
from kernelcast.features.tpugraphs_schema import NODE_WIDTH, OPCODE_COUNT, TPUGRAPHS_140
from kernelcast.hlo.program import Program

# Operations whose layouts the published layout search may choose.
_CONFIGURABLE = frozenset({"convolution", "dot", "reshape"})
# Computations whose names hold one of these end a segment of the published layout files.
_SEGMENT_NAMES = ("cluster", "while", "cond")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramGraph:
    """One program as numbers: a node per instruction of every computation, callees before callers.

    Attributes:
        node_feat: (node, 140) float32 raw values in the node columns of schema ``tpugraphs-140``.
        opcode: (node,) uint8 rows of the opcode table; 0 for one that the published list lacks.
        edges: (edge, 2) int64, sorted; a row [u, v] says that u reads v's value or calls the computation
            whose root v is. Several reads of one value are one edge.
        configurable: (configurable node,) int64 nodes whose layout may be chosen: convolutions, dots and
            reshapes outside fusions.
        splits: (split,) int64 node numbers where segments of the program begin, and the number of nodes.
    """

    node_feat: np.ndarray
    opcode: np.ndarray
    edges: np.ndarray
    configurable: np.ndarray
    splits: np.ndarray

    @property
    def node_count(self) -> int:
        return len(self.opcode)


def program_graph(program: Program) -> ProgramGraph:
    """The graph of a program under schema ``tpugraphs-140``.

    >>> from kernelcast.hlo.text import parse
    >>> text = "HloModule k ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] tanh(x) }"
    >>> graph = program_graph(parse(text))
    >>> graph.node_feat.shape, graph.opcode.tolist(), graph.edges.tolist()
    ((2, 140), [63, 96], [[1, 0]])
    """
    nodes = [(computation, i) for computation in program.computations for i in computation]
    rows = [node_row(i, is_root=i.name == computation.root) for computation, i in nodes]
    opcodes = [opcode_id(i.opcode) for _, i in nodes]
    fused = program.fused_computations()
    configurable = [
        number
        for number, (computation, i) in enumerate(nodes)
        if i.opcode in _CONFIGURABLE and computation.name not in fused
    ]
    return ProgramGraph(
        node_feat=np.stack(rows) if rows else np.zeros((0, NODE_WIDTH), np.float32),
        opcode=np.array([o if o < OPCODE_COUNT else UNKNOWN for o in opcodes], dtype=np.uint8),
        edges=np.array(_edges(program), dtype=np.int64).reshape(-1, 2),
        configurable=np.array(configurable, dtype=np.int64),
        splits=np.array(_splits(program), dtype=np.int64),
    )


def kernel_graph(*, node_feat: np.ndarray, opcode: np.ndarray, edges: np.ndarray) -> KernelGraph:
    """A published graph in the form that networks take; its tile columns are 0.

    A published edge does not say which operand it is, so all slots are 0, and a value that is read twice has
    one edge.

    Args:
        node_feat: (node, 140) float32.
        opcode: (node,) uint8.
        edges: (edge, 2) int64, each (reader, read).
    """
    rows = np.zeros((len(node_feat), len(TPUGRAPHS_140.node)), dtype=np.float32)
    rows[:, :NODE_WIDTH] = node_feat
    return KernelGraph(
        opcodes=opcode.astype(np.int32),
        rows=rows,
        senders=edges[:, 1].astype(np.int32),
        receivers=edges[:, 0].astype(np.int32),
        slots=np.zeros(len(edges), dtype=np.int32),
        kernel=np.zeros(len(TPUGRAPHS_140.kernel), dtype=np.float32),
    )


def _edges(program: Program) -> list[tuple[int, int]]:
    """(reader, read) node numbers in order, each pair once."""
    numbers: dict[tuple[str, str], int] = {}
    for computation in program.computations:
        for i in computation:
            numbers[computation.name, i.name] = len(numbers)
    edges: set[tuple[int, int]] = set()
    for computation in program.computations:
        for i in computation:
            reader = numbers[computation.name, i.name]
            edges.update((reader, numbers[computation.name, operand]) for operand in i.operands)
            edges.update((reader, numbers[called, program[called].root]) for called in i.called)
    return sorted(edges)


def _splits(program: Program) -> list[int]:
    splits = [0]
    count = 0
    for computation in program.computations:
        count += len(computation)
        if any(name in computation.name for name in _SEGMENT_NAMES):
            splits.append(count)
    return splits if splits[-1] == count else [*splits, count]
