"""A program's graph in the published form, before anything was measured."""

from __future__ import annotations

import numpy as np

from kernelcast.data.tpugraphs.layout_file import LAYOUT_WIDTH
from kernelcast.features.tpugraphs import ProgramGraph
from kernelcast.features.tpugraphs_schema import CONFIG_WIDTH


def graph_arrays(graph: ProgramGraph) -> dict[str, np.ndarray]:
    """The arrays of a tile file and of a layout file at once, without configurations.

    Readers of both kinds of files take it; configurations are rows to be added.
    """
    return {
        "node_feat": graph.node_feat,
        "node_opcode": graph.opcode,
        "edge_index": graph.edges,
        "node_config_ids": graph.configurable,
        "node_splits": graph.splits[None],
        "node_config_feat": np.zeros((0, len(graph.configurable), LAYOUT_WIDTH), dtype=np.float32),
        "config_feat": np.zeros((0, CONFIG_WIDTH), dtype=np.float32),
        "config_runtime": np.zeros(0, dtype=np.int64),
        "config_runtime_normalizers": np.zeros(0, dtype=np.int64),
    }
