"""Trains models of the tile task on a published TpuGraphs collection, taken as it was unpacked."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kernelcast.core.timing import Clock
from kernelcast.data.tpugraphs.stream import CACHE_BYTES, tile_files
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs_schema import TPUGRAPHS_140
from kernelcast.jobs.learning.published_tiles import PublishedTiles, published_examples
from kernelcast.jobs.learning.seeds import SeedResult, chosen, library_versions, train_seeds
from kernelcast.jobs.learning.train import TILE_MODELS
from kernelcast.model.checkpoint import Provenance
from kernelcast.model.config import TrainConfig
from kernelcast.model.train_tiles import train_tiles
from kernelcast.model.trained import Epoch, Trained

_log = logging.getLogger(__name__)
# What the publishers say of how the times were taken.
_TARGET = {
    "kind": "tpu", "chip": "TPU v3, one core", "compiler": "that of TpuGraphs", "clock": Clock.PUBLISHED.value
}  # fmt: skip
_STATISTIC = "published runtime over that of the default tile"


def holds_collection(folder: Path) -> bool:
    """Whether a folder holds the training part of a published tile collection."""
    try:
        return bool(tile_files(folder, "train"))
    except SchemaError:
        return False


def train_published_models(
    folder: Path,
    *,
    models: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    watch: Callable[[str, int, Epoch], None],
    cache_bytes: int = CACHE_BYTES,
) -> list[SeedResult]:
    """A checkpoint ``out/<model>-<seed>`` of each model and seed, bound to schema ``tpugraphs-140``.

    The published parts are the split: ``train`` is streamed, ``valid`` chooses the epoch, ``test`` has no
    times.

    Args:
        folder: as for ``tile_files``.
        models: names in ``TILE_MODELS``.
        seeds: of the training.
        out: folder for checkpoints.
        watch: gets model, seed and each epoch as it ends.
        cache_bytes: of training kernels kept between epochs.

    Raises:
        SchemaError: an unknown model, a part that is missing or damaged, or checkpoints in ``out`` of other
            data or settings.
    """
    configs = chosen(TILE_MODELS, models)
    files = {part: tile_files(folder, part) for part in ("train", "valid")}
    training = PublishedTiles(files["train"], cache_bytes=cache_bytes)
    validation = published_examples(folder, "valid")
    _log.info("%d kernels to train, %d to validate", len(training), len(validation))
    digest = _digest(path for paths in files.values() for path in paths)

    def provenance(model: str) -> Provenance:
        return Provenance(
            name=model,
            data_digest=digest,
            target=_TARGET,
            target_digest=_short(json.dumps(_TARGET, sort_keys=True).encode()),
            statistic=_STATISTIC,
            versions=library_versions(),
            split="as published",
        )

    def fit(
        config: TrainConfig, seed: int, on_best: Callable[[Trained], None], on_epoch: Callable[[Epoch], None]
    ) -> Trained:
        return train_tiles(
            training,
            validation,
            schema=TPUGRAPHS_140,
            config=config,
            seed=seed,
            on_best=on_best,
            on_epoch=on_epoch,
        )

    return train_seeds(
        configs, fit, schema=TPUGRAPHS_140, provenance=provenance, seeds=seeds, out=out, watch=watch
    )


def _digest(files: Iterable[Path]) -> str:
    """Of names and contents, so that a collection that was changed is another one."""
    lines = [f"{path.parent.name}/{path.name} {_short(path.read_bytes())}" for path in files]
    return _short("\n".join(lines).encode())


def _short(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
