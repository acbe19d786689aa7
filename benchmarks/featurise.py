"""How long featurising a kernel takes, as a ratio to parsing its text.

Both are pure Python, so the ratio holds on a loud or slow machine.
Run: ``python benchmarks/featurise.py [program/variant …]``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import jax

from kernelcast import zoo
from kernelcast.features.flat import flatten
from kernelcast.features.graph import Featuriser
from kernelcast.fusion.extract import kernel_from_text, kernels_of
from kernelcast.hlo.program import Program
from kernelcast.hlo.text import parse

_PROGRAMS = ("transformer_train/b4", "gpt/b4", "unet/b1", "lstm_language_model/b16")


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=_PROGRAMS)
    texts = {
        kernel.text for name in parser.parse_args().programs for _, _, kernel in kernels_of(_final(name))
    }
    kernels = [kernel_from_text(text) for text in texts]
    flat = [flatten(kernel) for kernel in kernels]
    featuriser = Featuriser()
    parse_s = _cpu_seconds(lambda: [kernel_from_text(text) for text in texts])
    warm_s = _cpu_seconds(lambda: featuriser.graphs(kernels))
    flat_s = _cpu_seconds(lambda: [featuriser.graph_of_flat(kernel) for kernel in flat])
    print(
        json.dumps(
            {
                "kernels": len(kernels),
                "nodes_per_kernel": round(sum(map(len, flat)) / len(flat), 2),
                "featurise_over_parse": round(warm_s / parse_s, 3),
                "featurise_flat_over_parse": round(flat_s / parse_s, 3),
                "kernels_per_cpu_s": round(len(kernels) / warm_s),
            }
        )
    )


def _final(name: str) -> Program:
    function, arguments = zoo.find(name).build()
    return parse(jax.jit(function).lower(*arguments).compile().as_text() or "")


def _cpu_seconds(work: Callable[[], object], *, rounds: int = 5) -> float:
    """The least CPU seconds of several rounds."""
    seconds: list[float] = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


if __name__ == "__main__":
    main()
