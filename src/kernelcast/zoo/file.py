"""Programs of one's own: a file instead of an entry of the catalogue."""

from __future__ import annotations

from functools import partial
from os import PathLike

from kernelcast.core.kernel import InputPolicy, InputSpec
from kernelcast.fusion.inputs import input_specs
from kernelcast.hlo.program import Program
from kernelcast.hlo.shape import Shape
from kernelcast.hlo.sources import Stage, load
from kernelcast.targets.inputs import FLOAT_HIGH, FLOAT_LOW, dtype_of
from kernelcast.zoo.inputs import Input, Values
from kernelcast.zoo.program import Built, Variant, ZooProgram

_FLOATS = (Values.UNIFORM, FLOAT_LOW, FLOAT_HIGH)
_SMALL = (Values.INTEGERS, 0.0, 8.0)


def from_hlo_file(
    path: str | PathLike[str], *, name: str | None = None, family: str | None = None, licence: str = "unknown"
) -> Variant:
    """The only variant, ``as-is``, of a program that a file or an XLA dump folder holds.

    Args:
        path: unoptimised HLO or StableHLO in any form that ``kernelcast.hlo.sources.load`` reads.
        name: of the program; the module's own for None.
        family: programs that a split must keep together; the program's name for None.

    Raises:
        KernelcastError: as ``load``, for optimised programs too.
    """
    loaded = load(path, stage=Stage.UNOPTIMISED)
    name = name or loaded.program.name
    program = ZooProgram(
        name=name, family=family or name, build=partial(_built, loaded.program), options={"as-is": {}},
        source=loaded.origin, licence=licence,
    )  # fmt: skip
    return program.variants[0]


def _built(program: Program) -> Built:
    specs = zip(program.entry_computation.parameters, input_specs(program), strict=True)
    return program, tuple(_input(parameter.shape, spec) for parameter, spec in specs)


def _input(shape: Shape, spec: InputSpec) -> Input:
    bound = float(spec.bound)
    values, low, high = {
        InputPolicy.FLOAT: _FLOATS,
        InputPolicy.INDEX: (Values.INTEGERS, 0.0, bound),
        InputPolicy.SORTED: (Values.SORTED, 0.0, bound),
        InputPolicy.PERMUTATION: (Values.PERMUTATION, 0.0, bound),
        InputPolicy.PREDICATE: (Values.INTEGERS, 0.0, 2.0),
        InputPolicy.COUNTER: _SMALL,
        InputPolicy.INTEGER: _SMALL,
    }[spec.policy]
    return Input(
        shape=shape.dimensions, dtype=dtype_of(shape.element_type).name, values=values, low=low, high=high
    )
