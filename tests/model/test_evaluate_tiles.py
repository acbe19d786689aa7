"""From a folder of timed tiles to Table 3: scores by hand, what is left out, and what ties must not do."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tile_law import law_seconds, random_tiles

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.data.outcomes import labels, tile_labels
from kernelcast.data.rule import LabelRule
from kernelcast.data.samples import to_columns
from kernelcast.data.schema import KernelRow, MeasurementRow, OccurrenceRow, PlanRow, ProgramRow, TileRow
from kernelcast.data.store import Dataset, Writer
from kernelcast.errors import SchemaError
from kernelcast.features.graph import Featuriser
from kernelcast.jobs.learning import train as train_job
from kernelcast.jobs.learning.evaluate_tiles import evaluate_tiles, rankers_by_model
from kernelcast.jobs.learning.fusion_table import write_table
from kernelcast.jobs.learning.tile_data import tile_learning_data
from kernelcast.jobs.learning.tile_scores import by_program, has_order, mean_over_seeds, score_kernel
from kernelcast.jobs.records import tile_figures
from kernelcast.model.config import GNN, TileTask
from kernelcast.model.network import NetworkConfig
from kernelcast.split import read_split

TARGET = TargetIdentity(kind="test", chip="tpu_v3", compiler="none", clock="simulated")
PROGRAMS = {
    "a/1": "a",
    "b/1": "b",
    "c/1": "c",
    "d/1": "c",
}  # a trains, b validates, c tests with two programs
SPLIT = {"schema": "kernelcast-split-1", "name": "t", "train": ["a"], "validation": ["b"], "test": ["c"]}


def score(scores, seconds, seed=0):
    return score_kernel(np.array(scores, dtype=float), np.array(seconds), random=np.random.default_rng(seed))


def test_a_kernel_by_hand():
    found = score([3.0, 1.0, 2.0], [1.0, 2.0, 4.0])
    # Pairs (scores, times): (3, 1) over (1, 2) wrong, (3, 1) over (2, 4) wrong, (1, 2) and (2, 4) right.
    assert found.tau == pytest.approx(-1 / 3)
    assert (found.chosen_s, found.best_s) == (2.0, 1.0)
    assert found.top_errors == (100.0, 0.0, 0.0)  # of three tiles the best five and ten are all


def test_the_order_of_the_list_tells_a_constant_model_nothing():
    """The default is listed first and is the best: over seeds a constant score finds it one time in four."""
    found = [score([0.0] * 4, [1.0, 2.0, 2.0, 2.0], seed) for seed in range(400)]
    assert {s.tau for s in found} == {0.0}
    assert np.mean([s.chosen_s == 1.0 for s in found]) == pytest.approx(0.25, abs=0.07)


def test_means_within_a_program_then_ape_over_its_sum():
    kernels = {"k": score([0, 1], [1.0, 2.0]), "l": score([1, 0], [1.0, 4.0]), "m": score([0, 1], [8.0, 9.0])}
    found = by_program(kernels, {"k": frozenset("pq"), "l": frozenset("p"), "m": frozenset("p")})
    assert found["p"].tau == pytest.approx(1 / 3)
    assert found["p"].ape == pytest.approx(100 * 3 / 10)
    assert found["p"].top_errors == (100.0, 0.0, 0.0)
    assert (found["q"].kernels, found["q"].tau, found["q"].ape) == (1, 1.0, 0.0)
    assert mean_over_seeds([found["p"], found["q"]]).tau == pytest.approx(2 / 3)
    assert not has_order(np.ones(3))


def write_dataset(folder, kernels, *, without_analytical=()):
    """Kernel n belongs to program n mod 4; the second test kernel has tiles of one time only."""
    graphs = Featuriser().graphs(kernels)
    generator = np.random.default_rng(0)
    measurements, tiles = [], []
    for n, (kernel, graph) in enumerate(zip(kernels, graphs, strict=True)):
        listed = random_tiles(graph, generator, most=12)
        seconds = law_seconds(graph, listed)
        if n == 6:
            seconds[:] = 1e-6
        for number, (tile, one) in enumerate(zip(listed, seconds, strict=True)):
            timing = Timing(
                samples=(Sample(runs=1, seconds=float(one), loudness=math.nan, round=0),),
                clock=Clock.SIMULATED, method="law",
            )  # fmt: skip
            measurements.append(row_of(kernel, tile.text, timing))
            cost = math.nan if n in without_analytical and number == 0 else float(one) * (1 + number % 2)
            tiles.append(
                TileRow(
                    kernel=kernel.fingerprint, target=TARGET.digest, tile=tile.text,
                    is_default=int(number == 0), analytical_s=cost,
                )
            )  # fmt: skip
        measurements.append(
            row_of(kernel, "output[4096] in element", Failure(reason=Reason.TIMEOUT, message="x"))
        )
    places = [[list(PROGRAMS)[n % 4]] for n in range(len(kernels))]
    places[0] = list(PROGRAMS)  # one kernel that every program has
    with Writer.open(folder, target=TARGET, rule=LabelRule(gated_rounds=1, passes=1)) as writer:
        writer.commit(
            [
                ProgramRow(program=p, name=p, family=f, variant="", source="test", licence="", space="")
                for p, f in PROGRAMS.items()
            ],
            [PlanRow(program=p, plan="untouched", encoded="", how="default") for p in PROGRAMS],
            [
                KernelRow(fingerprint=k.fingerprint, skeleton=k.skeleton, kind="loop", nodes=1, text=k.text)
                for k in kernels
            ],
            measurements,
            tiles,
            [
                OccurrenceRow(
                    program=p, plan="untouched", kernel=k.fingerprint, calls=1, times=1.0, trip_source="exact"
                )
                for k, held in zip(kernels, places, strict=True)
                for p in held
            ],
        )


def row_of(kernel, tile, outcome):
    return MeasurementRow(
        occasion="o", kernel=kernel.fingerprint, tile=tile, target=TARGET.digest, input_policy="none",
        samples=to_columns(outcome),
    )  # fmt: skip


@pytest.fixture(scope="module")
def unique(kernels):
    found = {k.fingerprint: k for k, g in zip(kernels, Featuriser().graphs(kernels), strict=True)
             if g.node_count <= 8}  # fmt: skip
    return list(found.values())[:60]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, unique):
    root = tmp_path_factory.mktemp("tiles")
    write_dataset(root / "data", unique, without_analytical=(7,))
    (root / "split.json").write_text(json.dumps(SPLIT))
    return root


@pytest.fixture(scope="module")
def checkpoints(folder):
    """One seed of a small model, trained by the job."""
    small = replace(
        GNN, network=NetworkConfig(opcode_width=8, width=16, hops=1), epochs=4, learning_rate=1e-2,
        average=0.9, tiles=TileTask(kernels=8, tiles=8, groups=2),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_job, "TILE_MODELS", {"rank": small})
        run = lambda: train_job.train_tile_models(  # noqa: E731
            folder / "data", folder / "split.json", models=["rank"], seeds=[0], out=folder / "models",
            watch=lambda *_: None,
        )  # fmt: skip
        first, again = run(), run()
    assert [first[0].was_there, again[0].was_there] == [False, True]
    return rankers_by_model([r.folder for r in first])


@pytest.fixture(scope="module")
def found(folder, checkpoints):
    pytest.importorskip("lightgbm")
    return evaluate_tiles(folder / "data", folder / "split.json", checkpoints=checkpoints, seeds=[0])


def test_failed_tiles_have_no_label_and_the_default_is_known(folder, unique):
    dataset = Dataset.open(folder / "data")
    held = tile_labels(dataset)
    assert set(held) == {k.fingerprint for k in unique}
    one = held[unique[0].fingerprint]
    assert "output[4096] in element" not in one.tiles
    assert one.default == 0
    assert (one.seconds > 0).all()
    assert len(labels(dataset)) == 0  # no kernel was timed without a tile


def test_no_kernel_of_a_test_program_trains(folder, unique):
    data = tile_learning_data(Dataset.open(folder / "data"), read_split(folder / "split.json"))
    shared = unique[0].fingerprint
    assert shared in data.test.fingerprints
    assert shared not in {*data.train.fingerprints, *data.validation.fingerprints}
    assert not {*data.train.fingerprints} & {*data.test.fingerprints}
    assert len(data.train) + len(data.validation) + len(data.test) == 60
    assert set(data.test.defaults) == {0}


def test_the_table_has_every_model_and_says_what_it_left_out(found, tmp_path):
    assert {s.model for s in found.summaries if s.population == "all"} == {
        "rank", "gbdt", "analytical", "default"
    }  # fmt: skip
    assert {r.program for r in found.rows} == {"c/1", "d/1"}
    assert (found.test_kernels, found.without_order, found.without_analytical) == (31, 1, 1)
    assert found.summary("rank").kernels == 29
    assert found.is_simulated
    rank, default = found.summary("rank"), found.summary("default")
    assert rank.tau_mean > 0.3
    assert math.isnan(default.tau_mean)
    apes = [r.score.ape for r in found.rows if (r.model, r.population) == ("default", "all")]
    assert default.ape_mean == pytest.approx(np.mean(apes))
    pairs = {(d.first, d.second): d for d in found.differences}
    assert set(pairs) == {("rank", "gbdt"), ("rank", "analytical"), ("gbdt", "analytical")}
    held = pairs["rank", "analytical"]
    assert held.mean == pytest.approx(rank.tau_mean - found.summary("analytical").tau_mean)
    assert held.lower <= held.mean <= held.upper
    write_table(tmp_path / "table.json", found)
    assert json.loads((tmp_path / "table.json").read_text())["is_simulated"] is True
    with pytest.raises(KeyError, match="oracle on all"):
        found.summary("oracle")


def test_the_records_have_the_names_of_the_issue_and_say_simulated(found):
    figures = {f.name: f for f in tile_figures(found, split_name="random")}
    for model in ("rank", "gbdt", "analytical"):
        assert figures[f"tile.tpu_v3.random.tau_mean.{model}"].unit == "fraction"
        assert figures[f"tile.tpu_v3.random.ape.{model}"].unit == "%"
    assert all("simulated" in f.noise for f in figures.values())


def test_a_checkpoint_of_other_data_and_an_interrupted_one_are_refused(folder, checkpoints, tmp_path, unique):
    write_dataset(tmp_path / "data", unique[:40])
    with pytest.raises(SchemaError, match="it may know test kernels"):
        evaluate_tiles(tmp_path / "data", folder / "split.json", checkpoints=checkpoints, seeds=[])
    copy = tmp_path / "rank-0"
    copy.mkdir()
    for path in checkpoints["rank"][0].iterdir():
        (copy / path.name).write_bytes(
            path.read_bytes().replace(b'"is_finished": true', b'"is_finished": false')
        )
    with pytest.raises(SchemaError, match="was interrupted"):
        evaluate_tiles(folder / "data", folder / "split.json", checkpoints={"rank": [copy]}, seeds=[])


def test_a_dataset_of_kernels_without_tiles_has_nothing_to_learn(folder, tmp_path):
    with Writer.open(tmp_path, target=TARGET, rule=LabelRule()):
        pass
    with pytest.raises(SchemaError, match="no labelled kernel for train"):
        tile_learning_data(Dataset.open(tmp_path), read_split(folder / "split.json"))
