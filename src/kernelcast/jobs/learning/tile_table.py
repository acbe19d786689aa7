"""What an evaluation of the tile task found: rows by program, summaries over programs, paired differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast import metrics
from kernelcast.jobs.learning.tile_scores import ProgramScore

ANALYTICAL = "analytical"
DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileRow:
    """One model on one program.

    Attributes:
        population: ``all``, ``unseen_fingerprints`` or ``unseen_skeletons``.
        model: its name; ``default`` is the compiler's own choice.
        program: zoo name.
        score: mean over seeds.
    """

    population: str
    model: str
    program: str
    score: ProgramScore


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSummary:
    """One model over all programs, each program counting the same.

    Attributes:
        population, model: as in ``TileRow``.
        seeds: how many models it is the mean of.
        programs, kernels: judged.
        tau_mean, tau_median: over programs, of the mean within a program; NaN for ``default``.
        tau_range: smallest and largest mean over seeds.
        ape_mean, ape_median: tile APE, percent.
        top_errors: means over programs, percent, of the 1, 5 and 10 best-scored.
    """

    population: str
    model: str
    seeds: int
    programs: int
    kernels: int
    tau_mean: float
    tau_median: float
    tau_range: tuple[float, float]
    ape_mean: float
    ape_median: float
    top_errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TauDifference:
    """How much higher one model's τ is than another's, program by program.

    Attributes:
        first, second: models.
        mean: of the differences over programs, each the mean over seeds.
        lower, upper: bootstrap interval over programs, 95 %.
    """

    first: str
    second: str
    mean: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTable:
    """All rows and summaries of one evaluation.

    Attributes:
        rows: per population, model and program; losers included.
        summaries: per population and model.
        differences: of τ for each pair of models, over all test kernels.
        train_kernels, validation_kernels, test_kernels: with timed tiles, by part.
        test_tiles: timed, of the judged kernels.
        without_order: test kernels left out because all their tiles take the same time.
        without_analytical: test kernels left out because the analytical model does not know all their tiles.
        is_simulated: whether the times are simulated.
        seeds: of all models that were trained, and of the random order of ties.
        target: chip that the times are of.
        split: name and digest of the split.
        data_digest: of the dataset.
    """

    rows: tuple[TileRow, ...]
    summaries: tuple[TileSummary, ...]
    differences: tuple[TauDifference, ...]
    train_kernels: int
    validation_kernels: int
    test_kernels: int
    test_tiles: int
    without_order: int
    without_analytical: int
    is_simulated: bool
    seeds: tuple[int, ...]
    target: str
    split: str
    data_digest: str

    def summary(self, model: str, population: str = "all") -> TileSummary:
        """The summary of one model; KeyError where it was not evaluated."""
        for row in self.summaries:
            if (row.model, row.population) == (model, population):
                return row
        raise KeyError(f"{model} on {population}")


def summarised(
    population: str,
    model: str,
    per_seed: Sequence[Mapping[str, ProgramScore]],
    programs: Mapping[str, ProgramScore],
    kernels: int,
) -> TileSummary:
    """The summary of a model.

    Args:
        per_seed: scores by program, of each seed.
        programs: the same, mean over seeds.
        kernels: judged.
    """
    taus = [score.tau for score in programs.values()]
    means = [float(np.mean([score.tau for score in scores.values()])) for scores in per_seed]
    apes = [score.ape for score in programs.values()]
    top_errors = np.mean([score.top_errors for score in programs.values()], axis=0).tolist()
    is_order = model != DEFAULT  # one chosen tile is not an order of all
    return TileSummary(
        population=population,
        model=model,
        seeds=len(per_seed),
        programs=len(programs),
        kernels=kernels,
        tau_mean=float(np.mean(taus)) if is_order else math.nan,
        tau_median=float(np.median(taus)) if is_order else math.nan,
        tau_range=(min(means), max(means)) if is_order else (math.nan, math.nan),
        ape_mean=float(np.mean(apes)),
        ape_median=float(np.median(apes)),
        top_errors=tuple(top_errors) if is_order else (top_errors[0], *[math.nan] * (len(top_errors) - 1)),
    )


def differences(taus: Mapping[str, Mapping[str, float]], seed: int) -> tuple[TauDifference, ...]:
    """The difference of each pair of models.

    Args:
        taus: by model and program; of all models the same programs.
        seed: of the bootstrap.
    """
    found: list[TauDifference] = []
    for first, second in itertools.combinations(taus, 2):
        values = np.array([taus[first][program] - taus[second][program] for program in taus[first]])
        lower, upper = metrics.bootstrap_interval(
            values, generator=np.random.default_rng(seed), statistic=lambda sample: float(sample.mean())
        )
        found.append(
            TauDifference(first=first, second=second, mean=float(values.mean()), lower=lower, upper=upper)
        )
    return tuple(found)
