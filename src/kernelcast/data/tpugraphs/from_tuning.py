"""From what a tuner ran to the files that are published: graphs with configurations and their times.

As in the published files, a run without a time is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelcast.core.timing import Timing
from kernelcast.data.tpugraphs.layout_file import ABSENT, DIMENSIONS, LAYOUT_WIDTH, TENSORS, LayoutGraph
from kernelcast.data.tpugraphs.tile_file import TileGraph
from kernelcast.data.tpugraphs.tuning import Layouts, TileSizes, TuningRun
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs import program_graph
from kernelcast.features.tpugraphs_tile import tile_features
from kernelcast.hlo.program import Program


def tile_graph(name: str, program: Program, runs: Sequence[TuningRun]) -> TileGraph:
    """The tile file of one kernel: normalised by the time of its default run.

    Args:
        name: of the file: program and signed hexadecimal fingerprint, as published.
        program: the kernel's module.
        runs: tiles that were tried.

    Raises:
        SchemaError: no run is the default and has a time, or a run has another configuration than a tile.
    """
    timed = [run for run in runs if isinstance(run.outcome, Timing)]
    times = _times_ns(timed)
    default = next((time for run, time in zip(timed, times, strict=True) if run.is_default), None)
    if default is None:
        raise SchemaError(
            f"{name}: times are relative to the default's, but of {len(runs)} runs, {len(timed)} with times, "
            "none is the default"
        )
    rows = [_tile_row(name, run) for run in timed]
    graph = program_graph(program)
    return TileGraph(
        name=name,
        node_feat=graph.node_feat,
        opcode=graph.opcode,
        edges=graph.edges,
        config_feat=np.stack(rows),
        runtime_ns=np.array(times, dtype=np.int64),
        normalizer_ns=np.full(len(times), default, dtype=np.int64),
    )


def layout_graph(name: str, program: Program, runs: Sequence[TuningRun]) -> LayoutGraph:
    """The layout file of one program.

    Args:
        name: of the file.
        program: whose layouts were chosen.
        runs: layouts that were tried, each for all configurable nodes of the program in order.

    Raises:
        SchemaError: a run has another configuration than layouts, or layouts of other nodes.
    """
    graph = program_graph(program)
    timed = [run for run in runs if isinstance(run.outcome, Timing)]
    rows = np.full((len(timed), len(graph.configurable), LAYOUT_WIDTH), ABSENT, dtype=np.float32)
    for row, run in zip(rows, timed, strict=True):
        _write_layouts(row, name, run)
    return LayoutGraph(
        name=name,
        node_feat=graph.node_feat,
        opcode=graph.opcode,
        edges=graph.edges,
        config_feat=rows,
        configurable=graph.configurable,
        runtime_ns=np.array(_times_ns(timed), dtype=np.int64),
        splits=graph.splits,
    )


def _times_ns(runs: Sequence[TuningRun]) -> list[int]:
    return [run.profile.compute_time_ns for run in runs if run.profile is not None]


def _tile_row(name: str, run: TuningRun) -> np.ndarray:
    if not isinstance(run.config, TileSizes):
        raise SchemaError(f"{name}: expected runs of tiles, got one of {run.config}")
    return tile_features(run.config.tile)


def _write_layouts(row: np.ndarray, name: str, run: TuningRun) -> None:
    """Writes minor-to-major orders into (configurable node, 18), six dimensions for each of three tensors."""
    nodes = run.config.nodes if isinstance(run.config, Layouts) else None
    if nodes is None or len(nodes) != len(row) or any(len(tensors) > TENSORS for tensors in nodes):
        told = "another configuration" if nodes is None else f"{len(nodes)} nodes"
        raise SchemaError(
            f"{name}: expected layouts of {len(row)} configurable nodes with at most {TENSORS} tensors each, "
            f"got a run of {told}"
        )
    for node, tensors in zip(row, nodes, strict=True):
        for number, order in enumerate(tensors):
            start = number * DIMENSIONS
            held = order[:DIMENSIONS]
            node[start : start + len(held)] = held
