"""A trained model, whatever its network and its task: everything that predicting needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import PRNGKeyArray

from kernelcast.features.graph import KernelGraph
from kernelcast.features.scaling import Scaling
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.config import TrainConfig
from kernelcast.model.network import KernelNetwork
from kernelcast.model.sequence import SequenceConfig, SequenceNetwork
from kernelcast.model.work_time import WorkTime

Network = KernelNetwork | SequenceNetwork


class Promise(StrEnum):
    """What a model gives; see ``core.estimate``."""

    ESTIMATOR = "estimator"  # absolute seconds of kernels
    RANKER = "ranker"  # an order of the tiles of one kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One line of a training's history.

    Attributes:
        number: from 1.
        train_loss: mean over the epoch's batches; of the fusion task, squared log error.
        validation_error: on the validation kernels: mean |log(predicted / measured)| of the fusion task,
            1 − mean Kendall's τ within kernels of the tile task.
        best: whether it is the lowest so far.
    """

    number: int
    train_loss: float
    validation_error: float
    best: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A trained model.

    Attributes:
        network: weights of the best epoch.
        scaling: of its inputs.
        centre, spread: mean and deviation of the training labels' log seconds, or of what the work time
            leaves over of them; the network's output is in these units, unless it was trained with a rank
            loss.
        config: how it was trained.
        seed: of weights, order and dropout.
        history: one entry per epoch so far.
        work_time: the offset of a model that has one.
    """

    network: Network
    scaling: Scaling
    centre: float
    spread: float
    config: TrainConfig
    seed: int
    history: tuple[Epoch, ...]
    work_time: WorkTime | None = None

    @property
    def promise(self) -> Promise:
        """What it can be asked for."""
        return Promise.ESTIMATOR if self.config.tiles is None else Promise.RANKER

    def log_seconds(self, output: np.ndarray, graphs: Sequence[KernelGraph]) -> np.ndarray:
        """(kernel,) log seconds of (kernel,) outputs of the network, of a model that estimates."""
        made = self.spread * output + self.centre
        return made if self.work_time is None else made + self.work_time.log_seconds(graphs)


def new_network(config: TrainConfig, schema: FeatureSchema, scaling: Scaling, key: PRNGKeyArray) -> Network:
    """A network with random weights for the inputs that a scaling gives."""
    inputs = {
        "opcode_count": len(schema.opcodes),
        "node_features": len(scaling.node.columns),
        "kernel_features": len(scaling.kernel.columns),
    }
    if isinstance(config.network, SequenceConfig):
        return SequenceNetwork(config.network, **inputs, key=key)
    return KernelNetwork(config.network, **inputs, key=key)
