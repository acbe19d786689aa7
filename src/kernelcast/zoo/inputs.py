"""What a zoo program is called with: shape, element type and typical values of each array."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import ml_dtypes
import numpy as np


class Values(StrEnum):
    """The distribution that the values of one input are drawn from."""

    NORMAL = "normal"  # mean low, standard deviation high
    UNIFORM = "uniform"  # [low, high)
    INTEGERS = "integers"  # [low, high)
    SORTED = "sorted"  # integers of [low, high) in rising order
    PERMUTATION = "permutation"  # different integers of [low, high), as many as there are elements
    CONSTANT = "constant"  # low everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One array argument of a zoo program.

    Attributes:
        shape: extents, major first.
        dtype: NumPy's or ml_dtypes' name, e.g. ``bfloat16``.
        values: distribution of typical values.
        low: its first parameter; see ``Values``.
        high: its second parameter; see ``Values``.

    >>> indices((2, 3), below=10).draw(np.random.default_rng(0)).max() < 10
    np.True_
    """

    shape: tuple[int, ...]
    dtype: str
    values: Values
    low: float
    high: float

    def draw(self, random: np.random.Generator) -> np.ndarray:
        """Typical values of this input."""
        match self.values:
            case Values.NORMAL:
                drawn = random.normal(self.low, self.high, self.shape)
            case Values.UNIFORM:
                drawn = random.uniform(self.low, self.high, self.shape)
            case Values.INTEGERS:
                drawn = random.integers(int(self.low), int(self.high), self.shape)
            case Values.SORTED:
                drawn = np.sort(random.integers(int(self.low), int(self.high), self.shape), axis=-1)
            case Values.PERMUTATION:
                pool = random.permutation(np.arange(int(self.low), int(self.high)))
                drawn = pool[: math.prod(self.shape)].reshape(self.shape)
            case Values.CONSTANT:
                drawn = np.full(self.shape, self.low)
        return np.asarray(drawn).astype(numpy_dtype(self.dtype))


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a name that ml_dtypes may have to supply."""
    return np.dtype(getattr(ml_dtypes, name, name))


def normal(shape: tuple[int, ...], *, mean: float = 0.0, scale: float = 1.0, dtype: str = "float32") -> Input:
    """Normally distributed values with standard deviation ``scale``."""
    return Input(shape=shape, dtype=dtype, values=Values.NORMAL, low=mean, high=scale)


def weight(*shape: int, dtype: str = "float32") -> Input:
    """A weight of scale 1/√(fan in), the last dimension being the outputs."""
    return normal(shape, scale=1.0 / math.sqrt(max(1, math.prod(shape[:-1]))), dtype=dtype)


def uniform(shape: tuple[int, ...], low: float, high: float, *, dtype: str = "float32") -> Input:
    """Uniform values in [low, high)."""
    return Input(shape=shape, dtype=dtype, values=Values.UNIFORM, low=low, high=high)


def constant(value: float, shape: tuple[int, ...] = (), *, dtype: str = "float32") -> Input:
    """The same value everywhere."""
    return Input(shape=shape, dtype=dtype, values=Values.CONSTANT, low=value, high=value)


def indices(shape: tuple[int, ...], *, below: int, dtype: str = "int32") -> Input:
    """Integers in [0, below), spread evenly."""
    return Input(shape=shape, dtype=dtype, values=Values.INTEGERS, low=0, high=below)


def sorted_indices(shape: tuple[int, ...], *, below: int, dtype: str = "int32") -> Input:
    """Integers in [0, below) in rising order along the last dimension."""
    return Input(shape=shape, dtype=dtype, values=Values.SORTED, low=0, high=below)


def random_key() -> Input:
    """A raw key of JAX's default generator."""
    return Input(shape=(2,), dtype="uint32", values=Values.INTEGERS, low=0, high=2**32)
