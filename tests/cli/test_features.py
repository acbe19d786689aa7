"""``kernelcast features``: files that NumPy and the readers of TpuGraphs take."""

import json
from pathlib import Path

import numpy as np
import pytest

from kernelcast.cli.app import run
from kernelcast.data.tpugraphs.layout_file import read_layout_file
from kernelcast.data.tpugraphs.tile_file import read_tile_file
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.tpugraphs import program_graph
from kernelcast.features.tpugraphs_schema import TPUGRAPHS_140
from kernelcast.hlo.text import parse

TEXT = """HloModule small

ENTRY main {
  x = f32[8,16]{1,0} parameter(0)
  y = f32[128]{0} reshape(x)
  ROOT z = f32[128]{0} add(y, y)
}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "small.hlo").write_text(TEXT)
    (tmp_path / "final.hlo").write_text(TEXT.replace("HloModule small", "HloModule small, is_scheduled=true"))
    (tmp_path / "wrong.hlo").write_text(TEXT.replace("add(y, y)", "add(y, w)"))
    return tmp_path


def test_any_program_becomes_a_file_of_tpugraphs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = files / "out.npz"
    assert run(["features", str(files / "small.hlo"), "-o", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["schema_digest"]) == ("tpugraphs-140", TPUGRAPHS_140.digest)
    assert (told["graphs"], told["nodes"], told["edges"]) == (1, 3, 2)
    expected = program_graph(parse(TEXT))
    for held in (read_tile_file(out), read_layout_file(out)):
        np.testing.assert_array_equal(held.node_feat, expected.node_feat)
        np.testing.assert_array_equal(held.edges, expected.edges)
        assert len(held.runtime_ns) == 0
    assert read_layout_file(out).configurable.tolist() == [1]


def test_the_published_module_becomes_the_published_file(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = shared_data / "tpugraphs" / "module_tuning_data_layout.pb"
    assert run(["features", "--format", "tpugraphs", str(source), "-o", str(tmp_path / "out.npz")]) == 0
    assert "3,163 nodes, 5,112 edges" in capsys.readouterr().out
    published = shared_data / "tpugraphs" / "layout" / "xla" / "default" / "valid" / "unet_3d.4x4.bf16.npz"
    with np.load(published) as one, np.load(tmp_path / "out.npz") as other:
        for name in ("node_feat", "node_opcode", "edge_index", "node_config_ids", "node_splits"):
            np.testing.assert_array_equal(one[name], other[name])


def test_kernels_of_an_optimised_program(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = files / "out.npz"
    command = ["features", str(files / "final.hlo"), "-o", str(out), "--format", "kernelcast-1", "--json"]
    assert run(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema_digest"], told["graphs"]) == (KERNELCAST_1.digest, 2)
    with np.load(out) as held:
        assert held["node_feat"].shape == (4, len(KERNELCAST_1.node))
        assert held["kernel_feat"].shape == (2, len(KERNELCAST_1.kernel))
        assert held["node_splits"].tolist() == [0, 2, 4]
        assert held["edge_splits"].tolist() == [0, 1, 3]
        assert held["edge_index"].tolist() == [[1, 0], [1, 0], [1, 0]]
        assert held["edge_slot"].tolist() == [0, 0, 1]
        assert len(set(held["fingerprint"].tolist())) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wrong.hlo", "-o", "out.npz"], "wrong.hlo: line 6, %z"),
        (["absent.hlo", "-o", "out.npz"], "there is no such file"),
        (["small.hlo", "-o", "no/where.npz"], "does not exist"),
        (
            ["small.hlo", "-o", "out.npz", "--format", "csv"],
            "--format is one of kernelcast-1, tpugraphs, got csv",
        ),
        (["small.hlo", "-o", "out.npz", "--stage", "cooked"], "unoptimised, optimised"),
        (
            ["small.hlo", "-o", "out.npz", "--format", "kernelcast-1"],
            "got an unoptimised one with 2 launched instructions: give --stage optimised",
        ),
        (["small.hlo"], "Missing option"),
    ],
)
def test_bad_input_is_told_in_a_line(
    arguments: list[str],
    message: str,
    files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    assert run(["features", *arguments]) == 2
    streams = capsys.readouterr()
    unwrapped = "".join(line.strip(" │") for line in streams.err.splitlines())
    assert message.replace(" ", "") in unwrapped.replace(" ", "")
    assert "Traceback" not in streams.err
    assert streams.out == ""
    assert not (files / "out.npz").exists()
