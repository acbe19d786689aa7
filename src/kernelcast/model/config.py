"""How models are trained: settings of both tasks, and the named models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kernelcast.features.schema import Block
from kernelcast.model.loss import TileLoss
from kernelcast.model.network import NetworkConfig
from kernelcast.model.sequence import SequenceConfig

PAPER_BLOCKS = (Block.PAPER, Block.MASK, Block.TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTask:
    """What training for the tile task has besides: its loss and its batches, grouped by kernel.

    Attributes:
        loss: over the tiles of each kernel.
        kernels: of one batch.
        tiles: of each kernel in a batch; a kernel with fewer gives all it has.
        groups: draws of so many tiles from one kernel in an epoch, at most, none drawn twice; kernels with
            few tiles give fewer.
    """

    loss: TileLoss = TileLoss.HINGE
    kernels: int = 10
    tiles: int = 10
    groups: int = 4

    def __post_init__(self) -> None:
        if self.kernels < 1 or self.tiles < 2 or self.groups < 1:
            raise ValueError(
                f"a batch has at least one kernel with two tiles, and an epoch one group; got {self}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How a model is trained; the defaults are the paper-faithful model of the fusion task, ``gnn``.

    Attributes:
        network: its shape.
        blocks: of node columns that it reads.
        epochs: at most; a pass over all training kernels each.
        patience: epochs without a better validation error before training stops.
        learning_rate: its peak; warm-up over the first twentieth of the steps, then a cosine to zero.
        weight_decay: of AdamW.
        clip: largest global norm of a gradient.
        node_budget: nodes of one batch, padding included; of the fusion task.
        average: decay per step of the running average of weights that is validated and kept; 0: none.
        tiles: of the tile task; None for the fusion task, whose loss is squared error of log time.
        offset: whether the network learns what a fitted time of bytes and operations leaves over (not in the
            paper); of the fusion task.
    """

    network: NetworkConfig | SequenceConfig = field(default_factory=NetworkConfig)
    blocks: tuple[Block, ...] = PAPER_BLOCKS
    epochs: int = 30
    patience: int = 15
    learning_rate: float = 5e-3
    weight_decay: float = 1e-2
    clip: float = 1.0
    node_budget: int = 1024
    average: float = 0.99
    tiles: TileTask | None = None
    offset: bool = False

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.patience < 1:
            raise ValueError(f"epochs and patience must be >= 1, got {self.epochs} and {self.patience}")
        if self.offset and self.tiles is not None:
            raise ValueError("an offset is of absolute times; the tile task has none")


GNN = TrainConfig()
GNN_STATIC = TrainConfig(
    network=NetworkConfig(hidden=(64, 64), static=True, residual=True),
    blocks=(*PAPER_BLOCKS, Block.STATIC),
)
GNN_OFFSET = replace(GNN_STATIC, offset=True)
LSTM = TrainConfig(network=SequenceConfig())

GNN_RANK = TrainConfig(tiles=TileTask(loss=TileLoss.HINGE))
GNN_SQUARED = TrainConfig(tiles=TileTask(loss=TileLoss.SQUARED_BY_KERNEL))
LSTM_RANK = TrainConfig(network=SequenceConfig(), tiles=TileTask(loss=TileLoss.HINGE))
