"""A trained model as an estimator: kernels in, estimated seconds out, with no device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kernelcast.core.estimate import Estimates, Status, estimates_of
from kernelcast.core.kernel import Kernel
from kernelcast.errors import SchemaError
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.model.batch import GraphBatch, batches, scaled_graphs
from kernelcast.model.checkpoint import Provenance, load_checkpoint
from kernelcast.model.trained import Network, Promise, Trained

# Nodes per batch: few kernels go through a small compiled shape, many through a large one.
_SMALL_BUDGET = 256
_LARGE_BUDGET = 2048


class Predictor:
    """A trained network with its scaling; implements ``Estimator``.

    Attributes:
        trained: network and scaling.
        provenance: where the model comes from.

    >>> predictor = Predictor.load(Path("checkpoints/gnn-0"))  # doctest: +SKIP
    >>> predictor.estimate([call.kernel for call in decompose(program).calls]).seconds  # doctest: +SKIP
    array([3.1e-06, 4.7e-05])
    """

    def __init__(self, trained: Trained, provenance: Provenance) -> None:
        self.trained = trained
        self.provenance = provenance
        self._featuriser = Featuriser()

    @staticmethod
    def load(folder: Path) -> Predictor:
        """The predictor of a checkpoint folder.

        Raises:
            SchemaError: not a checkpoint, damaged, of another schema, or one that orders tiles.
        """
        checkpoint = load_checkpoint(folder, KERNELCAST_1)
        if checkpoint.trained.promise is not Promise.ESTIMATOR:
            raise SchemaError(
                f"{folder} holds a model that orders the tiles of a kernel and knows no times; to estimate, "
                "name one that `kernelcast train` made for the fusion task"
            )
        return Predictor(checkpoint.trained, checkpoint.provenance)

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        """Estimated seconds of one warm run of each kernel."""
        return self.estimate_graphs(self._featuriser.graphs(kernels))

    def estimate_graphs(self, graphs: Sequence[KernelGraph]) -> Estimates:
        """The same for kernels that are graphs already, as a search has them.

        Bounds are NaN: the model is not calibrated.
        """
        if not graphs:
            return estimates_of(np.zeros(0))
        output = np.zeros(len(graphs), dtype=np.float64)
        scaled = scaled_graphs(graphs, self.trained.scaling)
        total = sum(graph.node_count for graph in graphs)
        budget = _SMALL_BUDGET if total <= _SMALL_BUDGET else _LARGE_BUDGET
        for numbers, made in batches(scaled, node_budget=budget):
            output[numbers] = np.asarray(_forward(self.trained.network, made))[: len(numbers)]
        extrapolated = np.array([self.trained.scaling.extrapolates(g) for g in graphs], dtype=np.bool_)
        status = np.where(extrapolated, Status.EXTRAPOLATED, Status.KNOWN).astype(np.int8)
        return estimates_of(np.exp(self.trained.log_seconds(output, graphs)), status)


class Ensemble:
    """The geometric mean of several predictors, such as seeds of one model; implements ``Estimator``."""

    def __init__(self, members: Sequence[Predictor]) -> None:
        if not members:
            raise ValueError("an ensemble needs at least one predictor")
        self.members = tuple(members)
        self._featuriser = Featuriser()

    def estimate(self, kernels: Sequence[Kernel]) -> Estimates:
        """Estimated seconds; extrapolated where any member extrapolates."""
        return self.estimate_graphs(self._featuriser.graphs(kernels))

    def estimate_graphs(self, graphs: Sequence[KernelGraph]) -> Estimates:
        """The same for kernels that are graphs already."""
        each = [member.estimate_graphs(graphs) for member in self.members]
        seconds = np.exp(np.mean([np.log(e.seconds) for e in each], axis=0))
        return estimates_of(seconds, np.max([e.status for e in each], axis=0))


@eqx.filter_jit
def _forward(network: Network, made: GraphBatch) -> Float[Array, " kernel"]:
    return network(made)
