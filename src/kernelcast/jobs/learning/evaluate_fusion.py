"""The fusion task's table: every model on the kernels of programs that none of them has seen.

Per program, as in the paper's Table 2: mean absolute percentage error over kernels of at least 5 µs and of
those below, and Kendall's τ over those of at least 5 µs; then the median over programs; then the median of
that over seeds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from kernelcast import metrics
from kernelcast.core.analytical import Peaks
from kernelcast.data.durable import write_durably
from kernelcast.data.outcomes import labels
from kernelcast.data.store import Dataset
from kernelcast.errors import SchemaError
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.jobs.learning.data import LearningData, learning_data
from kernelcast.jobs.learning.tile_table import TileTable
from kernelcast.model.checkpoint import load_checkpoint
from kernelcast.model.predict import Predictor
from kernelcast.model.roofline import Fitting, Roofline, fit_roofline
from kernelcast.model.trees import TreesConfig, fit_trees
from kernelcast.split import read_split

# Kernels below this contribute little to a program's time; the paper tells them apart there.
BOUNDARY_S = 5e-6
# Of fewer kernels neither a mean error nor a τ says anything about a program.
LEAST_KERNELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model on one program, over the kernels of one population.

    Attributes:
        population: ``all``, ``unseen_fingerprints``, ``unseen_skeletons`` or ``remeasured`` (the kernels that
            the oracle has).
        model: its name.
        program: zoo name, or ``pooled``.
        kernels_ge5us, kernels_lt5us: in each band.
        mape_ge5us, mape_lt5us: percent; median over seeds; NaN under ``LEAST_KERNELS`` kernels.
        tau_ge5us: Kendall's τ-b; likewise.
    """

    population: str
    model: str
    program: str
    kernels_ge5us: int
    kernels_lt5us: int
    mape_ge5us: float
    mape_lt5us: float
    tau_ge5us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The median over programs of one model, and its spread over seeds.

    Attributes:
        population, model: as in ``Row``.
        seeds: how many models it is the median of.
        programs: that have enough kernels of at least 5 µs.
        mape_ge5us, mape_lt5us, tau_ge5us: median over seeds of the median over programs.
        mape_ge5us_range: smallest and largest over seeds.
        extrapolated_share: fraction of the kernels with something unseen in training.
    """

    population: str
    model: str
    seeds: int
    programs: int
    mape_ge5us: float
    mape_lt5us: float
    tau_ge5us: float
    mape_ge5us_range: tuple[float, float]
    extrapolated_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionTable:
    """All rows and summaries of one evaluation.

    Attributes:
        rows: per population, model and program; losers included.
        summaries: per population and model.
        train_kernels, validation_kernels, test_kernels: labelled, by part.
        seeds: of all models that were trained.
        split: name and digest of the split.
        data_digest: of the dataset.
    """

    rows: tuple[Row, ...]
    summaries: tuple[Summary, ...]
    train_kernels: int
    validation_kernels: int
    test_kernels: int
    seeds: tuple[int, ...]
    split: str
    data_digest: str

    def summary(self, model: str, population: str = "all") -> Summary:
        """The summary of one model; KeyError where it was not evaluated."""
        return next(s for s in self.summaries if (s.model, s.population) == (model, population))


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
    peaks: Peaks,
    seeds: Sequence[int],
    oracle_folder: Path | None = None,
) -> FusionTable:
    """The table of the given checkpoints beside the baselines.

    Args:
        dataset_folder: whose labels judge.
        split_file: the one that the checkpoints were trained with.
        checkpoints: folders of each model, one per seed.
        peaks: of the machine that measured, for the roofline.
        seeds: of the boosted trees.
        oracle_folder: another dataset with the labels of an independent occasion for some of the kernels.

    Raises:
        SchemaError: a checkpoint of other data or another split, which may have been trained on test kernels,
            or one whose training was interrupted.
        MissingExtraError: LightGBM is not installed.
    """
    data = learning_data(Dataset.open(dataset_folder), read_split(split_file))
    predictions = {name: _of_checkpoints(folders, data) for name, folders in checkpoints.items()}
    predictions["gbdt"] = _of_trees(data, seeds)
    predictions |= {name: _of_roofline(model, data) for name, model in _rooflines(data, peaks).items()}
    populations = {
        "all": data.novelty.all,
        "unseen_fingerprints": data.novelty.unseen_fingerprints,
        "unseen_skeletons": data.novelty.unseen_skeletons,
    }
    if oracle_folder is not None:
        found = labels(Dataset.open(oracle_folder, target=data.target))
        again = dict(zip(found.fingerprints, found.seconds.tolist(), strict=True))
        predictions["oracle"] = _of_labels(again, data)
        populations["remeasured"] = frozenset(again)
    return _table(data, predictions, populations)


def write_table(path: Path, table: FusionTable | TileTable) -> None:
    """Writes a table as JSON; numbers that do not exist are null."""
    body = json.dumps(_without_nan(asdict(table)), indent=1, ensure_ascii=False)
    write_durably(path, (body + "\n").encode())


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


def _of_trees(data: LearningData, seeds: Sequence[int]) -> _Prediction:
    models = [
        fit_trees(data.train.examples, data.validation.examples, config=TreesConfig(), seed=seed)
        for seed in seeds
    ]
    estimates = [model.estimate_graphs(data.test.examples.graphs) for model in models]
    return _Prediction(
        seconds=tuple(e.seconds for e in estimates),
        extrapolated=estimates[0].status != 0,
        seeds=tuple(seeds),
    )


def _rooflines(data: LearningData, peaks: Peaks) -> dict[str, Roofline]:
    """Both fittings: on the training programs, and as in the paper on the test programs' default plans."""
    train, test = data.train.examples, data.test.examples
    defaults = [n for n, name in enumerate(data.test.fingerprints) if name in data.test_defaults]
    return {
        "roofline_train": fit_roofline(train.graphs, train.seconds, peaks, Fitting.MEDIAN),
        "roofline_train_totals": fit_roofline(train.graphs, train.seconds, peaks, Fitting.TOTALS),
        "roofline_test": fit_roofline(
            [test.graphs[n] for n in defaults], test.seconds[defaults], peaks, Fitting.MEDIAN
        ),
        "roofline_test_totals": fit_roofline(
            [test.graphs[n] for n in defaults], test.seconds[defaults], peaks, Fitting.TOTALS
        ),
    }


def _of_roofline(model: Roofline, data: LearningData) -> _Prediction:
    seconds = model.estimate_graphs(data.test.examples.graphs).seconds
    return _Prediction(seconds=(seconds,), extrapolated=np.zeros(len(seconds), dtype=np.bool_))


def _of_labels(again: Mapping[str, float], data: LearningData) -> _Prediction:
    seconds = np.array([again.get(name, math.nan) for name in data.test.fingerprints], dtype=np.float64)
    return _Prediction(seconds=(seconds,), extrapolated=np.zeros(len(seconds), dtype=np.bool_))


def _table(
    data: LearningData, predictions: Mapping[str, _Prediction], populations: Mapping[str, frozenset[str]]
) -> FusionTable:
    measured = data.test.examples.seconds
    rows: list[Row] = []
    summaries: list[Summary] = []
    for population, held in populations.items():
        members = np.array([name in held for name in data.test.fingerprints], dtype=np.bool_)
        for model, prediction in predictions.items():
            usable = members & ~np.isnan(np.stack(prediction.seconds)).any(axis=0)
            if not usable.any():
                continue
            each = [_by_program(data, seconds, measured, usable) for seconds in prediction.seconds]
            rows.extend(_rows(population, model, each))
            summaries.append(_summary(population, model, each, float(prediction.extrapolated[usable].mean())))
    return FusionTable(
        rows=tuple(rows),
        summaries=tuple(summaries),
        train_kernels=len(data.train),
        validation_kernels=len(data.validation),
        test_kernels=len(data.test),
        seeds=tuple(sorted({seed for prediction in predictions.values() for seed in prediction.seeds})),
        split=f"{data.split.name}, {data.split.digest}",
        data_digest=data.digest,
    )


# Of one seed: (kernels ≥ 5 µs, kernels < 5 µs, MAPE ≥, MAPE <, τ ≥) by program, and of all as "pooled".
_Scores = dict[str, tuple[int, int, float, float, float]]


def _by_program(
    data: LearningData, predicted: np.ndarray, measured: np.ndarray, usable: np.ndarray
) -> _Scores:
    members: dict[str, list[int]] = {"pooled": []}
    for number in np.flatnonzero(usable).tolist():
        members["pooled"].append(number)
        for program in data.test_programs[data.test.fingerprints[number]]:
            members.setdefault(program, []).append(number)
    return {program: _score(predicted[held], measured[held]) for program, held in sorted(members.items())}


def _score(predicted: np.ndarray, measured: np.ndarray) -> tuple[int, int, float, float, float]:
    is_long = measured >= BOUNDARY_S
    long_count, short_count = int(is_long.sum()), int((~is_long).sum())
    return (
        long_count,
        short_count,
        metrics.mape(predicted[is_long], measured[is_long]) if long_count >= LEAST_KERNELS else math.nan,
        metrics.mape(predicted[~is_long], measured[~is_long]) if short_count >= LEAST_KERNELS else math.nan,
        metrics.kendall_tau(predicted[is_long], measured[is_long])
        if long_count >= LEAST_KERNELS
        else math.nan,
    )


def _rows(population: str, model: str, each: Sequence[_Scores]) -> list[Row]:
    rows: list[Row] = []
    for program, (long_count, short_count, *_) in each[0].items():
        mape_ge, mape_lt, tau = (float(np.median([scores[program][n] for scores in each])) for n in (2, 3, 4))
        rows.append(
            Row(
                population=population,
                model=model,
                program=program,
                kernels_ge5us=long_count,
                kernels_lt5us=short_count,
                mape_ge5us=mape_ge,
                mape_lt5us=mape_lt,
                tau_ge5us=tau,
            )
        )
    return rows


def _summary(population: str, model: str, each: Sequence[_Scores], extrapolated_share: float) -> Summary:
    medians = np.array([[_median_of_programs(scores, n) for n in (2, 3, 4)] for scores in each])
    mape_ge, mape_lt, tau = np.median(medians, axis=0).tolist()
    return Summary(
        population=population,
        model=model,
        seeds=len(each),
        programs=sum(not math.isnan(s[2]) for p, s in each[0].items() if p != "pooled"),
        mape_ge5us=mape_ge,
        mape_lt5us=mape_lt,
        tau_ge5us=tau,
        mape_ge5us_range=(float(medians[:, 0].min()), float(medians[:, 0].max())),
        extrapolated_share=extrapolated_share,
    )


def _median_of_programs(scores: _Scores, number: int) -> float:
    values = [s[number] for program, s in scores.items() if program != "pooled" and not math.isnan(s[number])]
    return float(np.median(values)) if values else math.nan


def _without_nan(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(held) for held in value]
    return value
