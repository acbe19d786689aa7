"""How fast a network trains: epochs over some kernels, beside estimating the same kernels.

The ratio is what gradient, optimiser and averaging cost. The labels are made up: speed does not depend on
them. Run: ``python benchmarks/training_step.py [program/variant …]``.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

from kernelcast.features.graph import Featuriser
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.model.checkpoint import Provenance
from kernelcast.model.config import GNN
from kernelcast.model.examples import Examples
from kernelcast.model.predict import Predictor
from kernelcast.model.train import train
from programs import SEVERAL, distinct_kernels
from rounds import ROUNDS, cpu_seconds, print_result, rate, ratio

_NOTHING = Provenance(
    name="benchmark", data_digest="", target={}, target_digest="", statistic="", versions={}
)


def main() -> None:
    graphs = Featuriser().graphs(distinct_kernels(sys.argv[1:] or SEVERAL))
    labels_s = np.geomspace(1e-7, 1e-3, len(graphs))
    ends = [time.process_time()]
    # The first epoch compiles; a single held-out kernel makes validation cheap.
    trained = train(
        Examples(graphs=graphs, seconds=labels_s),
        Examples(graphs=graphs[:1], seconds=labels_s[:1]),
        schema=KERNELCAST_1,
        config=replace(GNN, epochs=ROUNDS + 1, patience=ROUNDS + 1),
        seed=0,
        on_epoch=lambda epoch: ends.append(time.process_time()),
    )
    epochs = np.diff(ends)[1:].tolist()
    predictor = Predictor(trained, _NOTHING)
    forward = cpu_seconds(forward=lambda: predictor.estimate_graphs(graphs))["forward"]
    print_result(
        graphs=len(graphs),
        trained_graphs_per_cpu_s=rate(len(graphs), epochs),
        estimated_graphs_per_cpu_s=rate(len(graphs), forward),
        training_over_estimating=ratio(epochs, forward),
    )


if __name__ == "__main__":
    main()
