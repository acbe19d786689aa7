"""How well scores order the tiles of kernels: per kernel, then within a program, then over programs.

As in the paper's Table 3, Kendall's τ is taken within each kernel and averaged within each program. A kernel
whose timed tiles all take the same time has no order to find: it is left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast import metrics

# The numbers of best-predicted tiles whose best counts.
TOPS = (1, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelScore:
    """One model on one kernel.

    Attributes:
        tau: Kendall's τ-b of scores and times; 0 for a constant score.
        top_errors: percent by which the best of the 1, 5 and 10 best-scored tiles is slower than the best.
        chosen_s: seconds of the best-scored tile.
        best_s: seconds of the fastest tile.
    """

    tau: float
    top_errors: tuple[float, ...]
    chosen_s: float
    best_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramScore:
    """One model on one program: means over its kernels.

    Attributes:
        kernels: that have an order to find.
        tau: mean over them.
        ape: tile APE: 100 · Σ (chosen − best) / Σ best over them.
        top_errors: means over them, percent.
    """

    kernels: int
    tau: float
    ape: float
    top_errors: tuple[float, ...]


def score_kernel(scores: np.ndarray, seconds: np.ndarray, *, random: np.random.Generator) -> KernelScore:
    """How well the scores of a kernel's tiles order them.

    Tiles are listed with the compiler's own choice first or in order of a loop, so equal scores are taken in
    random order: a model that knows nothing must not profit from the list.

    >>> score_kernel(np.zeros(3), np.array([1.0, 2.0, 3.0]), random=np.random.default_rng(0)).tau
    0.0
    """
    order = random.permutation(len(scores))
    scores, seconds = scores[order], seconds[order]
    best_s = float(seconds.min())
    return KernelScore(
        tau=metrics.kendall_tau(scores, seconds),
        top_errors=tuple(metrics.top_k_error(scores, seconds, min(k, len(scores))) for k in TOPS),
        chosen_s=float(seconds[scores.argmin()]),
        best_s=best_s,
    )


def has_order(seconds: np.ndarray) -> bool:
    """Whether a kernel's tiles take at least two different times."""
    return np.unique(seconds).size > 1


def by_program(
    scores: Mapping[str, KernelScore], programs: Mapping[str, frozenset[str]]
) -> dict[str, ProgramScore]:
    """The score of each program, by name; a kernel of several programs counts in each.

    Args:
        scores: by fingerprint.
        programs: that launch each kernel, by fingerprint.
    """
    members: dict[str, list[KernelScore]] = {}
    for fingerprint, score in scores.items():
        for program in programs[fingerprint]:
            members.setdefault(program, []).append(score)
    return {program: _program(held) for program, held in sorted(members.items())}


def mean_over_seeds(each: Sequence[ProgramScore]) -> ProgramScore:
    """The mean of one program's scores by models of several seeds."""
    return ProgramScore(
        kernels=each[0].kernels,
        tau=float(np.mean([score.tau for score in each])),
        ape=float(np.mean([score.ape for score in each])),
        top_errors=_means([score.top_errors for score in each]),
    )


def _program(held: Sequence[KernelScore]) -> ProgramScore:
    return ProgramScore(
        kernels=len(held),
        tau=float(np.mean([score.tau for score in held])),
        ape=metrics.tile_ape(
            np.array([score.chosen_s for score in held]), np.array([score.best_s for score in held])
        ),
        top_errors=_means([score.top_errors for score in held]),
    )


def _means(rows: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(float(mean) for mean in np.mean(np.array(rows), axis=0))
