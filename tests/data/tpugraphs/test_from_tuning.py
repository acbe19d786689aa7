"""Published files made from what a tuner ran."""

from pathlib import Path

import numpy as np
import pytest

from kernelcast.data.tpugraphs.from_tuning import layout_graph, tile_graph
from kernelcast.data.tpugraphs.layout_file import read_layout_file
from kernelcast.data.tpugraphs.op_tuning import read_op_tuning
from kernelcast.data.tpugraphs.tile_file import read_tile_file, write_tile_file
from kernelcast.data.tpugraphs.tuning import Layouts, Profile, TileSizes, TuningRun
from kernelcast.data.tpugraphs.tuning_proto import read_tuning
from kernelcast.errors import SchemaError
from kernelcast.hlo.sources import load
from kernelcast.hlo.text import parse

PROGRAM = parse("HloModule m ENTRY e { x = f32[8]{0} parameter(0) ROOT y = f32[4,2]{1,0} reshape(x) }")


def tiled(time_ns: int, bound: int, *, is_default: bool = False, is_error: bool = False) -> TuningRun:
    return TuningRun(
        config=TileSizes(output_bounds=(4, bound)),
        is_default=is_default,
        is_error=is_error,
        profile=Profile(compute_time_ns=time_ns),
    )


def laid_out(*nodes: tuple[tuple[int, ...], ...]) -> TuningRun:
    return TuningRun(
        config=Layouts(nodes=nodes), is_default=True, is_error=False, profile=Profile(compute_time_ns=5)
    )


def test_runs_with_times_become_tiles_beside_the_default() -> None:
    runs = [tiled(30, 1), tiled(0, 2), tiled(20, 3, is_default=True), tiled(9, 4, is_error=True)]
    graph = tile_graph("k", PROGRAM, runs)
    assert graph.runtime_ns.tolist() == [30, 20]
    assert graph.normalizer_ns.tolist() == [20, 20]
    assert graph.config_feat[:, 8:16].tolist() == [[4, 1, 0, 0, 0, 0, 5, 4], [4, 3, 0, 0, 0, 0, 7, 12]]
    assert graph.node_count == 2


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "of 0 runs, 0 with times, none is the default"),
        ([tiled(5, 1)], "of 1 runs, 1 with times, none"),
        ([tiled(5, 1), tiled(0, 2, is_default=True)], "of 2 runs, 1 with times, none"),
        ([laid_out()], "expected runs of tiles, got one of Layouts"),
    ],
)
def test_runs_that_make_no_tile_file_are_told(runs: list[TuningRun], message: str) -> None:
    with pytest.raises(SchemaError, match=f"k: .*{message}"):
        tile_graph("k", PROGRAM, runs)


def test_layouts_are_padded() -> None:
    graph = layout_graph("m", PROGRAM, [laid_out(((1, 0), (0,)))])
    expected = [1, 0, *([-1] * 4), 0, *([-1] * 11)]
    assert graph.config_feat.tolist() == [[expected]]
    assert graph.configurable.tolist() == [1]
    assert graph.runtime_ns.tolist() == [5]
    assert layout_graph("m", PROGRAM, []).config_feat.shape == (0, 1, 18)


@pytest.mark.parametrize(
    ("tried", "message"),
    [
        (laid_out(), "expected layouts of 1 configurable nodes .*, got a run of 0 nodes"),
        (laid_out(((0,), (0,), (0,), (0,))), "at most 3 tensors each, got a run of 1 nodes"),
        (tiled(5, 1), "got a run of another configuration"),
    ],
)
def test_layouts_of_other_nodes_are_told(tried: TuningRun, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        layout_graph("m", PROGRAM, [tried])


def test_published_kernels_become_tile_files(shared_data: Path, tmp_path: Path) -> None:
    for path in sorted((shared_data / "tpugraphs" / "op_tuning").glob("*.json")):
        tuning = read_op_tuning(path)
        graph = tile_graph(tuning.name, tuning.program, tuning.runs)
        assert graph.tile_count == sum(not run.is_error for run in tuning.runs)
        assert graph.relative_time[0] == 1.0  # the default stands first
        read = read_tile_file(write_tile_file(tmp_path, graph))
        np.testing.assert_array_equal(read.config_feat, graph.config_feat)
        np.testing.assert_array_equal(read.node_feat, graph.node_feat)


def test_the_published_program_becomes_rows_of_its_published_file(shared_data: Path) -> None:
    tuning = read_tuning(shared_data / "tpugraphs" / "module_tuning_data_layout.pb")
    made = layout_graph("unet_3d.4x4.bf16", load(tuning.module).program, tuning.runs)
    folder = shared_data / "tpugraphs" / "layout" / "xla" / "default" / "valid"
    published = read_layout_file(folder / "unet_3d.4x4.bf16.npz")
    rows = {row.tobytes() for row in published.config_feat}
    assert len(made.config_feat) == 112
    assert all(row.tobytes() in rows for row in made.config_feat)
    for name in ("node_feat", "opcode", "edges", "configurable", "splits"):
        np.testing.assert_array_equal(getattr(made, name), getattr(published, name))
