"""Tile files of TpuGraphs: one kernel and its measured tiles, as published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kernelcast.data.tpugraphs.arrays import ArraySpec, read_arrays, write_arrays
from kernelcast.data.tpugraphs.graph_checks import check_graph, is_real_time
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs_schema import CONFIG_WIDTH, NODE_WIDTH

# The largest published kernels have some tens of thousands of configurations, 120 bytes each.
MOST_BYTES = 256 << 20

_SPECS = (
    ArraySpec(name="node_feat", dtype=np.float32, axes=("node", NODE_WIDTH)),
    ArraySpec(name="node_opcode", dtype=np.uint8, axes=("node",)),
    ArraySpec(name="edge_index", dtype=np.int64, axes=("edge", 2)),
    ArraySpec(name="config_feat", dtype=np.float32, axes=("tile", CONFIG_WIDTH)),
    ArraySpec(name="config_runtime", dtype=np.int64, axes=("tile",)),
    ArraySpec(name="config_runtime_normalizers", dtype=np.int64, axes=("tile",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGraph:
    """One kernel and some of its tiles, with the times that were published for them.

    Attributes:
        name: of the file, without suffix: program and signed hexadecimal fingerprint of the kernel.
        node_feat: (node, 140) float32 raw values in the columns of schema ``tpugraphs-140``.
        opcode: (node,) uint8 rows of the opcode table.
        edges: (edge, 2) int64; a row [u, v] says that u reads v's value, so u > v.
        config_feat: (tile, 24) float32 raw values in the tile columns of the same schema.
        runtime_ns: (tile,) int64; 0 where it is not known, as in all of a test file.
        normalizer_ns: (tile,) int64 time of the default tile on the machine that measured this one; rank by
            runtime over normalizer. 1 in test files.
    """

    name: str
    node_feat: np.ndarray
    opcode: np.ndarray
    edges: np.ndarray
    config_feat: np.ndarray
    runtime_ns: np.ndarray
    normalizer_ns: np.ndarray

    @property
    def node_count(self) -> int:
        return len(self.opcode)

    @property
    def tile_count(self) -> int:
        return len(self.config_feat)

    @property
    def byte_size(self) -> int:
        """Bytes of all arrays."""
        arrays = (
            self.node_feat, self.opcode, self.edges, self.config_feat, self.runtime_ns, self.normalizer_ns
        )  # fmt: skip
        return sum(array.nbytes for array in arrays)

    @property
    def is_timed(self) -> np.ndarray:
        """(tile,) whether there is a time: neither 0 nor the largest integer, which both say missing."""
        return is_real_time(self.runtime_ns)

    @property
    def relative_time(self) -> np.ndarray:
        """(tile,) float64 time over that of the default tile; NaN where there is no time."""
        return np.where(self.is_timed, self.runtime_ns / self.normalizer_ns, np.nan)

    def with_tiles(self, rows: np.ndarray) -> TileGraph:
        """The same kernel with the given tiles, in the given order."""
        return replace(
            self,
            config_feat=self.config_feat[rows],
            runtime_ns=self.runtime_ns[rows],
            normalizer_ns=self.normalizer_ns[rows],
        )


def read_tile_file(path: Path, *, most_bytes: int = MOST_BYTES) -> TileGraph:
    """The kernel of a published tile file.

    Args:
        path: a ``.npz`` file.
        most_bytes: that its arrays may take.

    Raises:
        SchemaError: cut short, damaged, of another layout, or its values contradict each other.
        KernelcastError: the file cannot be opened.
    """
    arrays = read_arrays(path, _SPECS, what="a TpuGraphs tile file", most_bytes=most_bytes)
    check_graph(path, arrays)
    runtime, normalizer = arrays["config_runtime"], arrays["config_runtime_normalizers"]
    if (runtime < 0).any() or (normalizer < 1).any():
        raise SchemaError(
            f"{path}: its smallest runtime is {runtime.min()} ns, its smallest normalizer "
            f"{normalizer.min()}; expected runtimes of at least 0 (not known) and normalizers of at least 1"
        )
    return TileGraph(
        name=path.name.removesuffix(".npz"),
        node_feat=arrays["node_feat"],
        opcode=arrays["node_opcode"],
        edges=arrays["edge_index"],
        config_feat=arrays["config_feat"],
        runtime_ns=runtime,
        normalizer_ns=normalizer,
    )


def timed_tile_count(path: Path) -> int:
    """How many tiles of a published tile file have a time; reads nothing else of it.

    Raises:
        SchemaError: cut short, damaged or of another layout.
        KernelcastError: the file cannot be opened.
    """
    specs = [spec for spec in _SPECS if spec.name == "config_runtime"]
    arrays = read_arrays(path, specs, what="a TpuGraphs tile file", most_bytes=MOST_BYTES)
    return int(is_real_time(arrays["config_runtime"]).sum())


def write_tile_file(folder: Path, graph: TileGraph) -> Path:
    """Writes a kernel in the published form and returns the file's path, ``folder/<name>.npz``.

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
            "config_feat": graph.config_feat,
            "config_runtime": graph.runtime_ns,
            "config_runtime_normalizers": graph.normalizer_ns,
        },
    )
    return path
