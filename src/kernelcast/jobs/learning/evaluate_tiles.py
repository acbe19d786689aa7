"""The tile task's table: every ranker on the kernels of programs that none of them has seen (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kernelcast.core.timing import Clock
from kernelcast.data.store import Dataset
from kernelcast.errors import SchemaError
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.jobs.learning.tile_data import TileLearningData, TilePart, tile_learning_data
from kernelcast.jobs.learning.tile_scores import (
    KernelScore,
    by_program,
    has_order,
    mean_over_seeds,
    score_kernel,
)
from kernelcast.jobs.learning.tile_table import (
    ANALYTICAL,
    DEFAULT,
    TauDifference,
    TileRow,
    TileSummary,
    TileTable,
    differences,
    summarised,
)
from kernelcast.model.checkpoint import load_checkpoint
from kernelcast.model.examples import TiledKernel
from kernelcast.model.rank import TileRanker
from kernelcast.model.tile_trees import fit_tile_trees
from kernelcast.model.trees import TreesConfig
from kernelcast.split import read_split

# Scores of every judged kernel in order, per seed.
_Scores = Mapping[int, Sequence[np.ndarray]]


def evaluate_tiles(
    dataset_folder: Path,
    split_file: Path,
    *,
    checkpoints: Mapping[str, Sequence[Path]],
    seeds: Sequence[int],
    ties_seed: int = 0,
) -> TileTable:
    """The table of the given checkpoints beside the baselines.

    The baselines are boosted trees, the compiler's analytical model and its own choice, the default tile.

    Args:
        dataset_folder: a tile dataset, whose labels judge.
        split_file: the one that the checkpoints were trained with.
        checkpoints: folders of each model, one per seed.
        seeds: of the boosted trees.
        ties_seed: of the order in which equal scores are taken.

    Raises:
        SchemaError: a checkpoint of other data or another split, which may have been trained on test kernels,
            one whose training was interrupted, or no test kernel that can be judged.
        MissingExtraError: LightGBM is not installed.
    """
    data = tile_learning_data(Dataset.open(dataset_folder), read_split(split_file))
    judged, without_order, without_analytical = _judged(data.test)
    kernels = [data.test.examples.kernels[n] for n in judged]
    models: dict[str, _Scores] = {
        name: {
            ranker.trained.seed: [ranker.rank_graph(k.graph, k.tiles) for k in kernels]
            for ranker in (_checked(folder, data) for folder in folders)
        }
        for name, folders in checkpoints.items()
    }
    models["gbdt"] = {seed: _scores_of_trees(data, kernels, seed) for seed in seeds}
    if not np.isnan(kernels[0].analytical).any():
        models[ANALYTICAL] = {0: [kernel.analytical for kernel in kernels]}
    defaults = [data.test.defaults[n] for n in judged]
    if None not in defaults:
        models[DEFAULT] = {
            0: [np.arange(len(k)) != default for k, default in zip(kernels, defaults, strict=True)]
        }
    fingerprints = [data.test.fingerprints[n] for n in judged]
    rows, summaries, compared = _tables(data, fingerprints, kernels, models, ties_seed)
    return TileTable(
        rows=rows,
        summaries=summaries,
        differences=compared,
        train_kernels=len(data.train),
        validation_kernels=len(data.validation),
        test_kernels=len(data.test),
        test_tiles=sum(len(kernel) for kernel in kernels),
        without_order=without_order,
        without_analytical=without_analytical,
        is_simulated=data.target.clock == Clock.SIMULATED,
        seeds=tuple(sorted({ties_seed, *(s for scores in models.values() for s in scores)})),
        target=data.target.chip,
        split=f"{data.split.name}, {data.split.digest}",
        data_digest=data.digest,
    )


def rankers_by_model(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Checkpoint folders of the tile task by the model that each holds.

    Raises:
        SchemaError: one is not of the tile task.
    """
    found: dict[str, list[Path]] = {}
    for folder in folders:
        found.setdefault(TileRanker.load(folder).provenance.name, []).append(folder)
    return found


def _judged(test: TilePart) -> tuple[list[int], int, int]:
    """Numbers of the kernels that are judged; how many lack an order, and how many lack analytical costs.

    Where the analytical model knows no kernel at all, it is not in the table and nothing is left out for it.
    """
    ordered = [n for n, kernel in enumerate(test.examples.kernels) if has_order(kernel.seconds)]
    costed = [n for n in ordered if not np.isnan(test.examples.kernels[n].analytical).any()]
    chosen = costed or ordered
    if not chosen:
        raise SchemaError(
            f"none of the {len(test)} test kernels has tiles of two different times: collect more tiles"
        )
    return chosen, len(test) - len(ordered), len(ordered) - len(chosen)


def _checked(folder: Path, data: TileLearningData) -> TileRanker:
    """The ranker of a checkpoint that does not know the test kernels."""
    ranker = TileRanker.load(folder)
    held = ranker.provenance
    if (held.data_digest, held.split) != (data.digest, data.split.digest):
        raise SchemaError(
            f"{folder} was trained on dataset {held.data_digest} under split {held.split}, not on "
            f"{data.digest} under {data.split.digest}: it may know test kernels; train it on these"
        )
    if not load_checkpoint(folder, KERNELCAST_1).is_finished:
        raise SchemaError(
            f"the training of {folder} was interrupted: `kernelcast train` with the same folders ends it"
        )
    return ranker


def _scores_of_trees(data: TileLearningData, kernels: Sequence[TiledKernel], seed: int) -> list[np.ndarray]:
    model = fit_tile_trees(data.train.examples, data.validation.examples, config=TreesConfig(), seed=seed)
    return [model.rank_graph(kernel.graph, kernel.tiles) for kernel in kernels]


def _tables(
    data: TileLearningData,
    fingerprints: Sequence[str],
    kernels: Sequence[TiledKernel],
    models: Mapping[str, _Scores],
    ties_seed: int,
) -> tuple[tuple[TileRow, ...], tuple[TileSummary, ...], tuple[TauDifference, ...]]:
    populations = {
        "all": data.novelty.all,
        "unseen_fingerprints": data.novelty.unseen_fingerprints,
        "unseen_skeletons": data.novelty.unseen_skeletons,
    }
    scored = {model: _scored(fingerprints, kernels, scores, ties_seed) for model, scores in models.items()}
    rows: list[TileRow] = []
    summaries: list[TileSummary] = []
    taus: dict[str, dict[str, float]] = {}
    for population, members in populations.items():
        for model, each in scored.items():
            per_seed = [
                by_program({f: s for f, s in found.items() if f in members}, data.test_programs)
                for found in each
            ]
            if not per_seed[0]:
                continue
            programs = {p: mean_over_seeds([scores[p] for scores in per_seed]) for p in per_seed[0]}
            rows.extend(
                TileRow(population=population, model=model, program=p, score=s) for p, s in programs.items()
            )
            kernels_judged = sum(f in members for f in fingerprints)
            summaries.append(summarised(population, model, per_seed, programs, kernels_judged))
            if population == "all" and model != DEFAULT:
                taus[model] = {p: s.tau for p, s in programs.items()}
    return tuple(rows), tuple(summaries), differences(taus, ties_seed)


def _scored(
    fingerprints: Sequence[str], kernels: Sequence[TiledKernel], scores: _Scores, ties_seed: int
) -> list[dict[str, KernelScore]]:
    """Per seed, the score of each kernel by fingerprint; all models meet ties in the same order."""
    return [
        {
            name: score_kernel(
                np.asarray(s, dtype=np.float64), k.seconds, random=np.random.default_rng((ties_seed, n))
            )
            for n, (name, k, s) in enumerate(zip(fingerprints, kernels, held, strict=True))
        }
        for held in scores.values()
    ]
