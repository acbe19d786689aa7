"""Writes a program as numbers: the arrays that models read, in a file that NumPy opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.data.tpugraphs.arrays import write_arrays
from kernelcast.data.tpugraphs.graph_file import graph_arrays
from kernelcast.errors import KernelcastError
from kernelcast.features.graph import Featuriser
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.features.tpugraphs import program_graph
from kernelcast.features.tpugraphs_schema import TPUGRAPHS_140
from kernelcast.fusion.extract import kernels_of
from kernelcast.hlo.sources import Loaded, Stage
from kernelcast.jobs.ingest import loaded


class Format(StrEnum):
    """A form of features."""

    KERNELCAST = "kernelcast-1"  # a graph for each distinct kernel of an optimised program
    TPUGRAPHS = "tpugraphs"  # one graph of the whole module, as TpuGraphs publishes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Featurised:
    """What was written.

    Attributes:
        path: of the file.
        program: name of the module.
        origin: where the program was read from, in words.
        format: of the features.
        schema: name of the feature schema.
        schema_digest: that binds a checkpoint to the schema.
        graphs: how many the file holds.
        nodes: of all of them.
        edges: of all of them.
        arrays: shape of each array by name.
    """

    path: Path
    program: str
    origin: str
    format: Format
    schema: str
    schema_digest: str
    graphs: int
    nodes: int
    edges: int
    arrays: Mapping[str, tuple[int, ...]]


def featurise(
    source: object, path: Path, *, form: Format, stage: Stage | None = None, module: str | None = None
) -> Featurised:
    """Writes the features of a program to a ``.npz`` file, and tells what is in it.

    Args:
        source: as for ``kernelcast.jobs.ingest.ingest``.
        path: of the file to write.
        form: of the features.
        stage: as for ``ingest``.
        module: as for ``ingest``.

    Raises:
        KernelcastError: there is no such program, or it has no kernels yet and the format is of kernels.
        StoreError: the file cannot be written.
    """
    found = loaded(source, (), stage, module)
    match form:
        case Format.TPUGRAPHS:
            schema, graphs, arrays = TPUGRAPHS_140, 1, graph_arrays(program_graph(found.program))
        case Format.KERNELCAST:
            kernels = _kernels(found)
            schema, graphs, arrays = KERNELCAST_1, len(kernels), _kernel_arrays(kernels)
    write_arrays(path, arrays)
    return Featurised(
        path=path,
        program=found.program.name,
        origin=found.origin,
        format=form,
        schema=schema.name,
        schema_digest=schema.digest,
        graphs=graphs,
        nodes=len(arrays["node_feat"]),
        edges=len(arrays["edge_index"]),
        arrays={name: array.shape for name, array in arrays.items()},
    )


def _kernels(found: Loaded) -> list[Kernel]:
    """The distinct kernels, in order of first launch."""
    launches = kernels_of(found.program)
    if not launches or (found.stage is Stage.UNOPTIMISED and len(launches) > 1):
        raise KernelcastError(
            f"{found.origin}: expected an optimised module, which launches kernels, or one kernel; got an "
            f"{found.stage} one with {len(launches)} launched instructions: give --stage optimised where the "
            f"source can be compiled, or --format {Format.TPUGRAPHS}, which takes any program"
        )
    return list(dict.fromkeys(kernel for _, _, kernel in launches))


def _kernel_arrays(kernels: Sequence[Kernel]) -> dict[str, np.ndarray]:
    """The graphs of kernels one after the other; node numbers count within a kernel."""
    graphs = Featuriser().graphs(kernels)
    edges = [np.stack([g.receivers, g.senders], axis=1) for g in graphs]
    return {
        "node_feat": np.concatenate([g.rows for g in graphs]),
        "node_opcode": np.concatenate([g.opcodes for g in graphs]),
        "edge_index": np.concatenate(edges),
        "edge_slot": np.concatenate([g.slots for g in graphs]),
        "kernel_feat": np.stack([g.kernel for g in graphs]),
        "node_splits": np.cumsum([0, *(g.node_count for g in graphs)]),
        "edge_splits": np.cumsum([0, *(g.edge_count for g in graphs)]),
        "fingerprint": np.array([kernel.fingerprint for kernel in kernels]),
    }
