"""A checkpoint: a folder with weights (safetensors) and a readable description (JSON). No pickle.

``model.json`` names the weights file by its digest, and is renamed into place last: a reader sees the old
pair or the new pair, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from kernelcast.data.durable import store_error, write_durably
from kernelcast.errors import SchemaError
from kernelcast.features.scaling import ColumnScaling, Scaling
from kernelcast.features.schema import Block, FeatureSchema, logarithmic
from kernelcast.model.config import TileTask, TrainConfig
from kernelcast.model.loss import TileLoss
from kernelcast.model.network import Direction, NetworkConfig, Normalisation, Reduction
from kernelcast.model.sequence import SequenceConfig
from kernelcast.model.trained import Epoch, Network, Promise, Trained, new_network
from kernelcast.model.work_time import WorkTime

FORMAT = "kernelcast-checkpoint-2"
# From before there was a tile task: all of these are estimators made of graph networks.
_FIRST_FORMAT = "kernelcast-checkpoint-1"
DESCRIPTION = "model.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a model comes from; kept beside the weights.

    Attributes:
        name: of the model, e.g. ``gnn``.
        data_digest: of the dataset.
        target: identity of the target that made the labels, field by field.
        target_digest: the same in 16 hexadecimal digits.
        statistic: how a label is made of samples.
        versions: of the libraries, by name.
        split: digest of the split file.
        metrics: figures measured on held-out kernels.
    """

    name: str
    data_digest: str
    target: Mapping[str, Any]
    target_digest: str
    statistic: str
    versions: Mapping[str, str]
    split: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a checkpoint folder holds.

    Attributes:
        trained: the model.
        provenance: where it comes from.
        is_finished: False where training was interrupted after this, its best epoch so far.
    """

    trained: Trained
    provenance: Provenance
    is_finished: bool


def save_checkpoint(
    folder: Path, trained: Trained, provenance: Provenance, schema: FeatureSchema, *, is_finished: bool = True
) -> None:
    """Writes a checkpoint folder; an older checkpoint in it stays whole until the new one is.

    Raises:
        StoreError: the folder cannot be written; what was there before is kept.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store_error(folder, error) from error
    weights = save_tensors(_tensors(trained))
    digest = hashlib.blake2b(weights, digest_size=16).hexdigest()
    weights_name = f"weights-{digest}.safetensors"
    description = {
        "format": FORMAT,
        "schema": schema.name,
        "schema_digest": schema.digest,
        "weights": weights_name,
        "is_finished": is_finished,
        "promise": trained.promise,
        "provenance": asdict(provenance),
        "log_seconds": {"centre": trained.centre, "spread": trained.spread},
        "work_time": None if trained.work_time is None else asdict(trained.work_time),
        "seed": trained.seed,
        "config": _config_body(trained.config),
        "opcodes_seen": [schema.opcodes[n] for n in np.flatnonzero(trained.scaling.opcodes)],
        "columns_read": {
            "node": [schema.node[n].name for n in trained.scaling.node.columns],
            "kernel": [schema.kernel[n].name for n in trained.scaling.kernel.columns],
        },
        "history": [asdict(epoch) for epoch in trained.history],
    }
    write_durably(folder / weights_name, weights)
    write_durably(folder / DESCRIPTION, (json.dumps(description, indent=1) + "\n").encode())
    for old in folder.glob("weights-*.safetensors"):
        if old.name != weights_name:
            old.unlink()


def load_checkpoint(folder: Path, schema: FeatureSchema) -> Checkpoint:
    """What a checkpoint folder holds.

    Raises:
        SchemaError: not a checkpoint, damaged, or made for another schema; the text names both.
    """
    description = _read_description(folder)
    held = description.get("schema_digest")
    if held != schema.digest:
        raise SchemaError(
            f"{folder} was trained on schema {description.get('schema')} with digest {held}, this version "
            f"has {schema.name} with digest {schema.digest}: train again, or install the version that made it"
        )
    try:
        return _described(folder, description, schema)
    except (KeyError, TypeError, ValueError) as error:
        raise SchemaError(
            f"{folder / DESCRIPTION} lacks or holds what this version does not ({type(error).__name__}: "
            f"{error}): train again, or install the version that made it"
        ) from error


def _described(folder: Path, description: Mapping[str, Any], schema: FeatureSchema) -> Checkpoint:
    tensors = _read_weights(folder / description["weights"])
    config = _config(description["config"])
    scaling = _scaling(tensors, schema)
    blank = eqx.filter_eval_shape(new_network, config, schema, scaling, jax.random.key(0))
    trained = Trained(
        network=_filled(blank, tensors, folder),
        scaling=scaling,
        centre=float(description["log_seconds"]["centre"]),
        spread=float(description["log_seconds"]["spread"]),
        config=config,
        seed=int(description["seed"]),
        history=tuple(Epoch(**epoch) for epoch in description["history"]),
        work_time=_work_time(description["work_time"]),
    )
    stated = Promise(description["promise"])
    if stated is not trained.promise:
        raise ValueError(f"its promise is {stated!r}, its settings make it {trained.promise!r}")
    return Checkpoint(
        trained=trained,
        provenance=Provenance(**description["provenance"]),
        is_finished=bool(description["is_finished"]),
    )


def _named(network: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_flatten_with_path(eqx.filter(network, eqx.is_array_like))[0]
    return [("network" + jax.tree_util.keystr(path), leaf) for path, leaf in leaves]


def _tensors(trained: Trained) -> dict[str, np.ndarray]:
    tensors = {name: np.asarray(leaf) for name, leaf in _named(trained.network)}
    for level, held in (("node", trained.scaling.node), ("kernel", trained.scaling.kernel)):
        tensors |= {
            f"scaling.{level}.{name}": np.ascontiguousarray(getattr(held, name))
            for name in ("columns", "mean", "deviation", "read", "low", "high")
        }
    tensors["scaling.opcodes"] = trained.scaling.opcodes
    return tensors


def _scaling(tensors: Mapping[str, np.ndarray], schema: FeatureSchema) -> Scaling:
    node, kernel = (
        ColumnScaling(
            **{
                n: tensors[f"scaling.{level}.{n}"]
                for n in ("columns", "mean", "deviation", "read", "low", "high")
            },
            logarithmic=logarithmic(columns),
        )
        for level, columns in (("node", schema.node), ("kernel", schema.kernel))
    )
    return Scaling(node=node, kernel=kernel, opcodes=tensors["scaling.opcodes"])


def _filled(blank: Network, tensors: Mapping[str, np.ndarray], folder: Path) -> Network:
    leaves, structure = jax.tree_util.tree_flatten_with_path(blank)
    values: list[Any] = []
    for path, leaf in leaves:
        name = "network" + jax.tree_util.keystr(path)
        held = tensors.get(name)
        if held is None or held.shape != leaf.shape:
            found = "nothing" if held is None else f"shape {held.shape}"
            raise SchemaError(f"{folder}: weights hold {found} for {name}, the network needs {leaf.shape}")
        values.append(jnp.asarray(held))
    return jax.tree_util.tree_unflatten(structure, values)


# The kinds of network by what a description calls them.
_KINDS: dict[str, type[NetworkConfig | SequenceConfig]] = {"graph": NetworkConfig, "sequence": SequenceConfig}


def _config_body(config: TrainConfig) -> dict[str, Any]:
    kind = next(name for name, made in _KINDS.items() if isinstance(config.network, made))
    return {"kind": kind, **asdict(config)}


def _config(held: Mapping[str, Any]) -> TrainConfig:
    rest = {name: value for name, value in held.items() if name not in ("kind", "network", "blocks", "tiles")}
    tiles = held["tiles"]
    return TrainConfig(
        network=_network_config(held["kind"], held["network"]),
        blocks=tuple(Block(b) for b in held["blocks"]),
        tiles=None if tiles is None else _tile_task(tiles),
        **rest,
    )


def _work_time(held: Mapping[str, Any] | None) -> WorkTime | None:
    if held is None:
        return None
    return WorkTime(seconds_per=tuple(held["seconds_per"]), least_s=float(held["least_s"]))


def _tile_task(held: Mapping[str, Any]) -> TileTask:
    counts = {name: value for name, value in held.items() if name != "loss"}
    return TileTask(loss=TileLoss(held["loss"]), **counts)


def _network_config(kind: str, held: Mapping[str, Any]) -> NetworkConfig | SequenceConfig:
    if kind not in _KINDS:
        raise ValueError(f"network of kind {kind!r}, this version has {', '.join(_KINDS)}")
    if _KINDS[kind] is SequenceConfig:
        return SequenceConfig(**held)
    network = dict(held)
    network["direction"] = Direction(network["direction"])
    network["neighbours"] = Reduction(network["neighbours"])
    network["normalisation"] = Normalisation(network["normalisation"])
    network["pooling"] = tuple(Reduction(r) for r in network["pooling"])
    network["hidden"] = tuple(network["hidden"])
    return NetworkConfig(**network)


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SchemaError(f"{folder} is not a checkpoint: it has no {DESCRIPTION}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SchemaError(f"{path} cannot be read as a checkpoint's description: {error}") from None
    held = description.get("format") if isinstance(description, dict) else None
    if held == _FIRST_FORMAT:
        return _as_second(description)
    if held != FORMAT:
        raise SchemaError(f"{path} has format {held!r}, this version reads {FORMAT!r} and {_FIRST_FORMAT!r}")
    return description


def _as_second(first: dict[str, Any]) -> dict[str, Any]:
    config = first.get("config")
    added = {"promise": Promise.ESTIMATOR, "work_time": None}
    if isinstance(config, dict):
        return first | added | {"config": {"kind": "graph", "tiles": None, **config}}
    return first | added


def _read_weights(path: Path) -> dict[str, np.ndarray]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SchemaError(f"the checkpoint's weights cannot be read: {error}") from None
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    if path.name != f"weights-{digest}.safetensors":
        raise SchemaError(f"{path} is damaged: its content has digest {digest}, its name says another")
    try:
        return load_tensors(content)
    except SafetensorError as error:
        raise SchemaError(f"{path} is not a safetensors file: {error}") from None
