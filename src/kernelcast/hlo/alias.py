"""In-place updates: which values a program overwrites, and whether a schedule reads one too late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelcast.hlo.buffers import Buffers, Site, must_share, site
from kernelcast.hlo.hazards import Hazard, HazardKind, hazards
from kernelcast.hlo.opcodes import CONTROL_FLOW, TRANSPARENT
from kernelcast.hlo.program import Computation, Program
from kernelcast.hlo.values import Value


def clobbered(program: Program) -> Mapping[str, Mapping[Value, tuple[str, ...]]]:
    """For each scheduled computation the values that get overwritten, and the instructions that may do so.

    A value, named as :func:`kernelcast.hlo.values.resolve` names it, is overwritten by a later instruction
    that must write into the same buffer: an in-place update (bare or as an output of a fusion), a loop that
    changes the state that starts as the value, the instruction that makes a state element's next value, a
    call or conditional that does one of these inside, or the output that takes a donated parameter's buffer.
    The order of instructions does not matter, only data flow does: an instruction that the value depends on
    is not listed.

    A kernel that reads such a value may be moved, copied or merged only in front of those instructions.

    >>> from kernelcast.hlo.text import parse
    >>> program = parse('''HloModule m
    ... ENTRY e { x = f32[8] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
    ...   y = f32[8] negate(x)  ROOT r = f32[8] dynamic-update-slice(y, u, i) }''')
    >>> dict(clobbered(program)["e"])
    {('y', ()): ('r',)}
    """
    buffers = must_share(program)
    inner = _written_inside(program, buffers)
    found: dict[str, Mapping[Value, tuple[str, ...]]] = {}
    for computation in program.scheduled_computations():
        found[computation.name] = _clobbered_here(computation, buffers, inner)
    return found


def _clobbered_here(
    computation: Computation, buffers: Buffers, inner: Mapping[str, frozenset[Site]]
) -> dict[Value, tuple[str, ...]]:
    writers: dict[Site, list[str]] = {}
    for name, buffer in _writes(computation, buffers, inner):
        if name not in writers.setdefault(buffer, []):
            writers[buffer].append(name)
    ancestors = _writers_before(computation, {name for names in writers.values() for name in names})
    found: dict[Value, tuple[str, ...]] = {}
    for buffer, names in writers.items():
        for computation_name, name, index in buffers.members[buffer]:
            if computation_name != computation.name:
                continue
            later = tuple(w for w in names if w != name and w not in ancestors[name])
            if later:
                found[name, index] = later
    return found


def _writes(
    computation: Computation, buffers: Buffers, inner: Mapping[str, frozenset[Site]]
) -> Iterator[tuple[str, Site]]:
    """(instruction, shared buffer) for each write that an instruction does, itself or in what it calls."""
    for instruction in computation:
        if instruction.opcode in CONTROL_FLOW:
            for called in instruction.called:
                for buffer in inner[called]:
                    yield instruction.name, buffer
        elif instruction.opcode not in TRANSPARENT:
            for index, _ in instruction.shape.indexed_leaves():
                buffer = buffers.shared((computation.name, instruction.name, index))
                if buffer is not None:
                    yield instruction.name, buffer
    # A parameter that is handed on as another output (a swap) has to be copied at the end.
    root = computation.root_instruction
    for index, _ in root.shape.indexed_leaves():
        source = site(computation, root.name, index)
        buffer = buffers.shared(source)
        moved = computation[source[1]].opcode in ("parameter", "constant") and source[2] != index
        if buffer is not None and root.opcode == "tuple" and moved:
            yield root.name, buffer


def _written_inside(program: Program, buffers: Buffers) -> dict[str, frozenset[Site]]:
    """For each computation the shared buffers that one run of it writes, callees included."""
    inner: dict[str, frozenset[Site]] = {}
    for computation in program.computations:  # callees first
        inner[computation.name] = frozenset(buffer for _, buffer in _writes(computation, buffers, inner))
    return inner


def _writers_before(computation: Computation, writers: set[str]) -> dict[str, frozenset[str]]:
    """For each instruction the writers that its value depends on."""
    before: dict[str, frozenset[str]] = {}
    nothing: frozenset[str] = frozenset()
    for instruction in computation:
        found = nothing
        for operand in (*instruction.operands, *instruction.control_predecessors):
            above = before[operand]
            if operand in writers:
                above = above | {operand}
            found = above if not found or found <= above else (found if above <= found else found | above)
        before[instruction.name] = found
    return before


__all__ = ["Hazard", "HazardKind", "clobbered", "hazards"]
