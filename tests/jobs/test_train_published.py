"""Training on a published collection: checkpoints bound to its schema, finished seeds kept."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.cli.app import run
from kernelcast.data.tpugraphs.tile_file import TileGraph, write_tile_file
from kernelcast.errors import SchemaError
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.tpugraphs_schema import TPUGRAPHS_140
from kernelcast.jobs.learning import train_published
from kernelcast.jobs.learning.train_published import holds_collection, train_published_models
from kernelcast.model.checkpoint import load_checkpoint
from kernelcast.model.config import GNN_RANK
from kernelcast.model.network import NetworkConfig
from kernelcast.model.trained import Epoch, Promise

TINY = replace(
    GNN_RANK,
    network=NetworkConfig(opcode_width=4, width=16, hops=1),
    epochs=12,
    learning_rate=0.03,
    average=0.5,
)


def kernel(name: str, random: np.random.Generator) -> TileGraph:
    """A kernel whose tiles are the faster the larger their output window is."""
    tiles = np.zeros((30, 24), dtype=np.float32)
    tiles[:, 8] = random.permutation(30) + 1
    tiles[:, 14] = tiles[:, 15] = tiles[:, 8]
    return TileGraph(
        name=name,
        node_feat=random.integers(0, 9, (4, 140)).astype(np.float32),
        opcode=np.array([63, 63, 2, 96], dtype=np.uint8),
        edges=np.array([[2, 0], [2, 1], [3, 2]]),
        config_feat=tiles,
        runtime_ns=(100_000 / tiles[:, 8]).astype(np.int64),
        normalizer_ns=np.full(30, 5_000),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for part, count in (("train", 20), ("valid", 3)):
        (tmp_path / "npz" / "tile" / "xla" / part).mkdir(parents=True)
        for number in range(count):
            write_tile_file(tmp_path / "npz" / "tile" / "xla" / part, kernel(f"k{number}", random))
    return tmp_path


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_published, "TILE_MODELS", {"rank": TINY})


def ignore(model: str, seed: int, epoch: Epoch) -> None:
    """Watches nothing."""


def test_a_ranker_is_trained_kept_and_bound_to_the_published_schema(folder: Path) -> None:
    out = folder / "out"
    (made,) = train_published_models(folder, models=["rank"], seeds=[0], out=out, watch=ignore)
    assert made.validation_error < 0.5  # 1 − τ; 1 is no better than chance
    held = load_checkpoint(made.folder, TPUGRAPHS_140)
    assert held.is_finished
    assert held.trained.promise is Promise.RANKER
    assert held.provenance.target["clock"] == "published"
    with pytest.raises(SchemaError, match=r"schema tpugraphs-140 .* has kernelcast-1 with digest"):
        load_checkpoint(made.folder, KERNELCAST_1)
    (again,) = train_published_models(folder, models=["rank"], seeds=[0], out=out, watch=ignore)
    assert again.was_there
    write_tile_file(folder / "npz" / "tile" / "xla" / "valid", kernel("more", np.random.default_rng(1)))
    with pytest.raises(SchemaError, match="holds a model of another dataset"):
        train_published_models(folder, models=["rank"], seeds=[0], out=out, watch=ignore)


def test_the_command_takes_a_collection_as_it_was_unpacked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(folder), str(folder / "out"), "--task", "tile", "--model", "rank", "--seeds", "1"]
    assert run([*command, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["model"], told["seed"]) == ("rank", 1)
    assert (folder / "out" / "rank-1" / "model.json").exists()
    assert run([*command, "--split", "split.json"]) == 2
    assert "parts are its split" in " ".join(capsys.readouterr().err.replace("│", "").split())


def test_what_is_missing_is_told(folder: Path, tmp_path: Path) -> None:
    assert holds_collection(folder)
    assert not holds_collection(folder / "npz" / "tile" / "xla" / "train")
    for path in (folder / "npz" / "tile" / "xla" / "valid").iterdir():
        path.unlink()
    with pytest.raises(SchemaError, match="holds no tile files of part valid"):
        train_published_models(folder, models=["rank"], seeds=[0], out=tmp_path / "out", watch=ignore)
    with pytest.raises(SchemaError, match="no model is called gnn; there are rank"):
        train_published_models(folder, models=["gnn"], seeds=[0], out=tmp_path / "out", watch=ignore)
