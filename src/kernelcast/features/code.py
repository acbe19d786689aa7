"""What kind of machine code one element of an operation becomes on a vector processor."""

from __future__ import annotations

from kernelcast.features.schema import CODE_CLASSES

_MOVE = frozenset({
    "parameter", "constant", "copy", "bitcast", "bitcast-convert", "reshape", "broadcast", "transpose",
    "slice", "concatenate", "pad", "reverse", "gather", "iota", "dynamic-slice", "dynamic-update-slice",
    "tuple",
    "get-tuple-element", "real", "imag", "complex", "after-all", "opt-barrier", "domain", "dynamic-reshape",
})  # fmt: skip
_DIVISION = frozenset({"divide", "sqrt", "rsqrt"})
# Inlined as vector code for single precision; a library call per element for double.
_POLYNOMIAL = frozenset({
    "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "erf",
})  # fmt: skip
_CALL = frozenset({
    "sine", "cosine", "tan", "atan2", "power", "cbrt", "remainder", "acos", "acosh", "asin", "asinh", "atan",
    "atanh", "cosh", "sinh",
})  # fmt: skip
_NARROW = frozenset({"pred", "s4", "u4", "s8", "u8", "s16", "u16", "bf16", "f16"})
_INTEGERS = frozenset({"s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64"})

# Rough cycles per element of each class on one core, only to rank classes; the model learns the rest.
NOMINAL_CYCLES = dict(zip(CODE_CLASSES, (0.25, 0.25, 1.0, 3.0, 20.0), strict=True))


def code_class(opcode: str, element_type: str) -> str:
    """One of ``CODE_CLASSES``.

    >>> code_class("add", "f32"), code_class("tanh", "f32"), code_class("tanh", "f64")
    ('vector', 'polynomial', 'call')
    """
    if opcode in _MOVE:
        return "move"
    if opcode in _DIVISION:
        return "division"
    if opcode in _POLYNOMIAL:
        return "call" if element_type in ("f64", "c64", "c128") else "polynomial"
    if opcode in _CALL:
        return "call"
    return "vector"


def is_integer_division(opcode: str, element_type: str) -> bool:
    """Whether an element costs an integer division, which has no vector instruction."""
    return opcode in ("divide", "remainder") and element_type in _INTEGERS


def is_narrow_conversion(opcode: str, element_type: str, operand_type: str) -> bool:
    """Whether elements change width on the way: a conversion from or to a narrow type, or arithmetic on
    16-bit floats, which is done in 32 bits.
    """
    if opcode == "convert":
        return element_type in _NARROW or operand_type in _NARROW
    return element_type in ("bf16", "f16") and opcode not in _MOVE
