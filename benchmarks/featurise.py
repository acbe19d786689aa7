"""How long featurising a kernel takes, as a ratio to parsing its text; both are pure Python.

Run: ``python benchmarks/featurise.py [program/variant …]``.
"""

from __future__ import annotations

import sys

from kernelcast.features.flat import flatten
from kernelcast.features.graph import Featuriser
from kernelcast.fusion.extract import kernel_from_text
from programs import SEVERAL, distinct_kernels
from rounds import cpu_seconds, print_result, rate, ratio


def main() -> None:
    kernels = distinct_kernels(sys.argv[1:] or SEVERAL)
    texts = [kernel.text for kernel in kernels]
    flat = [flatten(kernel) for kernel in kernels]
    featuriser = Featuriser()
    seconds = cpu_seconds(
        parse=lambda: [kernel_from_text(text) for text in texts],
        featurise=lambda: featuriser.graphs(kernels),
        featurise_flat=lambda: [featuriser.graph_of_flat(kernel) for kernel in flat],
    )
    print_result(
        kernels=len(kernels),
        nodes_per_kernel=round(sum(map(len, flat)) / len(flat), 2),
        featurise_over_parse=ratio(seconds["featurise"], seconds["parse"]),
        featurise_flat_over_parse=ratio(seconds["featurise_flat"], seconds["parse"]),
        kernels_per_cpu_s=rate(len(kernels), seconds["featurise"]),
    )


if __name__ == "__main__":
    main()
