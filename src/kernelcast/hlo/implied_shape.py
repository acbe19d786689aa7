"""The shape that an instruction written without one has: XLA's parser infers it, so we do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kernelcast.errors import HloError
from kernelcast.hlo.shape import Layout, Shape, array_shape, tuple_shape

# Results of the shape of the first operand, layout included.
_LIKE_FIRST_OPERAND = frozenset({
    "abs", "acos", "acosh", "add", "add-dependency", "and", "asin", "asinh", "atan2", "atanh", "cbrt",
    "ceil", "cholesky", "copy", "cosh", "cosine", "count-leading-zeros", "divide", "domain", "erf",
    "exponential", "exponential-minus-one", "floor", "log", "log-plus-one", "logistic", "maximum",
    "minimum", "multiply", "negate", "not", "opt-barrier", "or", "popcnt", "power", "remainder",
    "reverse", "round-nearest-afz", "round-nearest-even", "rsqrt", "shift-left",
    "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sinh", "sqrt", "subtract",
    "tan", "tanh", "while", "xor",
})  # fmt: skip
_FLOAT_OF_COMPLEX = {"c64": "f32", "c128": "f64"}


def implied_shape(
    opcode: str,
    operands: Sequence[Shape],
    attributes: Mapping[str, str],
    results: Mapping[str, Shape],
) -> Shape:
    """The shape of an instruction's result.

    Args:
        operands: shapes of the operands.
        attributes: verbatim, by key.
        results: the shape of each computation's root, by the computation's name.

    Raises:
        HloError: the opcode's shape does not follow from its operands, or the operands do not fit it.
    """
    rule = _RULES.get(opcode)
    if rule is None and opcode not in _LIKE_FIRST_OPERAND:
        raise HloError(f"expected a shape before {opcode}; it does not follow from the operands")
    try:
        return rule(operands, attributes, results) if rule is not None else operands[0]
    except (IndexError, KeyError, ValueError):
        raise HloError(
            f"expected a shape before {opcode}; its operands and attributes do not imply one"
        ) from None


_Rule = Callable[[Sequence[Shape], Mapping[str, str], Mapping[str, Shape]], Shape]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"-?\d+", text))


def _compare(operands: Sequence[Shape], *_: object) -> Shape:
    return replace(operands[0], element_type="pred")


def _real(operands: Sequence[Shape], *_: object) -> Shape:
    element_type = operands[0].element_type
    return replace(operands[0], element_type=_FLOAT_OF_COMPLEX.get(element_type, element_type))


def _complex(operands: Sequence[Shape], *_: object) -> Shape:
    return replace(operands[0], element_type={"f32": "c64", "f64": "c128"}[operands[0].element_type])


def _get_tuple_element(operands: Sequence[Shape], attributes: Mapping[str, str], *_: object) -> Shape:
    return operands[0].elements[int(attributes["index"])]


def _call(operands: Sequence[Shape], attributes: Mapping[str, str], results: Mapping[str, Shape]) -> Shape:
    return results[attributes["to_apply"].lstrip("%")]


def _map(operands: Sequence[Shape], attributes: Mapping[str, str], results: Mapping[str, Shape]) -> Shape:
    return replace(operands[0], element_type=_call(operands, attributes, results).element_type)


def _transpose(operands: Sequence[Shape], attributes: Mapping[str, str], *_: object) -> Shape:
    operand, permutation = operands[0], _numbers(attributes["dimensions"])
    place = {old: new for new, old in enumerate(permutation)}
    return replace(
        operand,
        dimensions=tuple(operand.dimensions[old] for old in permutation),
        dynamic=tuple(sorted(place[old] for old in operand.dynamic)),
        layout=Layout(minor_to_major=tuple(place[old] for old in operand.minor_to_major)),
    )


def _dot(operands: Sequence[Shape], attributes: Mapping[str, str], *_: object) -> Shape:
    lhs, rhs = operands[0], operands[1]
    batch = _numbers(attributes.get("lhs_batch_dims", ""))
    used_of_lhs = (*batch, *_numbers(attributes["lhs_contracting_dims"]))
    used_of_rhs = (
        *_numbers(attributes.get("rhs_batch_dims", "")),
        *_numbers(attributes["rhs_contracting_dims"]),
    )
    return array_shape(
        lhs.element_type,
        (
            *(lhs.dimensions[d] for d in batch),
            *(extent for d, extent in enumerate(lhs.dimensions) if d not in used_of_lhs),
            *(extent for d, extent in enumerate(rhs.dimensions) if d not in used_of_rhs),
        ),
    )


def _reduce(operands: Sequence[Shape], attributes: Mapping[str, str], *_: object) -> Shape:
    reduced = _numbers(attributes["dimensions"])
    results = [
        array_shape(
            operand.element_type, tuple(e for d, e in enumerate(operand.dimensions) if d not in reduced)
        )
        for operand in operands[: len(operands) // 2]
    ]
    return results[0] if len(results) == 1 else tuple_shape(*results)


def _concatenate(operands: Sequence[Shape], attributes: Mapping[str, str], *_: object) -> Shape:
    (dimension,) = _numbers(attributes["dimensions"])
    extents = list(operands[0].dimensions)
    extents[dimension] = sum(operand.dimensions[dimension] for operand in operands)
    return array_shape(operands[0].element_type, tuple(extents))


def _pad(operands: Sequence[Shape], attributes: Mapping[str, str], *_: object) -> Shape:
    extents: list[int] = []
    for extent, amounts in zip(operands[0].dimensions, attributes["padding"].split("x"), strict=True):
        low, high, *interior = (int(amount) for amount in amounts.split("_"))
        extents.append(extent + low + high + max(0, extent - 1) * (interior[0] if interior else 0))
    return array_shape(operands[0].element_type, tuple(extents))


_RULES: Mapping[str, _Rule] = {
    "after-all": lambda operands, *_: array_shape("token", ()),
    "call": _call,
    "clamp": lambda operands, *_: operands[1],
    "compare": _compare,
    "complex": _complex,
    "concatenate": _concatenate,
    "dot": _dot,
    "get-dimension-size": lambda operands, *_: array_shape("s32", ()),
    "get-tuple-element": _get_tuple_element,
    "imag": _real,
    "is-finite": _compare,
    "map": _map,
    "pad": _pad,
    "partition-id": lambda operands, *_: array_shape("u32", ()),
    "real": _real,
    "reduce": _reduce,
    "replica-id": lambda operands, *_: array_shape("u32", ()),
    "select": lambda operands, *_: operands[1],
    "sort": lambda operands, *_: operands[0] if len(operands) == 1 else tuple_shape(*operands),
    "transpose": _transpose,
    "tuple": lambda operands, *_: tuple_shape(*operands),
}
