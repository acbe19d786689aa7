"""Boosted trees on summed features: the baseline that a graph network has to justify itself against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from kernelcast.core.estimate import Estimates, Status, estimates_of
from kernelcast.core.kernel import Kernel
from kernelcast.errors import MissingExtraError
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.features.schema import KERNELCAST_1, Transform
from kernelcast.model.examples import Examples
from kernelcast.model.work_time import WorkTime, fit_work_time

_OPCODES = len(KERNELCAST_1.opcodes)
_EVALUATIONS = KERNELCAST_1.node_index["evaluations_hoisted"]
_FLAGS = np.array([c.transform is Transform.FLAG for c in KERNELCAST_1.node], dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreesConfig:
    """Settings of LightGBM.

    Attributes:
        learning_rate: shrinkage per tree.
        leaves: of one tree, at most.
        least_in_leaf: kernels in a leaf, at least.
        feature_fraction: share of columns that one tree sees.
        rounds: trees, at most.
        patience: rounds without a better validation error before training stops.
        offset: whether the trees learn what a fitted time of bytes and operations leaves over, and read that
            time besides; of the fusion task.
    """

    learning_rate: float = 0.05
    leaves: int = 48
    least_in_leaf: int = 8
    feature_fraction: float = 0.4
    rounds: int = 1500
    patience: int = 80
    offset: bool = False


class Trees:
    """A fitted booster; implements ``Estimator``."""

    def __init__(self, booster: Any, opcodes: np.ndarray, work_time: WorkTime | None) -> None:
        self._booster = booster
        self._work_time = work_time
        self._opcodes = opcodes
        self._featuriser = Featuriser()

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        """Estimated seconds of one warm run of each kernel."""
        return self.estimate_graphs(self._featuriser.graphs(kernels))

    def estimate_graphs(self, graphs: Sequence[KernelGraph]) -> Estimates:
        """The same for kernels that are graphs already; extrapolated is an opcode unseen in training."""
        if not graphs:
            return estimates_of(np.zeros(0))
        inputs, offset = _inputs(graphs, self._work_time)
        seconds = np.exp(np.asarray(self._booster.predict(inputs, num_threads=1)) + offset)
        known = np.array([bool(self._opcodes[g.opcodes].all()) for g in graphs])
        return estimates_of(seconds, np.where(known, Status.KNOWN, Status.EXTRAPOLATED).astype(np.int8))


def fit_trees(training: Examples, validation: Examples, *, config: TreesConfig, seed: int) -> Trees:
    """Trees on log seconds, stopped by the validation kernels.

    Raises:
        MissingExtraError: LightGBM is not installed.
    """
    work_time = fit_work_time(training.graphs, training.seconds) if config.offset else None
    booster = boosted(_rows(training, work_time), _rows(validation, work_time), config=config, seed=seed)
    opcodes = np.zeros(_OPCODES, dtype=np.bool_)
    for graph in training.graphs:
        opcodes[graph.opcodes] = True
    return Trees(booster, opcodes, work_time)


def _rows(examples: Examples, work_time: WorkTime | None) -> tuple[np.ndarray, np.ndarray]:
    inputs, offset = _inputs(examples.graphs, work_time)
    return inputs, np.log(examples.seconds) - offset


def _inputs(graphs: Sequence[KernelGraph], work_time: WorkTime | None) -> tuple[np.ndarray, np.ndarray]:
    """(kernel, feature) inputs, and (kernel,) what is added to the output."""
    summed = summed_features(graphs)
    if work_time is None:
        return summed, np.zeros(len(graphs))
    offset = work_time.log_seconds(graphs)
    return np.concatenate([summed, offset[:, None].astype(np.float32)], axis=1), offset


def boosted(
    training: tuple[np.ndarray, ...], validation: tuple[np.ndarray, ...], *, config: TreesConfig, seed: int
) -> Any:
    """A booster of squared error, stopped by the validation rows.

    Args:
        training, validation: (row, feature) inputs, (row,) targets and, where rows do not count the same,
            (row,) weights.

    Raises:
        MissingExtraError: LightGBM is not installed.
    """
    lightgbm = _lightgbm()
    train = lightgbm.Dataset(training[0], training[1], weight=_weights(training))
    held = lightgbm.Dataset(validation[0], validation[1], weight=_weights(validation), reference=train)
    settings = {
        "objective": "l2",
        "learning_rate": config.learning_rate,
        "num_leaves": config.leaves,
        "min_data_in_leaf": config.least_in_leaf,
        "feature_fraction": config.feature_fraction,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "lambda_l2": 1.0,
        "seed": seed,
        "deterministic": True,
        "num_threads": 1,
        "verbose": -1,
    }
    return lightgbm.train(
        settings,
        train,
        config.rounds,
        valid_sets=[held],
        callbacks=[lightgbm.early_stopping(config.patience, verbose=False)],
    )


def _weights(rows: tuple[np.ndarray, ...]) -> np.ndarray | None:
    return rows[2] if len(rows) > 2 else None


def summed_features(graphs: Sequence[KernelGraph]) -> np.ndarray:
    """(kernel, feature) float32: the kernel vector, per opcode the nodes and how often they are evaluated,
    and of every node column the largest value (of flags: how often set).
    """
    rows: list[np.ndarray] = []
    for graph in graphs:
        counts = np.bincount(graph.opcodes, minlength=_OPCODES)
        evaluations = np.bincount(graph.opcodes, weights=graph.rows[:, _EVALUATIONS], minlength=_OPCODES)
        summary = np.where(_FLAGS, graph.rows.sum(axis=0), graph.rows.max(axis=0))
        rows.append(np.concatenate([graph.kernel, counts, evaluations, summary]))
    return np.stack(rows).astype(np.float32)


def _lightgbm() -> ModuleType:
    try:
        import lightgbm
    except ImportError:
        raise MissingExtraError("the boosted-trees baseline", "lightgbm", "baselines") from None
    return lightgbm
