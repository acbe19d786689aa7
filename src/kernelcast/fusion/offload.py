"""Which kernels a plan may hand to the backend's library although the compiler would not."""

from __future__ import annotations

from kernelcast.fusion.graph import Scope
from kernelcast.fusion.grouping import KernelGroup, bits, operands_of
from kernelcast.fusion.library import Library
from kernelcast.hlo.shape import Shape


def why_not_offloaded(scope: Scope, group: KernelGroup, library: Library | None) -> str:
    """Why the library does not take a kernel; empty where it does."""
    if library is None:
        return "this target has no library"
    if len(group.roots) > 1:
        return "several results"
    members = [scope.nodes[number].instruction for number in bits(group.members)]
    foreign = sorted({i.opcode for i in members} - library.opcodes)
    if foreign:
        return f"{', '.join(foreign)}, which the library lacks or was not seen to compute right"
    if all(i.opcode in library.moves for i in members):
        return "nothing to compute"
    outside = [scope.nodes[number].instruction for number in operands_of(scope, group)]
    for instruction in (*members, *outside):
        if not _is_plain(instruction.shape, library):
            return (
                f"%{instruction.name} of {instruction.shape}; needed are arrays of "
                f"{', '.join(sorted(library.element_types))} in row-major order"
            )
    return ""


def _is_plain(shape: Shape, library: Library) -> bool:
    return (
        shape.is_array
        and not shape.dynamic
        and shape.element_type in library.element_types
        and shape.element_count > 0
        and shape.minor_to_major == tuple(range(shape.rank - 1, -1, -1))
    )
