"""Layout files of TpuGraphs: one whole program and its measured layouts, as published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelcast.data.tpugraphs.arrays import ArraySpec, read_arrays, write_arrays
from kernelcast.data.tpugraphs.graph_checks import check_graph, is_real_time
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs_schema import NODE_WIDTH

# The largest published programs have tens of thousands of nodes and configurations.
MOST_BYTES = 2 << 30
TENSORS, DIMENSIONS, ABSENT = 3, 6, -1
LAYOUT_WIDTH = TENSORS * DIMENSIONS

_SPECS = (
    ArraySpec(name="node_feat", dtype=np.float32, axes=("node", NODE_WIDTH)),
    ArraySpec(name="node_opcode", dtype=np.uint8, axes=("node",)),
    ArraySpec(name="edge_index", dtype=np.int64, axes=("edge", 2)),
    ArraySpec(name="node_config_feat", dtype=np.float32, axes=("layout", "configurable node", LAYOUT_WIDTH)),
    ArraySpec(name="node_config_ids", dtype=np.int64, axes=("configurable node",)),
    ArraySpec(name="config_runtime", dtype=np.int64, axes=("layout",)),
    ArraySpec(name="node_splits", dtype=np.int64, axes=(1, "split")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutGraph:
    """One program and some layouts of its configurable nodes, with published times.

    Attributes:
        name: of the file, without suffix.
        node_feat: (node, 140) float32 raw values in the node columns of schema ``tpugraphs-140``.
        opcode: (node,) uint8 rows of the opcode table.
        edges: (edge, 2) int64; a row [u, v] says that u reads v's value, so u > v.
        config_feat: (layout, configurable node, 18) float32: minor-to-major orders of the result and two
            operands, six dimensions each, -1 where there is none.
        configurable: (configurable node,) int64 node numbers.
        runtime_ns: (layout,) int64; 0 where it is not known, as in all of a test file.
        splits: (split,) int64 node numbers where segments of the program begin, and the number of nodes.
    """

    name: str
    node_feat: np.ndarray
    opcode: np.ndarray
    edges: np.ndarray
    config_feat: np.ndarray
    configurable: np.ndarray
    runtime_ns: np.ndarray
    splits: np.ndarray

    @property
    def is_timed(self) -> np.ndarray:
        """(layout,) whether there is a time: neither 0 nor the largest integer, which both say missing."""
        return is_real_time(self.runtime_ns)


def read_layout_file(path: Path, *, most_bytes: int = MOST_BYTES) -> LayoutGraph:
    """The program of a published layout file.

    Args:
        path: a ``.npz`` file.
        most_bytes: that its arrays may take.

    Raises:
        SchemaError: cut short, damaged, of another layout, or its values contradict each other.
        KernelcastError: the file cannot be opened.
    """
    arrays = read_arrays(path, _SPECS, what="a TpuGraphs layout file", most_bytes=most_bytes)
    check_graph(path, arrays)
    nodes, runtime = len(arrays["node_opcode"]), arrays["config_runtime"]
    for name in ("node_config_ids", "node_splits"):
        numbers = arrays[name]
        if numbers.size and (numbers.min() < 0 or numbers.max() > nodes - (name == "node_config_ids")):
            raise SchemaError(
                f"{path}: {name} holds numbers from {numbers.min()} to {numbers.max()}, the graph has "
                f"{nodes} nodes"
            )
    if (runtime < 0).any():
        raise SchemaError(
            f"{path}: holds runtimes down to {runtime.min()} ns; expected at least 0 (not known)"
        )
    return LayoutGraph(
        name=path.name.removesuffix(".npz"),
        node_feat=arrays["node_feat"],
        opcode=arrays["node_opcode"],
        edges=arrays["edge_index"],
        config_feat=arrays["node_config_feat"],
        configurable=arrays["node_config_ids"],
        runtime_ns=runtime,
        splits=arrays["node_splits"][0],
    )


def write_layout_file(folder: Path, graph: LayoutGraph) -> Path:
    """Writes a program in the published form and returns the file's path, ``folder/<name>.npz``.

    Raises:
        StoreError: the folder cannot be written; what was there before is kept.
    """
    path = folder / f"{graph.name}.npz"
    write_arrays(
        path,
        {
            "node_feat": graph.node_feat,
            "node_opcode": graph.opcode,
            "edge_index": graph.edges,
            "node_config_feat": graph.config_feat,
            "node_config_ids": graph.configurable,
            "config_runtime": graph.runtime_ns,
            "node_splits": graph.splits[None],
        },
    )
    return path
