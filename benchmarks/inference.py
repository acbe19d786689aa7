"""How fast a network predicts: kernels in batches, beside the same kernels one at a time.

The paper's network with random weights: speed does not depend on them. Featurising is counted apart.
Run: ``python benchmarks/inference.py [program/variant …]``.
"""

from __future__ import annotations

import math
import sys

import jax

from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.features.scaling import fit_scaling
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.model.checkpoint import Provenance
from kernelcast.model.config import GNN
from kernelcast.model.network import KernelNetwork
from kernelcast.model.predict import Predictor
from kernelcast.model.trained import Trained
from programs import SEVERAL, distinct_kernels
from rounds import cpu_seconds, print_result, rate, ratio


def main() -> None:
    kernels = distinct_kernels(sys.argv[1:] or SEVERAL)
    graphs = Featuriser().graphs(kernels)
    predictor = _untrained(graphs)
    seconds = cpu_seconds(
        batched=lambda: predictor.estimate_graphs(graphs),
        one_at_a_time=lambda: [predictor.estimate_graphs([graph]) for graph in graphs],
        featurise=lambda: Featuriser().graphs(kernels),
    )
    print_result(
        kernels=len(graphs),
        kernels_per_cpu_s=rate(len(graphs), seconds["batched"]),
        one_at_a_time_over_batched=ratio(seconds["one_at_a_time"], seconds["batched"]),
        featurise_over_batched=ratio(seconds["featurise"], seconds["batched"]),
    )


def _untrained(graphs: list[KernelGraph]) -> Predictor:
    scaling = fit_scaling(graphs, KERNELCAST_1, frozenset(GNN.blocks))
    network = KernelNetwork(
        GNN.network,
        opcode_count=len(KERNELCAST_1.opcodes),
        node_features=len(scaling.node.columns),
        kernel_features=len(scaling.kernel.columns),
        key=jax.random.key(0),
    )
    trained = Trained(
        network=network,
        scaling=scaling,
        centre=math.log(1e-6),
        spread=1.0,
        config=GNN,
        seed=0,
        history=(),
    )
    nothing = Provenance(
        name="untrained", data_digest="", target={}, target_digest="", statistic="", versions={}
    )
    return Predictor(trained, nothing)


if __name__ == "__main__":
    main()
