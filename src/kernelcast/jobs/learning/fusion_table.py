"""What an evaluation of the fusion task found: rows by program, and summaries over programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from kernelcast import metrics
from kernelcast.data.durable import write_durably
from kernelcast.jobs.learning.data import LearningData
from kernelcast.jobs.learning.tile_table import TileTable

# Kernels below this contribute little to a program's time; the paper tells them apart there.
BOUNDARY_S = 5e-6
# Of fewer kernels neither a mean error nor a τ says anything about a program.
LEAST_KERNELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model on one program, over the kernels of one population.

    Attributes:
        population: ``all``, ``unseen_fingerprints``, ``unseen_skeletons``, ``default_fusions`` (fusions of
            the compiler's own plan) or ``remeasured`` (the kernels that the oracle has).
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
        without_analytical: test kernels left out for all models, because the analytical model of the target's
            compiler, where it has one, gives them no cost.
        seeds: of all models that were trained.
        target: kind and chip of the target that made the labels.
        is_simulated: whether the labels are simulated times.
        split: name and digest of the split.
        data_digest: of the dataset.
    """

    rows: tuple[Row, ...]
    summaries: tuple[Summary, ...]
    train_kernels: int
    validation_kernels: int
    test_kernels: int
    without_analytical: int
    seeds: tuple[int, ...]
    target: tuple[str, str]
    is_simulated: bool
    split: str
    data_digest: str

    def summary(self, model: str, population: str = "all") -> Summary:
        """The summary of one model; KeyError where it was not evaluated."""
        return next(s for s in self.summaries if (s.model, s.population) == (model, population))


def write_table(path: Path, table: FusionTable | TileTable) -> None:
    """Writes a table as JSON; numbers that do not exist are null."""
    body = json.dumps(_without_nan(asdict(table)), indent=1, ensure_ascii=False)
    write_durably(path, (body + "\n").encode())


# Of one seed: (kernels ≥ 5 µs, kernels < 5 µs, MAPE ≥, MAPE <, τ ≥) by program, and of all as "pooled".
Scores = dict[str, tuple[int, int, float, float, float]]


def score_programs(
    data: LearningData, predicted: np.ndarray, measured: np.ndarray, usable: np.ndarray
) -> Scores:
    """The scores of one seed on the usable test kernels; a kernel of several programs counts in each."""
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


def rows_of(population: str, model: str, each: Sequence[Scores]) -> list[Row]:
    """A row per program: the median over seeds."""
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


def summarised(population: str, model: str, each: Sequence[Scores], extrapolated_share: float) -> Summary:
    """The summary of a model."""
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


def _median_of_programs(scores: Scores, number: int) -> float:
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
