"""Whether the compiler's final module has the fusions that a plan asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kernelcast.core.kernel import Kernel
from kernelcast.fusion.extract import kernels_of
from kernelcast.fusion.rules_tpu import XLA_TPU
from kernelcast.hlo.program import Program
from kernelcast.targets.tpu.unassigned import unassigned


def difference(asked: Program, final: Program) -> str:
    """What is not as it was asked; empty where each fusion came out with the operations that it went in with.

    After windows are chosen the compiler still moves bitcasts, scalars and layouts about; so operations are
    compared by opcode and size, bitcasts left out.

    Args:
        asked: the module that took the place of the compiler's.
        final: what came out.
    """
    made = dict(_fusions(final))
    for name, kernel in _fusions(asked):
        if name not in made:
            return f"%{name} is not in the final module"
        wanted, found = _operations(kernel), _operations(made[name])
        if wanted != found:
            missing, added = wanted - found, found - wanted
            return f"%{name} lacks {_listed(missing)} and has {_listed(added)} besides"
    return ""


def _fusions(program: Program) -> Iterator[tuple[str, Kernel]]:
    for _, name, kernel in kernels_of(unassigned(program)):
        # Those of other kinds are the compiler's own; it renames them.
        if kernel.root.opcode == "fusion" and kernel.root.attribute("kind") in XLA_TPU.kinds:
            yield name, kernel


def _operations(kernel: Kernel) -> Counter[tuple[str, tuple[int, ...]]]:
    return Counter(
        (i.opcode, i.shape.dimensions)
        for computation in kernel.program.computations
        for i in computation
        if i.opcode not in ("bitcast", "parameter", "constant", "tuple", "fusion")
    )


def _listed(operations: Counter[tuple[str, tuple[int, ...]]]) -> str:
    named = [f"{opcode}{list(extents)}" for opcode, extents in list(operations)[:3]]
    return ", ".join(named) or "nothing"
