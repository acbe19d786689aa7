"""Checkpoints: what was saved comes back, and what does not fit is refused with both sides named."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kernelcast.errors import SchemaError, StoreError
from kernelcast.features.schema import KERNELCAST_1, FeatureSchema
from kernelcast.model.checkpoint import load_checkpoint, save_checkpoint
from kernelcast.model.predict import Predictor


@pytest.fixture
def folder(tmp_path, trained, provenance):
    save_checkpoint(tmp_path / "gnn", trained, provenance, KERNELCAST_1)
    return tmp_path / "gnn"


def test_a_loaded_model_predicts_the_same(folder, predictor, kernels):
    loaded = Predictor.load(folder)
    np.testing.assert_array_equal(
        loaded.estimate(kernels[:20]).seconds, predictor.estimate(kernels[:20]).seconds
    )
    assert loaded.provenance == predictor.provenance
    assert loaded.trained.config == predictor.trained.config
    assert loaded.trained.history == predictor.trained.history


def test_the_description_is_readable(folder):
    held = json.loads((folder / "model.json").read_text())
    assert held["schema_digest"] == KERNELCAST_1.digest
    assert "tanh" in held["opcodes_seen"]
    assert "extent_0" in held["columns_read"]["node"]


def test_saving_again_leaves_one_pair(folder, trained, provenance):
    save_checkpoint(folder, replace(trained, centre=trained.centre + 1), provenance, KERNELCAST_1)
    assert len(list(folder.iterdir())) == 2
    assert load_checkpoint(folder, KERNELCAST_1).trained.centre == trained.centre + 1


def test_another_schema_is_refused_by_name(folder):
    other = FeatureSchema(name="kernelcast-9", node=KERNELCAST_1.node, kernel=(), opcodes=("unknown",))
    with pytest.raises(SchemaError, match=f"kernelcast-1 with digest {KERNELCAST_1.digest}.*kernelcast-9"):
        load_checkpoint(folder, other)


@pytest.mark.parametrize(
    ("content", "text"),
    [("", "cannot be read"), ("[1]", "format None"), ('{"format": "other"}', "format 'other'")],
)
def test_foreign_descriptions_are_refused(folder, content, text):
    (folder / "model.json").write_text(content)
    with pytest.raises(SchemaError, match=text):
        load_checkpoint(folder, KERNELCAST_1)


@pytest.mark.parametrize("missing", ["weights", "config", "seed", "provenance", "is_finished"])
def test_a_description_that_lacks_something_is_refused(folder, missing):
    held = json.loads((folder / "model.json").read_text())
    del held[missing]
    (folder / "model.json").write_text(json.dumps(held))
    with pytest.raises(SchemaError, match=f"KeyError: '{missing}'.*train again"):
        load_checkpoint(folder, KERNELCAST_1)


def test_settings_of_another_version_are_refused(folder):
    held = json.loads((folder / "model.json").read_text())
    held["config"]["heads"] = 8
    (folder / "model.json").write_text(json.dumps(held))
    with pytest.raises(SchemaError, match=r"TypeError: .*'heads'"):
        load_checkpoint(folder, KERNELCAST_1)


def test_missing_and_damaged_files_are_named(folder, tmp_path):
    with pytest.raises(SchemaError, match="is not a checkpoint"):
        load_checkpoint(tmp_path, KERNELCAST_1)
    (weights,) = folder.glob("*.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(SchemaError, match="is damaged"):
        load_checkpoint(folder, KERNELCAST_1)
    weights.unlink()
    with pytest.raises(SchemaError, match="weights cannot be read"):
        load_checkpoint(folder, KERNELCAST_1)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, trained, provenance):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        save_checkpoint(tmp_path / "file" / "gnn", trained, provenance, KERNELCAST_1)
