"""From a dataset folder to the table of the fusion task, with the leakage rule in between."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from kernelcast.core.analytical import Peaks
from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Clock, Sample, Timing
from kernelcast.data.rule import LabelRule
from kernelcast.data.samples import to_columns
from kernelcast.data.schema import KernelRow, MeasurementRow, OccurrenceRow, PlanRow, ProgramRow, TileRow
from kernelcast.data.store import Dataset, Writer
from kernelcast.errors import SchemaError
from kernelcast.jobs.learning import train as train_job
from kernelcast.jobs.learning.data import learning_data
from kernelcast.jobs.learning.evaluate_fusion import evaluate_fusion
from kernelcast.jobs.learning.fusion_table import write_table
from kernelcast.jobs.records import fusion_figures
from kernelcast.split import read_split

TARGET = TargetIdentity(kind="test", chip="none", compiler="none")
RULE = LabelRule(gated_rounds=1, passes=1)
PROGRAMS = ("a/1", "a/2", "b/1", "c/1")  # families a and d train, b validates, c tests
FAMILIES = {"a/1": "a", "a/2": "a", "b/1": "b", "c/1": "c"}


def measurement(fingerprint, seconds):
    samples = tuple(Sample(runs=1, seconds=seconds, loudness=1.0, round=n) for n in range(3))
    timing = Timing(samples=samples, clock=Clock.SIMULATED, method="law")
    return MeasurementRow(
        occasion="o", kernel=fingerprint, tile="", target=TARGET.digest, input_policy="typical-1",
        samples=to_columns(timing),
    )  # fmt: skip


def write_dataset(folder, kernels, seconds, *, places):
    """Kernel n occurs in the programs ``places[n]``, in the default plan."""
    with Writer.open(folder, target=TARGET, rule=RULE) as writer:
        writer.commit(
            [
                ProgramRow(program=p, name=p.split("/")[0], family=FAMILIES[p], variant="", source="test",
                           licence="", space="")
                for p in PROGRAMS
            ],
            [PlanRow(program=p, plan="untouched", encoded="", how="default") for p in PROGRAMS],
            [
                KernelRow(fingerprint=k.fingerprint, skeleton=k.skeleton, kind=k.kind.value, nodes=1,
                          text=k.text)
                for k in kernels
            ],
            [measurement(k.fingerprint, s) for k, s in zip(kernels, seconds, strict=True)],
            [
                OccurrenceRow(program=p, plan="untouched", kernel=k.fingerprint, calls=1, times=1.0,
                              trip_source="exact")
                for k, held in zip(kernels, places, strict=True)
                for p in held
            ],
        )  # fmt: skip


@pytest.fixture(scope="module")
def unique(kernels, examples):
    """Distinct kernels with times by the law, long enough that both bands have some."""
    found = {k.fingerprint: (k, s) for k, s in zip(kernels, examples.seconds, strict=True)}
    made, seconds = zip(*found.values(), strict=True)
    return list(made), [20 * s for s in seconds]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, unique):
    """Kernel 0 is in a training and in the test program; the others in one program each."""
    root = tmp_path_factory.mktemp("learning")
    kernels, seconds = unique
    places = [[PROGRAMS[n % 4]] for n in range(len(kernels))]
    places[0] = ["a/1", "c/1"]
    write_dataset(root / "data", kernels, seconds, places=places)
    write_dataset(root / "again", kernels, [1.1 * s for s in seconds], places=places)
    split = {
        "schema": "kernelcast-split-1", "name": "t", "train": ["a"], "validation": ["b"], "test": ["c"],
    }  # fmt: skip
    (root / "split.json").write_text(json.dumps(split))
    return root


@pytest.fixture(scope="module")
def checkpoints(folder, small_config):
    """Two seeds of a small model, trained by the job."""
    configs = {"gnn": replace(small_config, epochs=4)}
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_job, "MODELS", configs)
        run = lambda: train_job.train_models(  # noqa: E731
            folder / "data", folder / "split.json", models=["gnn"], seeds=[0, 1], out=folder / "models",
            watch=lambda model, seed, epoch: seen.append((model, seed, epoch.number)),
        )  # fmt: skip
        first, again = run(), run()
    assert [r.was_there for r in first] == [False, False]
    assert [r.was_there for r in again] == [True, True]
    assert ("gnn", 1, 4) in seen
    return [r.folder for r in first]


def table(folder, checkpoints, **changes):
    pytest.importorskip("lightgbm")
    return evaluate_fusion(
        folder / "data", folder / "split.json", checkpoints={"gnn": checkpoints},
        peaks=Peaks(flops_per_s=5e10, bytes_per_s=1e10), seeds=[0], **changes,
    )  # fmt: skip


def test_no_kernel_of_a_test_program_trains(folder, unique):
    data = learning_data(Dataset.open(folder / "data"), read_split(folder / "split.json"))
    shared = unique[0][0].fingerprint
    assert shared in data.test.fingerprints
    assert shared not in data.train.fingerprints
    assert shared not in data.novelty.unseen_fingerprints
    assert not set(data.train.fingerprints) & set(data.test_programs)
    assert len(data.train) + len(data.validation) + len(data.test) == len(unique[0])


def test_the_table_has_every_model_population_and_program(folder, checkpoints, tmp_path):
    found = table(folder, checkpoints, oracle_folder=folder / "again")
    models = {
        "gnn",
        "gbdt",
        "gbdt_offset",
        "roofline_train",
        "roofline_train_totals",
        "roofline_test",
        "roofline_test_totals",
    }
    assert {s.model for s in found.summaries if s.population == "all"} == models | {"oracle"}
    assert {s.population for s in found.summaries} >= {"all", "unseen_fingerprints", "remeasured"}
    assert {r.program for r in found.rows} == {"c", "pooled"}
    oracle = found.summary("oracle")
    assert oracle.mape_ge5us == pytest.approx(10, rel=1e-4)
    assert oracle.tau_ge5us == 1
    gnn = found.summary("gnn")
    assert gnn.seeds == 2
    assert found.seeds == (0, 1)
    assert found.split.startswith("t, ")
    assert gnn.mape_ge5us_range[0] <= gnn.mape_ge5us <= gnn.mape_ge5us_range[1]
    write_table(tmp_path / "table.json", found)
    held = json.loads((tmp_path / "table.json").read_text())
    assert len(held["rows"]) == len(found.rows)


def test_the_compilers_own_costs_stand_beside_and_kernels_without_one_are_left_out(folder, tmp_path, unique):
    pytest.importorskip("lightgbm")
    kernels, seconds = unique
    places = [[PROGRAMS[n % 4]] for n in range(len(kernels))]
    write_dataset(tmp_path / "data", kernels, seconds, places=places)
    costs = [  # half of each time; none for the first test kernel
        TileRow(kernel=k.fingerprint, target=TARGET.digest, tile="", is_default=1,
                analytical_s=math.nan if n == 3 else s / 2)
        for n, (k, s) in enumerate(zip(kernels, seconds, strict=True))
    ]  # fmt: skip
    with Writer.open(tmp_path / "data", target=TARGET, rule=RULE) as writer:
        writer.commit(costs)
    found = evaluate_fusion(tmp_path / "data", folder / "split.json", checkpoints={}, peaks=None, seeds=[0])
    assert {s.model for s in found.summaries} == {
        "gbdt", "gbdt_offset", "analytical_train", "analytical_train_totals", "analytical_test",
        "analytical_test_totals",
    }  # fmt: skip
    assert found.without_analytical == 1
    assert found.summary("analytical_train").mape_ge5us == pytest.approx(0, abs=1e-3)
    assert found.summary("analytical_test_totals", "default_fusions").tau_ge5us == pytest.approx(1)
    names = {f.name for f in fusion_figures(replace(found, target=("xla-tpu-aot", "tpu_v3")))}
    assert "tpu_v3.fusion.random.mape_ge5us_median.analytical_train" in names
    assert "tpu_v3.fusion.default_fusions.mape_ge5us_median.analytical_test" in names
    on_cpu = {f.name for f in fusion_figures(replace(found, target=("xla-cpu", "x")))}
    assert "cpu.fusion.family_split.mape_ge5us_median.gbdt" in on_cpu
    assert "cpu.fusion.family_split.default_fusions.tau_median.gbdt" in on_cpu


def test_a_band_with_too_few_kernels_has_no_figure(folder, checkpoints):
    found = table(folder, checkpoints)
    for row in found.rows:
        assert math.isnan(row.mape_ge5us) == (row.kernels_ge5us < 5)
        assert math.isnan(row.mape_lt5us) == (row.kernels_lt5us < 5)


def test_a_checkpoint_of_other_data_is_refused(folder, checkpoints, tmp_path, unique):
    kernels, seconds = unique
    places = [[PROGRAMS[n % 4]] for n in range(len(kernels))]
    write_dataset(tmp_path / "data", kernels, np.array(seconds) * 2, places=places)
    with pytest.raises(SchemaError, match="it may know test kernels"):
        evaluate_fusion(
            tmp_path / "data", folder / "split.json", checkpoints={"gnn": checkpoints},
            peaks=Peaks(flops_per_s=1, bytes_per_s=1), seeds=[0],
        )  # fmt: skip


def test_an_interrupted_training_is_not_judged(folder, checkpoints, tmp_path):
    copy = tmp_path / "gnn-0"
    shutil.copytree(checkpoints[0], copy)
    text = (copy / "model.json").read_text()
    (copy / "model.json").write_text(text.replace('"is_finished": true', '"is_finished": false'))
    with pytest.raises(SchemaError, match="was interrupted: `kernelcast train`"):
        table(folder, [copy])


def test_unknown_models_and_empty_parts_are_errors(folder, tmp_path, unique):
    with pytest.raises(SchemaError, match="no model is called mystery; there are gnn"):
        train_job.train_models(
            folder / "data",
            folder / "split.json",
            models=["mystery"],
            seeds=[0],
            out=tmp_path,
            watch=print,
        )
    split = {
        "schema": "kernelcast-split-1", "name": "t", "train": ["a", "c"], "validation": ["b"], "test": [],
    }  # fmt: skip
    (tmp_path / "split.json").write_text(json.dumps(split))
    with pytest.raises(SchemaError, match="no labelled kernel for test"):
        learning_data(Dataset.open(folder / "data"), read_split(tmp_path / "split.json"))
