"""HLO without what the TPU compiler assigns after fusion: windows, memory spaces, other backend settings."""

from __future__ import annotations

from dataclasses import replace

from kernelcast.hlo.program import Instruction, Program
from kernelcast.hlo.shape import Layout, Shape


def unassigned(program: Program) -> Program:
    """The program as it stood before: equal kernels are equal again, whatever their windows are."""
    return replace(
        program,
        computations=tuple(
            replace(computation, instructions=tuple(map(_unassigned, computation)))
            for computation in program.computations
        ),
    )


def _unassigned(instruction: Instruction) -> Instruction:
    bare = replace(instruction, shape=_in_default_memory(instruction.shape))
    # The arguments of a custom call are in its backend_config.
    return bare if bare.opcode == "custom-call" else bare.with_attribute("backend_config", None)


def _in_default_memory(shape: Shape) -> Shape:
    if shape.elements:
        return replace(shape, elements=tuple(map(_in_default_memory, shape.elements)))
    if shape.layout is None or not shape.layout.memory_space:
        return shape
    before, _, rest = shape.layout.suffix.partition("S(")
    suffix = before + rest.partition(")")[2]
    return replace(shape, layout=Layout(minor_to_major=shape.layout.minor_to_major, suffix=suffix))
