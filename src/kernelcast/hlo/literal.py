"""The values of constants, read from the literal text that ``Program`` keeps verbatim."""

from __future__ import annotations

import re
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from kernelcast.errors import HloError
from kernelcast.hlo.program import Instruction, Program
from kernelcast.hlo.shape import Shape

Array = np.ndarray[Any, np.dtype[Any]]
Values = Array | tuple["Values", ...]

_DTYPES: dict[str, np.dtype[Any]] = {
    "pred": np.dtype(np.bool_),
    **{f"s{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(getattr(ml_dtypes, f"int{bits}")) for bits in (1, 2, 4)},
    **{f"u{bits}": np.dtype(getattr(ml_dtypes, f"uint{bits}")) for bits in (1, 2, 4)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f4e2m1fn": np.dtype(ml_dtypes.float4_e2m1fn),
    "f8e3m4": np.dtype(ml_dtypes.float8_e3m4),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "f8e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8e8m0fnu": np.dtype(ml_dtypes.float8_e8m0fnu),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
# Commas, braces and a complex number's parentheses only structure what the shape says anyway.
_STRUCTURE = str.maketrans(dict.fromkeys(",{}()", " "))
_SIGNED_NAN = re.compile(r"-nan|nan\(")
_NAN = re.compile(r"(-?)nan(?:\(0x([0-9a-fA-F]+)\))?")
_PAYLOAD = re.compile(r"nan\(0x[0-9a-fA-F]+\)")
_NUMBER = re.compile(r"[+-]?\d+")
# The largest float32 printed with eight digits is a little larger than it is.
_ROUNDED_UP = 1 + 2e-8
# Bits of the fraction of the types whose NaNs can carry a payload.
_FRACTION_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def numpy_dtype(element_type: str) -> np.dtype[Any]:
    """The NumPy type of an HLO element type, from ``ml_dtypes`` where NumPy has none.

    Raises:
        HloError: tokens and opaque values have no NumPy type.
    """
    try:
        return _DTYPES[element_type]
    except KeyError:
        raise HloError(
            f"element type {element_type} has no values; those that do are {', '.join(_DTYPES)}"
        ) from None


def constant_values(instruction: Instruction) -> Values:
    """The values of a constant: an array of its shape, or a tuple of such, row-major whatever its layout.

    The signs and payloads of NaNs are kept, except inside complex numbers. One number for an array of
    several elements is repeated, as XLA's parser does it.

    Raises:
        HloError: it is no constant, its values were left out of the text, or they do not fit its shape.

    >>> from kernelcast.hlo.text import parse
    >>> text = "HloModule m  ENTRY e { ROOT c = bf16[2,2] constant({ { 1, -inf }, { 0.5, 3 } }) }"
    >>> constant_values(parse(text).entry_computation.root_instruction).tolist()
    [[1.0, -inf], [0.5, 3.0]]
    """
    if instruction.opcode != "constant" or instruction.literal is None:
        raise HloError(f"expected a constant, got {instruction.opcode}", instruction=instruction.name)
    if instruction.is_elided:
        raise _elided(instruction, "they are needed here")
    try:
        return _values(instruction.literal, instruction.shape)
    except HloError as error:
        raise HloError(error.message, instruction=instruction.name) from None


def require_values(program: Program, purpose: str) -> None:
    """Refuses a program with constants that were left out of its text.

    XLA's parser makes up values for them without a word.

    Args:
        purpose: what needs the values, for the message, e.g. ``running the program needs them``.

    Raises:
        HloError: names the first such constant.
    """
    for computation in program.computations:
        for instruction in computation:
            if instruction.is_elided:
                raise _elided(instruction, purpose)


def _elided(instruction: Instruction, purpose: str) -> HloError:
    return HloError(
        f"the values of this {instruction.shape} constant were left out of the text ('{{...}}'), and "
        f"{purpose}; print the program with large constants, or give it as a proto",
        instruction=instruction.name,
    )


def _values(text: str, shape: Shape) -> Values:
    if not shape.is_tuple:
        return _array(text.strip(), shape)
    parts = _tuple_parts(text.strip())
    if len(parts) != len(shape.elements):
        raise HloError(f"expected {len(shape.elements)} values in the tuple, got {len(parts)}")
    return tuple(_values(part, element) for part, element in zip(parts, shape.elements, strict=True))


def _tuple_parts(text: str) -> list[str]:
    """The elements of ``(a, {b, c}, (d, e))``, cut at the commas outside brackets."""
    if not (text.startswith("(") and text.endswith(")")):
        raise HloError(f"expected a tuple of values in parentheses, got {text[:40]!r}")
    parts: list[str] = []
    depth, start = 0, 1
    for match in re.finditer(r"[(){},]", text):
        token = match.group()
        depth += (token in "({") - (token in ")}")
        if (token == "," and depth == 1) or depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    if parts and not parts[-1].strip():
        parts.pop()
    return parts


def _array(text: str, shape: Shape) -> Array:
    dtype = numpy_dtype(shape.element_type)
    if np.issubdtype(dtype, np.complexfloating):
        plain = _PAYLOAD.sub("nan", text).translate(_STRUCTURE)
        pairs = _parsed(plain, np.dtype(np.float64))
        if pairs.size % 2:
            raise HloError(f"expected complex numbers such as (1, -2), got {text[:40]!r}")
        flat = _rounded(pairs, np.dtype(f"float{dtype.itemsize * 4}")).view(dtype)
    elif shape.element_type == "pred":
        numbers = text.replace("true", "1").replace("false", "0").translate(_STRUCTURE)
        flat = _parsed(numbers, np.dtype(np.int64)).astype(dtype)
    elif shape.element_type[0] in "su":
        flat = _integers(text.translate(_STRUCTURE), dtype)
    else:
        flat = _floats(text, dtype, shape.element_type)
    if flat.size == 1 and shape.element_count != 1 and "{" not in text:
        return np.full(shape.dimensions, flat[0], dtype)
    _check_structure(text, shape, flat.size)
    return flat.reshape(shape.dimensions)


def _check_structure(text: str, shape: Shape, count: int) -> None:
    if count != shape.element_count:
        raise HloError(f"expected {shape.element_count} values for {shape.without_layout()}, got {count}")
    braces, groups = 0, 1
    for extent in shape.dimensions:
        braces += groups
        groups *= extent
    if text.count("{") != braces or text.count("}") != braces:
        raise HloError(
            f"expected {braces} pairs of braces for {shape.without_layout()}, got {text.count('{')} opening "
            f"and {text.count('}')} closing"
        )


def _parsed(numbers: str, dtype: np.dtype[Any]) -> Array:
    """The numbers of a text without structure; linear in its length, with no object for each number."""
    if not numbers or numbers.isspace():
        return np.empty(0, dtype)  # of white space alone, NumPy makes one number
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how NumPy before 2.3 told of other text
        try:
            return np.fromstring(numbers, dtype=dtype, sep=" ")
        except (ValueError, DeprecationWarning):
            raise HloError(f"expected {dtype.name} numbers, got {_offender(numbers, dtype)!r}") from None


def _offender(numbers: str, dtype: np.dtype[Any]) -> str:
    read = int if np.issubdtype(dtype, np.integer) else float
    for number in numbers.split():
        try:
            read(number)
        except ValueError:
            return number[:40]
    return numbers[:40]


def _integers(numbers: str, dtype: np.dtype[Any]) -> Array:
    limits = ml_dtypes.iinfo(dtype)
    wide = np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
    flat = _parsed(numbers, wide)
    if flat.size == 0:
        return flat.astype(dtype)
    lowest, highest = int(flat.min()), int(flat.max())
    if lowest == np.iinfo(wide).min or highest == np.iinfo(wide).max:  # NumPy saturates: look at the text
        exact = [int(number) for number in _NUMBER.findall(numbers)]
        lowest, highest = min(exact), max(exact)
    if lowest < limits.min or highest > limits.max:
        outside = lowest if lowest < limits.min else highest
        raise HloError(f"expected {dtype.name} values in [{limits.min}, {limits.max}], got {outside}")
    return flat.astype(dtype)


def _floats(text: str, dtype: np.dtype[Any], element_type: str) -> Array:
    flat = _rounded(_parsed(_PAYLOAD.sub("nan", text).translate(_STRUCTURE), np.dtype(np.float64)), dtype)
    if element_type in _FRACTION_BITS and _SIGNED_NAN.search(text) is not None:
        _set_nans(flat, text, _FRACTION_BITS[element_type])
    return flat


def _rounded(wide: Array, dtype: np.dtype[Any]) -> Array:
    """The float64 values in a narrower type; an infinity only where the text has one."""
    limit = float(ml_dtypes.finfo(dtype).max)
    outside = np.isfinite(wide) & (np.abs(wide) > limit * _ROUNDED_UP)
    if outside.any():
        raise HloError(f"expected {dtype.name} values in [{-limit:g}, {limit:g}], got {wide[outside][0]:g}")
    with np.errstate(invalid="ignore", under="ignore"):
        return wide.astype(dtype)


def _set_nans(flat: Array, text: str, fraction_bits: int) -> None:
    """Gives NaNs the sign and payload of the text, which NumPy's reader drops."""
    width = flat.dtype.itemsize * 8
    bits = flat.view(np.dtype(f"uint{width}"))
    sign, fraction = 1 << (width - 1), (1 << fraction_bits) - 1
    for place, match in zip(np.flatnonzero(np.isnan(flat)), _NAN.finditer(text), strict=True):
        kept = int(bits[place]) & ~sign
        if match[2] is not None:
            kept = (kept & ~fraction) | (int(match[2], 16) & fraction)
        bits[place] = kept | (sign if match[1] else 0)
