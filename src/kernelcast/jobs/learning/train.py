"""Trains models on a dataset: one checkpoint folder per seed, finished ones kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from kernelcast.data.store import Dataset
from kernelcast.errors import SchemaError
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.jobs.learning.data import LearningData, learning_data
from kernelcast.jobs.learning.tile_data import TileLearningData, tile_learning_data
from kernelcast.model.checkpoint import DESCRIPTION, Provenance, load_checkpoint, save_checkpoint
from kernelcast.model.config import GNN, GNN_RANK, GNN_SQUARED, GNN_STATIC, LSTM, LSTM_RANK, TrainConfig
from kernelcast.model.train import train
from kernelcast.model.train_tiles import train_tiles
from kernelcast.model.trained import Epoch, Trained
from kernelcast.split import read_split

_log = logging.getLogger(__name__)
MODELS: Mapping[str, TrainConfig] = {"gnn": GNN, "gnn_static": GNN_STATIC, "lstm": LSTM}
TILE_MODELS: Mapping[str, TrainConfig] = {"rank": GNN_RANK, "mse": GNN_SQUARED, "lstm": LSTM_RANK}
_LIBRARIES = ("kernelcast", "jax", "jaxlib", "numpy", "equinox", "optax")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """One trained model.

    Attributes:
        model: name in ``MODELS``.
        seed: of the training.
        folder: its checkpoint.
        epochs: that it was trained for, up to its best.
        validation_error: mean |log error| on the validation kernels.
        was_there: whether it was finished before and only read.
    """

    model: str
    seed: int
    folder: Path
    epochs: int
    validation_error: float
    was_there: bool


def train_models(
    dataset_folder: Path,
    split_file: Path,
    *,
    models: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    watch: Callable[[str, int, Epoch], None],
) -> list[SeedResult]:
    """A checkpoint ``out/<model>-<seed>`` of each model and seed.

    Run again after an interruption it goes on with the seeds that are not finished; the best weights of an
    interrupted seed are on the disk but are trained anew.

    Args:
        models: names in ``MODELS``.
        watch: gets model, seed and each epoch as it ends.

    Raises:
        SchemaError: an unknown model, or checkpoints in ``out`` of other data, split or settings.
    """
    configs = _chosen(MODELS, models)
    data = learning_data(Dataset.open(dataset_folder), read_split(split_file))
    return _train_all(data, configs, partial(_fit_fusion, data), seeds=seeds, out=out, watch=watch)


def train_tile_models(
    dataset_folder: Path,
    split_file: Path,
    *,
    models: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    watch: Callable[[str, int, Epoch], None],
) -> list[SeedResult]:
    """The same for the tile task and a dataset of timed tiles.

    Args:
        models: names in ``TILE_MODELS``.
        watch: gets model, seed and each epoch as it ends.

    Raises:
        SchemaError: an unknown model, or checkpoints in ``out`` of other data, split or settings.
    """
    configs = _chosen(TILE_MODELS, models)
    data = tile_learning_data(Dataset.open(dataset_folder), read_split(split_file))
    return _train_all(data, configs, partial(_fit_tiles, data), seeds=seeds, out=out, watch=watch)


_Fit = Callable[[TrainConfig, int, Callable[[Trained], None], Callable[[Epoch], None]], Trained]


def _fit_fusion(
    data: LearningData,
    config: TrainConfig,
    seed: int,
    on_best: Callable[[Trained], None],
    on_epoch: Callable[[Epoch], None],
) -> Trained:
    return train(
        data.train.examples,
        data.validation.examples,
        schema=KERNELCAST_1,
        config=config,
        seed=seed,
        on_best=on_best,
        on_epoch=on_epoch,
    )


def _fit_tiles(
    data: TileLearningData,
    config: TrainConfig,
    seed: int,
    on_best: Callable[[Trained], None],
    on_epoch: Callable[[Epoch], None],
) -> Trained:
    return train_tiles(
        data.train.examples,
        data.validation.examples,
        schema=KERNELCAST_1,
        config=config,
        seed=seed,
        on_best=on_best,
        on_epoch=on_epoch,
    )


def _chosen(known: Mapping[str, TrainConfig], names: Sequence[str]) -> dict[str, TrainConfig]:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SchemaError(f"no model is called {', '.join(unknown)}; there are {', '.join(known)}")
    return {name: known[name] for name in names}


def _train_all(
    data: LearningData | TileLearningData,
    configs: Mapping[str, TrainConfig],
    fit: _Fit,
    *,
    seeds: Sequence[int],
    out: Path,
    watch: Callable[[str, int, Epoch], None],
) -> list[SeedResult]:
    _log.info(
        "%d kernels to train, %d to validate, %d to test",
        len(data.train),
        len(data.validation),
        len(data.test),
    )
    results: list[SeedResult] = []
    for model, config in configs.items():
        provenance = provenance_of(data, model)
        for seed in seeds:
            folder = out / f"{model}-{seed}"
            found = _finished(folder, provenance, config)
            trained = found or _train_seed(folder, provenance, config, fit, seed, partial(watch, model, seed))
            results.append(_result(model, seed, folder, trained, was_there=found is not None))
    return results


def _train_seed(
    folder: Path,
    provenance: Provenance,
    config: TrainConfig,
    fit: _Fit,
    seed: int,
    on_epoch: Callable[[Epoch], None],
) -> Trained:
    def save(best: Trained, *, is_finished: bool = False) -> None:
        save_checkpoint(folder, best, provenance, KERNELCAST_1, is_finished=is_finished)

    trained = fit(config, seed, save, on_epoch)
    save(trained, is_finished=True)
    return trained


def provenance_of(data: LearningData | TileLearningData, model: str) -> Provenance:
    """Where a model trained on this data comes from."""
    return Provenance(
        name=model,
        data_digest=data.digest,
        target=asdict(data.target),
        target_digest=data.target.digest,
        statistic=data.target.label.value,
        versions={name: version(name) for name in _LIBRARIES},
        split=data.split.digest,
    )


def _finished(folder: Path, provenance: Provenance, config: TrainConfig) -> Trained | None:
    """The finished model of an earlier run with the same data, split and settings."""
    if not (folder / DESCRIPTION).exists():
        return None
    held = load_checkpoint(folder, KERNELCAST_1)
    if not held.is_finished:
        return None
    for what, old, new in (
        ("dataset", held.provenance.data_digest, provenance.data_digest),
        ("split", held.provenance.split, provenance.split),
        ("settings", held.trained.config, config),
    ):
        if old != new:
            raise SchemaError(
                f"{folder} holds a model of another {what} ({old}, not {new}): choose another output folder"
            )
    return held.trained


def _result(model: str, seed: int, folder: Path, trained: Trained, *, was_there: bool) -> SeedResult:
    best = trained.history[-1]
    return SeedResult(
        model=model,
        seed=seed,
        folder=folder,
        epochs=best.number,
        validation_error=best.validation_error,
        was_there=was_there,
    )
