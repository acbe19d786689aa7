"""Input arrays on which a kernel does typical work.

Values decide time: all-zero indices make a gather hit one cache line, sorted input makes a sort short,
denormals slow arithmetic down, NaN ends comparisons early.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from kernelcast.core.kernel import InputPolicy, InputSpec
from kernelcast.errors import HloError, TargetError
from kernelcast.hlo.literal import numpy_dtype
from kernelcast.hlo.shape import Shape

# Floats lie here: no denormals under products and quotients, no overflow under exp, no log of zero.
FLOAT_LOW, FLOAT_HIGH = 0.25, 0.75
# Integers whose use is unknown stay small, so that products of a few fit in 8 bits.
_INTEGER_BOUND = 8
# Larger arrays repeat what was drawn; a prime, so that rows do not repeat.
_DRAWN_ELEMENTS = 1_000_003

# NumPy's generators cannot fill one-bit integers.
_WITHOUT_INPUTS = frozenset({"s1", "u1"})


def dtype_of(element_type: str) -> np.dtype:
    """NumPy's type for an HLO element type.

    Raises:
        TargetError: when no input of it can be made.
    """
    try:
        if element_type not in _WITHOUT_INPUTS:
            return numpy_dtype(element_type)
    except HloError as error:
        raise TargetError(f"no input can be made: {error}") from None
    raise TargetError(f"no input can be made of element type {element_type}; valid from two bits upwards")


def default_spec(shape: Shape) -> InputSpec:
    """What to feed a parameter about whose use nothing is known."""
    if shape.element_type == "pred":
        return InputSpec(policy=InputPolicy.PREDICATE)
    if shape.element_type[0] in "su":
        return InputSpec(policy=InputPolicy.INTEGER)
    return InputSpec(policy=InputPolicy.FLOAT)


def make_input(element_type: str, dimensions: tuple[int, ...], spec: InputSpec, *, seed: int) -> np.ndarray:
    """An array of the given values; the same for the same arguments.

    SORTED and PERMUTATION run over all elements in row-major order; bounds are cut to what the type can hold.

    >>> make_input("s32", (2, 3), InputSpec(policy=InputPolicy.INDEX, bound=2), seed=0).max()
    np.int32(1)
    """
    dtype = dtype_of(element_type)
    count = math.prod(dimensions)
    generator = np.random.default_rng([seed, count])
    drawn = min(count, _DRAWN_ELEMENTS)
    match spec.policy:
        case InputPolicy.FLOAT:
            values = _floats(generator, drawn, dtype)
        case InputPolicy.PREDICATE:
            values = generator.random(drawn) < 0.5
        case InputPolicy.INDEX | InputPolicy.INTEGER:
            values = generator.integers(0, _bound(spec, dtype), drawn)
        case InputPolicy.COUNTER:
            values = np.full(drawn, _bound(spec, dtype) // 2)
        case InputPolicy.SORTED if _is_integer(dtype):
            values = np.sort(generator.integers(0, _bound(spec, dtype), count))
        case InputPolicy.SORTED:
            values = np.sort(_floats(generator, count, dtype))
        case InputPolicy.PERMUTATION:
            values = generator.permutation(count) % min(spec.bound or count, _largest(dtype))
    return np.resize(values, count).astype(dtype).reshape(dimensions)


def _floats(generator: np.random.Generator, count: int, dtype: np.dtype) -> np.ndarray:
    values = generator.uniform(FLOAT_LOW, FLOAT_HIGH, count)
    if dtype.kind == "c":
        return values + 1j * generator.uniform(FLOAT_LOW, FLOAT_HIGH, count)
    return values


def _bound(spec: InputSpec, dtype: np.dtype) -> int:
    """Exclusive upper bound of integer values; a small one where the specification has none."""
    return min(max(1, spec.bound or _INTEGER_BOUND), _largest(dtype))


def _largest(dtype: np.dtype) -> int:
    """The largest whole number that the type holds; of floats, one below which all are exact."""
    if _is_integer(dtype):
        return int(ml_dtypes.iinfo(dtype).max)
    return 1 if dtype.kind == "b" else _INTEGER_BOUND


def _is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" or dtype.name in ("int2", "int4", "uint2", "uint4")
