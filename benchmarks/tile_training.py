"""How fast the tile task trains and ranks: what ``kernelcast evaluate tile-speed`` does, on zoo programs.

The largest kernels are taken, as many as have 32 nodes on average. Seconds are of the wall here, since all
processors work on each step.
Run: ``python benchmarks/tile_training.py [program/variant …]``.
"""

from __future__ import annotations

import sys

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.features.graph import Featuriser
from kernelcast.jobs.studies.tile_speed import tile_speed
from programs import TRAINING_STEP, distinct_kernels
from rounds import print_result

# Image processing and a lattice simulation have kernels of some dozen operations.
LARGE = ("blur_and_edges/384", "lattice_boltzmann/200x256", "vision_transformer/b4-train", TRAINING_STEP)
MEAN_NODES = 32


def main() -> None:
    kernels = distinct_kernels(sys.argv[1:] or LARGE)
    found = tile_speed(_largest(kernels), kernels[0])
    print_result(
        kernels=found.kernels,
        nodes_mean=round(found.nodes_mean, 1),
        trained_pairs_per_s=round(found.pairs_per_s),
        ranked_nodes=found.ranked_nodes,
        rank_5800_tiles_s=round(found.rank_s, 3),
    )


def _largest(kernels: list[Kernel]) -> list[Kernel]:
    """The largest kernels, as many as have so many nodes on average; the largest one at least."""
    nodes = np.array([graph.node_count for graph in Featuriser().graphs(kernels)])
    order = np.argsort(-nodes, kind="stable")
    means = np.cumsum(nodes[order]) / np.arange(1, len(order) + 1)
    return [kernels[n] for n in order[: max(1, int((means >= MEAN_NODES).sum()))]]


if __name__ == "__main__":
    main()
