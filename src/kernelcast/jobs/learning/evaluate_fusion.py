"""The fusion task's table: every model on the kernels of programs that none of them has seen.

Per program, as in the paper's Table 2: mean absolute percentage error over kernels of at least 5 µs and of
those below, and Kendall's τ over those of at least 5 µs; then the median over programs; then the median of
that over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from kernelcast.core.analytical import Peaks
from kernelcast.core.timing import Clock
from kernelcast.data.outcomes import labels
from kernelcast.data.store import Dataset
from kernelcast.errors import SchemaError
from kernelcast.features.graph import KernelGraph
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.jobs.learning.data import LearningData, learning_data
from kernelcast.jobs.learning.fusion_table import (
    FusionTable,
    Row,
    Summary,
    rows_of,
    score_programs,
    summarised,
)
from kernelcast.model.checkpoint import load_checkpoint
from kernelcast.model.predict import Predictor
from kernelcast.model.roofline import Fitting, analytical_seconds, fit_coefficients
from kernelcast.model.trees import TreesConfig, fit_trees
from kernelcast.split import read_split

_IS_FUSION = KERNELCAST_1.kernel_index["is_fusion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prediction:
    """One model's seconds for the test kernels, per seed; NaN where it has none."""

    seconds: tuple[np.ndarray, ...]
    extrapolated: np.ndarray
    seeds: tuple[int, ...] = ()


def evaluate_fusion(
    dataset_folder: Path,
    split_file: Path,
    *,
    checkpoints: Mapping[str, Sequence[Path]],
    peaks: Peaks | None,
    seeds: Sequence[int],
    oracle_folder: Path | None = None,
) -> FusionTable:
    """The table of the given checkpoints beside the baselines.

    Args:
        dataset_folder: whose labels judge.
        split_file: the one that the checkpoints were trained with.
        checkpoints: folders of each model, one per seed.
        peaks: of the machine that measured, for the roofline; None for a table without it.
        seeds: of the boosted trees.
        oracle_folder: another dataset with the labels of an independent occasion for some of the kernels.

    Raises:
        SchemaError: a checkpoint of other data or another split, which may have been trained on test kernels,
            or one whose training was interrupted.
        MissingExtraError: LightGBM is not installed.
    """
    data = learning_data(Dataset.open(dataset_folder), read_split(split_file))
    predictions = {name: _of_checkpoints(folders, data) for name, folders in checkpoints.items()}
    predictions["gbdt"] = _of_trees(data, TreesConfig(), seeds)
    predictions["gbdt_offset"] = _of_trees(data, TreesConfig(offset=True), seeds)
    if peaks is not None:
        predictions |= _analytical("roofline", data, partial(analytical_seconds, peaks=peaks))
    if not np.isnan(data.test.analytical_s).all():
        predictions |= _analytical("analytical", data, None)
    populations = {
        "all": data.novelty.all,
        "unseen_fingerprints": data.novelty.unseen_fingerprints,
        "unseen_skeletons": data.novelty.unseen_skeletons,
        "default_fusions": data.test_defaults & _fusions(data),
    }
    if oracle_folder is not None:
        found = labels(Dataset.open(oracle_folder, target=data.target))
        again = dict(zip(found.fingerprints, found.seconds.tolist(), strict=True))
        predictions["oracle"] = _of_labels(again, data)
        populations["remeasured"] = frozenset(again)
    return _table(data, predictions, populations)


def _of_checkpoints(folders: Sequence[Path], data: LearningData) -> _Prediction:
    seconds: list[np.ndarray] = []
    seeds: list[int] = []
    extrapolated = np.zeros(len(data.test), dtype=np.bool_)
    for folder in folders:
        checkpoint = load_checkpoint(folder, KERNELCAST_1)
        held = checkpoint.provenance
        if (held.data_digest, held.split) != (data.digest, data.split.digest):
            raise SchemaError(
                f"{folder} was trained on dataset {held.data_digest} under split {held.split}, not on "
                f"{data.digest} under {data.split.digest}: it may know test kernels; train it on these"
            )
        if not checkpoint.is_finished:
            raise SchemaError(
                f"the training of {folder} was interrupted: `kernelcast train` with the same folders ends it"
            )
        estimates = Predictor(checkpoint.trained, held).estimate_graphs(data.test.examples.graphs)
        seconds.append(estimates.seconds)
        seeds.append(checkpoint.trained.seed)
        extrapolated |= estimates.status != 0
    return _Prediction(seconds=tuple(seconds), extrapolated=extrapolated, seeds=tuple(seeds))


def _of_trees(data: LearningData, config: TreesConfig, seeds: Sequence[int]) -> _Prediction:
    models = [
        fit_trees(data.train.examples, data.validation.examples, config=config, seed=seed) for seed in seeds
    ]
    estimates = [model.estimate_graphs(data.test.examples.graphs) for model in models]
    return _Prediction(
        seconds=tuple(e.seconds for e in estimates),
        extrapolated=estimates[0].status != 0,
        seeds=tuple(seeds),
    )


def _analytical(
    name: str, data: LearningData, model: Callable[[Sequence[KernelGraph]], np.ndarray] | None
) -> dict[str, _Prediction]:
    """Both fittings: on the training programs, and as in the paper on the test programs' default plans.

    Args:
        name: first word of the rows' names.
        model: seconds of graphs before fitting; None for those that the dataset has of the target's compiler.
    """
    train_costs, test_costs = (
        part.analytical_s if model is None else model(part.examples.graphs)
        for part in (data.train, data.test)
    )
    defaults = np.array([name in data.test_defaults for name in data.test.fingerprints], dtype=np.bool_)
    fitted_on = {
        "train": (data.train.examples, train_costs, np.ones(len(data.train), dtype=np.bool_)),
        "test": (data.test.examples, test_costs, defaults),
    }
    found: dict[str, _Prediction] = {}
    for where, (examples, costs, chosen) in fitted_on.items():
        numbers = np.flatnonzero(chosen & ~np.isnan(costs))
        graphs = [examples.graphs[n] for n in numbers.tolist()]
        for fitting, ending in ((Fitting.MEDIAN, ""), (Fitting.TOTALS, "_totals")):
            coefficients = fit_coefficients(graphs, costs[numbers], examples.seconds[numbers], fitting)
            seconds = coefficients.seconds(data.test.examples.graphs, test_costs)
            found[f"{name}_{where}{ending}"] = _known(seconds)
    return found


def _fusions(data: LearningData) -> frozenset[str]:
    """Fingerprints of the test kernels that are fusions."""
    pairs = zip(data.test.fingerprints, data.test.examples.graphs, strict=True)
    return frozenset(name for name, graph in pairs if graph.kernel[_IS_FUSION])


def _known(seconds: np.ndarray) -> _Prediction:
    return _Prediction(seconds=(seconds,), extrapolated=np.zeros(len(seconds), dtype=np.bool_))


def _of_labels(again: Mapping[str, float], data: LearningData) -> _Prediction:
    return _known(np.array([again.get(name, math.nan) for name in data.test.fingerprints], dtype=np.float64))


def _table(
    data: LearningData, predictions: Mapping[str, _Prediction], populations: Mapping[str, frozenset[str]]
) -> FusionTable:
    measured = data.test.examples.seconds
    is_costed = ~np.isnan(data.test.analytical_s)
    is_judged = is_costed if is_costed.any() else ~is_costed
    rows: list[Row] = []
    summaries: list[Summary] = []
    for population, held in populations.items():
        members = is_judged & np.array([name in held for name in data.test.fingerprints], dtype=np.bool_)
        for model, prediction in predictions.items():
            usable = members & ~np.isnan(np.stack(prediction.seconds)).any(axis=0)
            if not usable.any():
                continue
            each = [score_programs(data, seconds, measured, usable) for seconds in prediction.seconds]
            rows.extend(rows_of(population, model, each))
            summaries.append(
                summarised(population, model, each, float(prediction.extrapolated[usable].mean()))
            )
    return FusionTable(
        rows=tuple(rows),
        summaries=tuple(summaries),
        train_kernels=len(data.train),
        validation_kernels=len(data.validation),
        test_kernels=len(data.test),
        without_analytical=int((~is_judged).sum()),
        seeds=tuple(sorted({seed for prediction in predictions.values() for seed in prediction.seeds})),
        target=(data.target.kind, data.target.chip),
        is_simulated=data.target.clock == Clock.SIMULATED,
        split=f"{data.split.name}, {data.split.digest}",
        data_digest=data.digest,
    )
