"""Arguments on which a whole program is run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelcast.errors import TargetError
from kernelcast.fusion.inputs import input_specs
from kernelcast.fusion.space import FusionSpace
from kernelcast.targets.inputs import dtype_of, make_input


def program_inputs(space: FusionSpace, given: Mapping[int, np.ndarray], *, seed: int = 0) -> list[np.ndarray]:
    """One array per parameter of a program: the given one, or a made-up one.

    Raises:
        TargetError: a given array does not fit its parameter.
    """
    parameters = space.original.entry_computation.parameters
    specs = input_specs(space.original)
    arrays: list[np.ndarray] = []
    for number, (parameter, spec) in enumerate(zip(parameters, specs, strict=True)):
        shape = parameter.shape
        array = given.get(number)
        if array is None:
            array = make_input(shape.element_type, shape.dimensions, spec, seed=seed + number)
        elif array.shape != shape.dimensions or array.dtype != dtype_of(shape.element_type):
            raise TargetError(f"parameter {number} is {shape}, the given array is {array.dtype}{array.shape}")
        arrays.append(array)
    unknown = sorted(set(given) - set(range(len(parameters))))
    if unknown:
        raise TargetError(f"inputs for parameters {unknown}; the program has {len(parameters)} parameters")
    return arrays
