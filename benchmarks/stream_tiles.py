"""How much memory streaming a large collection of TpuGraphs tile files takes, and how fast it is.

The collection is synthetic: some distinct kernels of the published sizes, written once and linked under many
names until their decoded arrays add up. It lies in a temporary folder and is deleted at the end.

Run: ``python benchmarks/stream_tiles.py [--gigabytes 10] [--record]``.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kernelcast.cli.recording import record
from kernelcast.data.tpugraphs.stream import TileStream, tile_files
from kernelcast.data.tpugraphs.tile_file import TileGraph, write_tile_file
from kernelcast.jobs.learning.published_tiles import PublishedTiles
from kernelcast.report.provenance import Provenance
from kernelcast.report.results import Record

DISTINCT = 100
GROUPS = 4  # of ten tiles, drawn from each kernel in an epoch of training
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of decoded arrays")
    parser.add_argument("--record", action="store_true", help="write the peak to docs/results.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        decoded = make_collection(Path(name) / "train", options.gigabytes * 1e9)
        figures = streamed(Path(name), decoded)
    print(json.dumps(figures))

    def records(made: Provenance) -> Iterable[Record]:
        yield made.record(
            "tpugraphs.peak_memory_gb",
            figures["peak_memory_gb"],
            "GB",
            seeds=[SEED],
            split="none",
            noise=f"an epoch of batches and one of training input over {figures['files']:,} synthetic files, "
            f"{figures['decoded_gb']} GB decoded",
        )

    root = Path(__file__).resolve().parent.parent
    record("benchmarks/stream_tiles.py", root, records, wanted=options.record)


def make_collection(folder: Path, decoded_bytes: float) -> int:
    """Writes a collection and returns the bytes of its decoded arrays."""
    folder.mkdir()
    random = np.random.default_rng(SEED)
    graphs = [kernel(f"kernel_{n}", random) for n in range(DISTINCT)]
    written = [write_tile_file(folder, graph) for graph in graphs]
    total = sum(graph.byte_size for graph in graphs)
    copies = max(1, round(decoded_bytes / total))
    for copy in range(1, copies):
        for path in written:
            (folder / f"{path.stem}_{copy}.npz").hardlink_to(path)
    return total * copies


def kernel(name: str, random: np.random.Generator) -> TileGraph:
    """A kernel of 10 to 100 nodes with 10 to 20,000 tiles, most of them few: 2,600 on average."""
    nodes = int(10 ** random.uniform(1, 2))
    tiles = int(10 ** random.uniform(1, 4.3))
    used = random.random(140) < 0.1
    return TileGraph(
        name=name,
        node_feat=(random.integers(0, 512, (nodes, 140)) * used).astype(np.float32),
        opcode=random.integers(1, 121, nodes, dtype=np.uint8),
        edges=np.stack([np.arange(1, nodes), np.arange(nodes - 1)], axis=1),
        config_feat=(random.integers(1, 33, (tiles, 24)) * (np.arange(24) % 8 < 4)).astype(np.float32),
        runtime_ns=random.integers(1_000, 1_000_000, tiles),
        normalizer_ns=np.full(tiles, 5_000),
    )


def streamed(folder: Path, decoded_bytes: int) -> dict[str, float]:
    """The figures of one epoch of plain batches, and one of what training reads."""
    files = tile_files(folder, "train")
    seconds, pairs = timed(
        graph.tile_count for batch in TileStream(files, seed=SEED).epoch(0) for graph in batch
    )
    source, random = PublishedTiles(files), np.random.default_rng(SEED)
    drawn_seconds, drawn = timed(len(group) for group in source.epoch(random, tiles=10, groups=GROUPS))
    return {
        "files": len(files),
        "decoded_gb": round(decoded_bytes / 1e9, 2),
        "decoded_mb_per_cpu_s": round(decoded_bytes / 1e6 / seconds),
        "pairs_per_cpu_s": round(pairs / seconds),
        "pairs_per_cpu_s_for_training": round(drawn / drawn_seconds),
        "peak_memory_gb": round(peak_bytes() / 1e9, 3),
    }


def timed(counts: Iterable[int]) -> tuple[float, int]:
    """CPU seconds that it takes to go through the counts, and their sum."""
    begin = time.process_time()
    total = sum(counts)
    return time.process_time() - begin, total


def peak_bytes() -> int:
    """The most memory that this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():  # the other number counts what the parent held when it started this process
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
