"""Training for the tile task: kernels with timed tiles in, the network that orders tiles best out.

Batches are grouped by kernel (paper, section 4.2): ten kernels with ten tiles each, say. Each graph is
embedded once per batch, up to where the tile comes in. Deterministic per seed.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kernelcast import metrics
from kernelcast.features.scaling import fit_scaling
from kernelcast.features.schema import FeatureSchema
from kernelcast.model.config import TrainConfig
from kernelcast.model.epochs import Task, run_epochs
from kernelcast.model.examples import TileExamples, TileSource, evenly_spread
from kernelcast.model.loss import TileLoss, tile_loss
from kernelcast.model.score import TileScorer
from kernelcast.model.tile_batches import LabelledTiles, TileBatcher
from kernelcast.model.trained import Epoch, Network, Trained

# Scaling wants ranges and spreads, which this many kernels give; a stream need not be read whole for it.
_SCALING_KERNELS = 2000
# A kernel may have thousands of tiles; a τ of this many, evenly spread over them, tells epochs apart.
_JUDGED_TILES = 256


def train_tiles(
    training: TileSource,
    validation: TileExamples,
    *,
    schema: FeatureSchema,
    config: TrainConfig,
    seed: int,
    on_best: Callable[[Trained], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Trained:
    """The model of the best validation epoch.

    Args:
        training: what is fitted.
        validation: chooses the epoch, by mean Kendall's τ within its kernels, over up to 256 tiles of each.
        schema: of the graphs and tiles.
        config: of network and training, with ``tiles``.
        seed: the same seed gives the same weights on the same machine.
        on_best: called at each better epoch, e.g. to save it; an interrupt loses nothing that was saved.
        on_epoch: called after each epoch, for progress.

    Raises:
        ValueError: the config is one of the fusion task, or there is nothing to train on or to validate.
        KernelcastError: no epoch gave a finite validation error.
    """
    drawn = config.tiles
    if drawn is None:
        raise ValueError("a config of the fusion task goes to train; the tile task needs config.tiles")
    groups = training.group_count(tiles=drawn.tiles, groups=drawn.groups)
    shown = [kernel.taken(evenly_spread(len(kernel), _JUDGED_TILES)) for kernel in validation.kernels]
    judged = [kernel for kernel in shown if np.unique(kernel.seconds).size > 1]
    if not groups or not judged:
        raise ValueError(
            f"tiles are learned from kernels with two tiles or more and judged on kernels with two times: "
            f"{groups} groups to train, {len(judged)} kernels to validate"
        )
    sample = training.sample(_SCALING_KERNELS)
    logs = np.concatenate([np.log(kernel.seconds) for kernel in sample])
    scaling = fit_scaling(
        [kernel.graph for kernel in sample],
        schema,
        frozenset(config.blocks),
        tiles=np.concatenate([kernel.tiles for kernel in sample]),
    )
    centre, spread = float(np.mean(logs)), max(float(np.std(logs)), 1e-3)
    batcher = TileBatcher(scaling, schema, drawn, centre=centre, spread=spread)
    random = np.random.default_rng(seed)
    scorer = TileScorer(scaling, schema)

    def validation_error(network: Network) -> float:
        taus = [
            metrics.kendall_tau(scorer.scores(network, kernel.graph, kernel.tiles), kernel.seconds)
            for kernel in judged
        ]
        return 1.0 - float(np.mean(taus))

    task = Task(
        scaling=scaling,
        centre=centre,
        spread=spread,
        objective=_OBJECTIVES[drawn.loss],
        batches=lambda: batcher.batches(
            training.epoch(random, tiles=drawn.tiles, groups=drawn.groups), random
        ),
        batch_count=-(-groups // drawn.kernels),
        validation_error=validation_error,
        loss_unit=1.0,
    )
    return run_epochs(task, schema=schema, config=config, seed=seed, on_best=on_best, on_epoch=on_epoch)


def _objective(kind: TileLoss) -> Callable[[Network, LabelledTiles, PRNGKeyArray], Float[Array, ""]]:
    def objective(network: Network, made: LabelledTiles, key: PRNGKeyArray) -> Float[Array, ""]:
        scores = network(made.graphs, made.tiles, key=key)
        return tile_loss(kind, scores, jnp.asarray(made.target), jnp.asarray(made.present))

    return objective


# One function object per loss, so that what is compiled for it is found again.
_OBJECTIVES = {kind: _objective(kind) for kind in TileLoss}
