"""What holds in every graph that TpuGraphs publishes, whatever is tuned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.errors import SchemaError

# A missing time: zero in test files, the largest integer where the publisher's reader had none.
_MISSING_NS = np.iinfo(np.int64).max


def is_real_time(runtime_ns: np.ndarray) -> np.ndarray:
    """Where a runtime is a time; 0 and the largest 64-bit integer say that it is missing.

    >>> is_real_time(np.array([0, 7, np.iinfo(np.int64).max])).tolist()
    [False, True, False]
    """
    return (runtime_ns > 0) & (runtime_ns < _MISSING_NS)


def check_graph(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuses a graph without nodes, with edges to nowhere or forwards, or with values that are no numbers.

    Raises:
        SchemaError: names the file and what is wrong.
    """
    edges, nodes = arrays["edge_index"], len(arrays["node_opcode"])
    if not nodes:
        raise SchemaError(f"{path}: holds a graph without nodes")
    if edges.size and (edges.min() < 0 or edges.max() >= nodes):
        raise SchemaError(
            f"{path}: an edge joins nodes {edges.min()} to {edges.max()}, the graph has {nodes} nodes"
        )
    if (edges[:, 0] <= edges[:, 1]).any():
        row = int(np.flatnonzero(edges[:, 0] <= edges[:, 1])[0])
        raise SchemaError(
            f"{path}: edge {row} is {edges[row].tolist()}; a node reads only nodes with smaller numbers"
        )
    for name, values in arrays.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise SchemaError(f"{path}: {name} holds values that are no finite numbers")
