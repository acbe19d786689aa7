"""``kernelcast tiles``."""

import json
from pathlib import Path

import pytest

from kernelcast.cli.app import run
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.check import PROBE

TWO = PROBE.replace("ROOT y", "t").replace("}\n", "  ROOT y = f32[64,1024]{1,0:T(8,128)} negate(t)\n}\n")


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.hlo"
    path.write_text(PROBE)
    return path


def test_without_the_extra_it_says_what_to_install(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(libtpu, "installed_version", lambda: None)
    assert run(["tiles", str(kernel)]) == 2
    assert "pip install 'kernelcast[tpu]'" in " ".join(capsys.readouterr().err.split())


def test_an_unknown_target(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tiles", str(kernel), "--target", "tpu_v99"]) == 1
    assert "the TPU targets are tpu_v2, tpu_v3" in " ".join(capsys.readouterr().err.split())


@pytest.mark.tpu
def test_tiles_as_json(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tiles", str(kernel), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["target"], found["instruction"], found["is_complete"]) == ("tpu_v3", "y", True)
    assert len(found["tiles"]) > 3
    assert [tile["is_default"] for tile in found["tiles"]].count(True) == 1
    assert all(tile["analytical_cycles"] > 0 for tile in found["tiles"])
    assert {tile["unit"] for tile in found["tiles"]} == {"hardware-tile"}


@pytest.mark.tpu
def test_tiles_for_people_hold_the_default(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tiles", str(kernel), "--limit", "1"]) == 0
    assert "default" in capsys.readouterr().out


@pytest.mark.tpu
def test_a_module_of_several_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.hlo"
    path.write_text(TWO)
    assert run(["tiles", str(path)]) == 2
    assert "there are 2: t, y" in " ".join(capsys.readouterr().err.split())
    assert run(["tiles", str(path), "--instruction", "t", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["instruction"] == "t"
    assert run(["tiles", str(path), "--instruction", "z"]) == 2
    assert "no kernel is called z" in capsys.readouterr().err
