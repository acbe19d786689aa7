"""Training for the tile task: groups, batches, that each loss learns an order, and the ranker it gives."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tile_law import random_tiles, tiled_kernel

from kernelcast import metrics
from kernelcast.core.estimate import Ranker
from kernelcast.core.tile import Tile
from kernelcast.errors import SchemaError
from kernelcast.features.graph import Featuriser
from kernelcast.features.scaling import fit_scaling
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.tiles import tile_rows
from kernelcast.model.checkpoint import load_checkpoint, save_checkpoint
from kernelcast.model.config import GNN, PAPER_BLOCKS, TileTask, TrainConfig
from kernelcast.model.examples import TiledKernel, TileExamples, draw_groups
from kernelcast.model.loss import TileLoss
from kernelcast.model.network import NetworkConfig
from kernelcast.model.predict import Predictor
from kernelcast.model.rank import TileRanker
from kernelcast.model.sequence import SequenceConfig
from kernelcast.model.tile_batches import TileBatcher
from kernelcast.model.train import train
from kernelcast.model.train_tiles import train_tiles
from kernelcast.model.trained import Promise

SMALL = replace(
    GNN,
    network=NetworkConfig(opcode_width=8, width=16, hops=1),
    epochs=8,
    learning_rate=1e-2,
    average=0.9,
    tiles=TileTask(kernels=8, tiles=8, groups=2),
)


@pytest.fixture(scope="module")
def tiled(kernels):
    generator = np.random.default_rng(0)
    graphs = Featuriser().graphs(kernels)
    return [tiled_kernel(graph, generator) for graph in graphs if graph.node_count <= 8]


@pytest.fixture(scope="module")
def parts(tiled):
    cut = len(tiled) * 3 // 4
    return TileExamples(kernels=tiled[:cut]), TileExamples(kernels=tiled[cut:])


def fit(parts, config, seed=0, **callbacks):
    return train_tiles(*parts, schema=KERNELCAST_1, config=config, seed=seed, **callbacks)


@pytest.fixture(scope="module")
def ranking(parts):
    return fit(parts, SMALL)


def test_groups_never_repeat_a_tile_and_have_two_at_least():
    random = np.random.default_rng(0)
    for count in range(30):
        groups = draw_groups(count, random, tiles=10, groups=2)
        drawn = np.concatenate([*groups, np.zeros(0, dtype=int)])
        assert len(set(drawn.tolist())) == len(drawn) <= min(count, 20)
        assert all(2 <= len(group) <= 10 for group in groups)
        assert (len(groups) > 0) == (count > 1)


def test_an_epoch_gives_every_kernel_and_shuffles_its_tiles(parts):
    training, _ = parts
    groups = list(training.epoch(np.random.default_rng(0), tiles=8, groups=2))
    assert len(groups) == training.group_count(tiles=8, groups=2)
    assert {id(g.graph) for g in groups} == {id(k.graph) for k in training.kernels if len(k) > 1}
    assert any(group.tiles[0].tolist() != kernel.tiles[0].tolist()
               for group in groups for kernel in training.kernels if group.graph is kernel.graph)  # fmt: skip


def test_batches_hold_each_group_once_with_its_own_times(parts):
    training, _ = parts
    scaling = fit_scaling(
        [k.graph for k in training.kernels], KERNELCAST_1, frozenset(PAPER_BLOCKS),
        np.concatenate([k.tiles for k in training.kernels]),
    )  # fmt: skip
    task = TileTask(kernels=4, tiles=8, groups=2)
    batcher = TileBatcher(scaling, KERNELCAST_1, task, centre=0.0, spread=1.0)
    random = np.random.default_rng(0)
    groups = list(training.epoch(random, tiles=8, groups=2))
    batches = list(batcher.batches(groups, random))
    assert len(batches) == -(-len(groups) // 4)
    found = sorted(
        tuple(sorted(b.target[k][b.present[k]].tolist())) for b in batches for k in range(4)
        if b.present[k].any()
    )  # fmt: skip
    assert found == sorted(tuple(sorted(np.log(g.seconds).astype(np.float32).tolist())) for g in groups)
    for made in batches:
        assert made.present.any(axis=1).tolist() == made.graphs.mask.any(axis=1).tolist()


@pytest.mark.parametrize("loss", TileLoss)
def test_every_loss_learns_the_order_of_tiles(parts, ranking, loss):
    config = replace(SMALL, tiles=replace(SMALL.tiles, loss=loss))
    trained = ranking if loss is SMALL.tiles.loss else fit(parts, config)
    assert trained.history[-1].validation_error < 0.45  # a random order has 1


def test_the_same_class_and_code_make_the_checkpoints_of_both_tasks(trained, ranking, tmp_path, provenance):
    assert type(trained.network) is type(ranking.network)
    for name, model in (("fusion", trained), ("tile", ranking)):
        save_checkpoint(tmp_path / name, model, provenance, KERNELCAST_1)
    fusion, tile = (load_checkpoint(tmp_path / name, KERNELCAST_1).trained for name in ("fusion", "tile"))
    assert type(fusion.network) is type(tile.network)
    assert (fusion.promise, tile.promise) == (Promise.ESTIMATOR, Promise.RANKER)
    held = [json.loads((tmp_path / name / "model.json").read_text()) for name in ("fusion", "tile")]
    assert held[0]["schema_digest"] == held[1]["schema_digest"]
    read = [{c for c in h["columns_read"]["node"] if "tile" in c} for h in held]
    assert not read[0]
    assert "tile_1_product" in read[1]


def test_the_same_seed_gives_the_same_weights(parts):
    config = replace(SMALL, epochs=2)
    first, again, other = fit(parts, config), fit(parts, config), fit(parts, config, seed=1)
    leaves = [jax.tree.leaves(eqx.filter(t.network, eqx.is_array)) for t in (first, again, other)]
    assert all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[1], strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[2], strict=True))


def test_a_sequence_network_learns_and_comes_back(parts, tmp_path, provenance):
    network = SequenceConfig(opcode_width=8, width=16, state=16)
    trained = fit(parts, replace(SMALL, network=network, epochs=6))
    assert trained.history[-1].validation_error < 0.6
    save_checkpoint(tmp_path, trained, provenance, KERNELCAST_1)
    loaded = TileRanker.load(tmp_path)
    assert loaded.trained.config == trained.config
    kernel = parts[1].kernels[0]
    np.testing.assert_array_equal(
        loaded.rank_graph(kernel.graph, kernel.tiles),
        TileRanker(trained, provenance).rank_graph(kernel.graph, kernel.tiles),
    )


def test_a_ranker_orders_any_number_of_tiles(ranking, provenance, kernels, tmp_path):
    save_checkpoint(tmp_path, ranking, provenance, KERNELCAST_1)
    ranker = TileRanker.load(tmp_path)
    assert isinstance(ranker, Ranker)
    tiles = random_tiles(Featuriser().graph(kernels[0]), np.random.default_rng(1), most=100)
    scores = ranker.rank(kernels[0], tiles)
    assert scores.shape == (len(tiles),)
    assert np.isfinite(scores).all()
    backwards = ranker.rank(kernels[0], tiles[::-1])
    np.testing.assert_allclose(backwards[::-1], scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ranker.rank(kernels[0], tiles[:2]), scores[:2], rtol=1e-4, atol=1e-5)
    assert ranker.rank(kernels[0], []).shape == (0,)
    assert metrics.kendall_tau(ranker.rank(kernels[0], [*tiles] * 100), np.tile(scores, 100)) > 0.99


def test_promises_are_not_mixed_up(ranking, trained, provenance, tmp_path):
    save_checkpoint(tmp_path / "tile", ranking, provenance, KERNELCAST_1)
    save_checkpoint(tmp_path / "fusion", trained, provenance, KERNELCAST_1)
    with pytest.raises(SchemaError, match="orders the tiles of a kernel and knows no times"):
        Predictor.load(tmp_path / "tile")
    with pytest.raises(SchemaError, match="estimates times of kernels"):
        TileRanker.load(tmp_path / "fusion")
    with pytest.raises(ValueError, match="needs a model of the tile task"):
        TileRanker(trained, provenance)
    held = json.loads((tmp_path / "tile" / "model.json").read_text())
    (tmp_path / "tile" / "model.json").write_text(json.dumps(held | {"promise": "estimator"}))
    with pytest.raises(SchemaError, match=r"promise is .*estimator.*, its settings make it .*ranker"):
        load_checkpoint(tmp_path / "tile", KERNELCAST_1)


def test_a_checkpoint_of_the_first_format_is_an_estimator(trained, provenance, tmp_path):
    save_checkpoint(tmp_path, trained, provenance, KERNELCAST_1)
    held = json.loads((tmp_path / "model.json").read_text())
    held["format"] = "kernelcast-checkpoint-1"
    del held["promise"], held["config"]["kind"], held["config"]["tiles"]
    (tmp_path / "model.json").write_text(json.dumps(held))
    loaded = load_checkpoint(tmp_path, KERNELCAST_1).trained
    assert loaded.promise is Promise.ESTIMATOR
    assert loaded.config == trained.config


def test_what_cannot_be_learned_from_is_said(parts, examples):
    one = parts[0].kernels[0]
    single, equal = one.taken(np.array([0])), replace(one, seconds=np.ones(len(one)))
    for training, validation in (([single], [one]), ([one], [single]), ([one], [equal])):
        with pytest.raises(ValueError, match=r"kernels with two tiles or more and judged on"):
            fit((TileExamples(kernels=training), TileExamples(kernels=validation)), SMALL)
    with pytest.raises(ValueError, match=r"needs config\.tiles"):
        fit(parts, GNN)
    with pytest.raises(ValueError, match="goes to train_tiles"):
        train(examples, examples, schema=KERNELCAST_1, config=SMALL, seed=0)
    with pytest.raises(ValueError, match="one kernel with two tiles"):
        TileTask(tiles=1)
    with pytest.raises(ValueError, match="must be > 0"):
        replace(one, seconds=np.zeros(len(one)))
    with pytest.raises(ValueError, match="cannot have 1 times"):
        TiledKernel(graph=one.graph, tiles=tile_rows([Tile(levels=())] * 2), seconds=np.ones(1),
                    analytical=np.ones(2))  # fmt: skip
    assert isinstance(SMALL, TrainConfig)
