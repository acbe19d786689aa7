"""Trains each of some models from each of some seeds: a checkpoint folder for both, finished ones kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from kernelcast.errors import SchemaError
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.checkpoint import DESCRIPTION, Provenance, load_checkpoint, save_checkpoint
from kernelcast.model.config import TrainConfig
from kernelcast.model.trained import Epoch, Trained

_LIBRARIES = ("kernelcast", "jax", "jaxlib", "numpy", "equinox", "optax")
# Settings, seed, what is called at each better epoch and after each one.
Fit = Callable[[TrainConfig, int, Callable[[Trained], None], Callable[[Epoch], None]], Trained]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """One trained model.

    Attributes:
        model: its name.
        seed: of the training.
        folder: its checkpoint.
        epochs: that it was trained for, up to its best.
        validation_error: on the validation kernels: mean |log error|, or 1 − τ for a ranker.
        was_there: whether it was finished before and only read.
    """

    model: str
    seed: int
    folder: Path
    epochs: int
    validation_error: float
    was_there: bool


def chosen(known: Mapping[str, TrainConfig], names: Sequence[str]) -> dict[str, TrainConfig]:
    """The settings of the models of these names.

    Raises:
        SchemaError: an unknown name.
    """
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SchemaError(f"no model is called {', '.join(unknown)}; there are {', '.join(known)}")
    return {name: known[name] for name in names}


def library_versions() -> dict[str, str]:
    """The versions of all that decides what training gives."""
    return {name: version(name) for name in _LIBRARIES}


def train_seeds(
    configs: Mapping[str, TrainConfig],
    fit: Fit,
    *,
    schema: FeatureSchema,
    provenance: Callable[[str], Provenance],
    seeds: Sequence[int],
    out: Path,
    watch: Callable[[str, int, Epoch], None],
) -> list[SeedResult]:
    """A checkpoint ``out/<model>-<seed>`` of each model and seed.

    Args:
        configs: settings by name of the model.
        fit: trains one.
        schema: of what it is trained on.
        provenance: by name of the model.
        watch: gets model, seed and each epoch as it ends.

    Raises:
        SchemaError: checkpoints in ``out`` of other data, split or settings.
    """
    results: list[SeedResult] = []
    for model, config in configs.items():
        made = provenance(model)
        for seed in seeds:
            folder = out / f"{model}-{seed}"
            found = _finished(folder, made, config, schema)
            trained = found or _train_seed(
                folder, made, config, schema, fit, seed, partial(watch, model, seed)
            )
            results.append(_result(model, seed, folder, trained, was_there=found is not None))
    return results


def _train_seed(
    folder: Path,
    provenance: Provenance,
    config: TrainConfig,
    schema: FeatureSchema,
    fit: Fit,
    seed: int,
    on_epoch: Callable[[Epoch], None],
) -> Trained:
    def save(best: Trained, *, is_finished: bool = False) -> None:
        save_checkpoint(folder, best, provenance, schema, is_finished=is_finished)

    trained = fit(config, seed, save, on_epoch)
    save(trained, is_finished=True)
    return trained


def _finished(
    folder: Path, provenance: Provenance, config: TrainConfig, schema: FeatureSchema
) -> Trained | None:
    """The finished model of an earlier run with the same data, split and settings."""
    if not (folder / DESCRIPTION).exists():
        return None
    held = load_checkpoint(folder, schema)
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
