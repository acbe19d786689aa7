"""One kernel as a module of its own, in the form in which libtpu can be made to compile it.

libtpu takes StableHLO, which has no words for fusions and layouts; so a *carrier* of the same signature is
compiled, and the kernel takes its place in the callback.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.targets.tpu.unassigned import unassigned
from kernelcast.targets.tpu.unshared import unshared
from kernelcast.targets.tpu.windows import with_tile

_PLACEHOLDER = "kernelcast_placeholder"
# Unlike canonical names it occurs once in the module, so that libtpu does not rename it.
ROOT = "isolated_kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedKernel:
    """A kernel ready to compile.

    Attributes:
        carrier: HLO text with the kernel's parameters and result.
        module: scheduled HLO text of the kernel, whose name there is ``ROOT``.
    """

    carrier: str
    module: str


def isolated(kernel: Kernel, tile: Tile | None) -> IsolatedKernel:
    """The kernel with the given window, or the compiler's choice for None.

    What an earlier compile left in it, its windows and where its values lie, is taken out.
    """
    *callees, entry = unshared(unassigned(kernel.canonical)).computations
    root = replace(with_tile(entry.root_instruction, tile), name=ROOT)
    others = tuple(i for i in entry if i.name != entry.root)
    entry = replace(entry, instructions=(*others, root), root=ROOT)
    layout = _entry_layout(entry)
    module = Program(
        name="isolated",
        computations=(*callees, entry),
        entry=entry.name,
        attributes=(("is_scheduled", "true"), ("entry_computation_layout", layout)),
    )
    carrier = Program(
        name="carrier",
        computations=(_carrier(entry),),
        entry="carrier",
        attributes=(("entry_computation_layout", layout),),
    )
    return IsolatedKernel(carrier=format_program(carrier), module=format_program(module))


def _carrier(entry: Computation) -> Computation:
    """A call of nothing with the parameters and the result of the kernel."""
    parameters = entry.parameters
    call = Instruction(
        name="placeholder",
        opcode="custom-call",
        shape=entry.root_instruction.shape,
        operands=tuple(p.name for p in parameters),
        attributes=(("custom_call_target", f'"{_PLACEHOLDER}"'),),
    )
    return Computation(name="carrier", instructions=(*parameters, call), root=call.name)


def _entry_layout(entry: Computation) -> str:
    parameters = ", ".join(str(p.shape) for p in entry.parameters)
    return f"{{({parameters})->{entry.root_instruction.shape}}}"
