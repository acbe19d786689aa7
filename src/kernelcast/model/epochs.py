"""The epochs of a training, the same for both tasks: steps, validation, and the best weights kept."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax

from kernelcast.errors import KernelcastError
from kernelcast.features.scaling import Scaling
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.config import TrainConfig
from kernelcast.model.step import Objective, begun, run_epoch
from kernelcast.model.trained import Epoch, Network, Trained
from kernelcast.model.work_time import WorkTime

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a task brings to its training.

    Attributes:
        scaling: of the inputs.
        centre, spread: of the labels' log seconds.
        objective: loss of one batch; a function of a module.
        batches: gives the batches of a new epoch.
        batch_count: of one epoch.
        validation_error: of a network; lower is better.
        loss_unit: what a loss is multiplied by to be readable.
        work_time: the offset that was taken off the labels, if any.
    """

    scaling: Scaling
    centre: float
    spread: float
    objective: Objective
    batches: Callable[[], Iterable[Any]]
    batch_count: int
    validation_error: Callable[[Network], float]
    loss_unit: float
    work_time: WorkTime | None = None


def run_epochs(
    task: Task,
    *,
    schema: FeatureSchema,
    config: TrainConfig,
    seed: int,
    on_best: Callable[[Trained], None] | None,
    on_epoch: Callable[[Epoch], None] | None,
) -> Trained:
    """The model of the best validation epoch.

    Raises:
        KernelcastError: no epoch gave a finite validation error.
    """
    state, step = begun(
        config, schema, task.scaling, task.objective, seed, steps=config.epochs * task.batch_count
    )
    key = jax.random.fold_in(jax.random.key(seed), 1)
    best: Trained | None = None
    history: list[Epoch] = []
    for number in range(1, config.epochs + 1):
        state, loss = run_epoch(step, state, task.batches(), key)
        error = task.validation_error(state.average)
        better = math.isfinite(error) and (best is None or error < best.history[-1].validation_error)
        epoch = Epoch(number=number, train_loss=task.loss_unit * loss, validation_error=error, best=better)
        history.append(epoch)
        _log.info("epoch %d: loss %.4f, validation error %.4f", number, epoch.train_loss, error)
        if on_epoch is not None:
            on_epoch(epoch)
        if better:
            best = Trained(
                network=state.average,
                scaling=task.scaling,
                centre=task.centre,
                spread=task.spread,
                config=config,
                seed=seed,
                history=tuple(history),
                work_time=task.work_time,
            )
            if on_best is not None:
                on_best(best)
        elif best is not None and number - best.history[-1].number >= config.patience:
            break
    if best is None:
        raise KernelcastError(
            f"training with seed {seed} diverged: no epoch had a finite validation error; lower the learning "
            f"rate ({config.learning_rate:g})"
        )
    return best
