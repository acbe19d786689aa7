"""Trains models on a dataset: one checkpoint folder per seed, finished ones kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from kernelcast.data.store import Dataset
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.jobs.learning.data import LearningData, learning_data
from kernelcast.jobs.learning.seeds import Fit, SeedResult, chosen, library_versions, train_seeds
from kernelcast.jobs.learning.tile_data import TileLearningData, tile_learning_data
from kernelcast.model.checkpoint import Provenance
from kernelcast.model.config import (
    GNN,
    GNN_OFFSET,
    GNN_RANK,
    GNN_SQUARED,
    GNN_STATIC,
    LSTM,
    LSTM_RANK,
    TrainConfig,
)
from kernelcast.model.train import train
from kernelcast.model.train_tiles import train_tiles
from kernelcast.model.trained import Epoch, Trained
from kernelcast.split import read_split

_log = logging.getLogger(__name__)
MODELS: Mapping[str, TrainConfig] = {
    "gnn": GNN,
    "gnn_static": GNN_STATIC,
    "gnn_offset": GNN_OFFSET,
    "lstm": LSTM,
}
TILE_MODELS: Mapping[str, TrainConfig] = {"rank": GNN_RANK, "mse": GNN_SQUARED, "lstm": LSTM_RANK}


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
    configs = chosen(MODELS, models)
    data = learning_data(Dataset.open(dataset_folder), read_split(split_file))
    return _train_all(data, configs, partial(_fit_fusion, data), seeds, out, watch)


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
    configs = chosen(TILE_MODELS, models)
    data = tile_learning_data(Dataset.open(dataset_folder), read_split(split_file))
    return _train_all(data, configs, partial(_fit_tiles, data), seeds, out, watch)


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


def _train_all(
    data: LearningData | TileLearningData,
    configs: Mapping[str, TrainConfig],
    fit: Fit,
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
    return train_seeds(
        configs,
        fit,
        schema=KERNELCAST_1,
        provenance=partial(provenance_of, data),
        seeds=seeds,
        out=out,
        watch=watch,
    )


def provenance_of(data: LearningData | TileLearningData, model: str) -> Provenance:
    """Where a model trained on this data comes from."""
    return Provenance(
        name=model,
        data_digest=data.digest,
        target=asdict(data.target),
        target_digest=data.target.digest,
        statistic=data.target.label.value,
        versions=library_versions(),
        split=data.split.digest,
    )
