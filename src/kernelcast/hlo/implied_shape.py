"""The shape that an instruction written without one has: XLA's parser infers it, so we do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelcast.errors import HloError
from kernelcast.hlo.attributes import integers
from kernelcast.hlo.infer import shape_from_operands
from kernelcast.hlo.opcodes import ELEMENTWISE
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import Layout, Shape, tuple_shape

_FIRST_OPERAND = frozenset({"add-dependency", "domain", "while"})
# The result has the first operand's layout. A convert's type is in its shape only.
_LAID_OUT_LIKE_FIRST = ELEMENTWISE - {"clamp", "convert", "select", "stochastic-convert"}
_INFERRED = _LAID_OUT_LIKE_FIRST | {
    "after-all", "cholesky", "clamp", "concatenate", "dot", "get-dimension-size", "get-tuple-element",
    "opt-barrier", "pad", "partition-id", "reduce", "replica-id", "reverse", "select", "sort", "transpose",
    "tuple",
}  # fmt: skip


def implied_shape(draft: Instruction, operands: Sequence[Shape], results: Mapping[str, Shape]) -> Shape:
    """The shape of an instruction's result, with the layout that XLA's parser gives it.

    Args:
        draft: the instruction, its own shape being of no account.
        operands: shapes of the operands.
        results: the shape of each computation's root, by the computation's name.

    Raises:
        HloError: the opcode's shape does not follow from its operands, or the operands do not fit it.
    """
    opcode = draft.opcode
    shape: Shape | None = None
    try:
        if opcode == "call":
            shape = results[draft.called[0]]
        elif opcode in _FIRST_OPERAND:
            shape = operands[0]
        elif opcode in _INFERRED:
            shape = shape_from_operands(draft, operands)
            shape = _completed(draft, shape, operands, results) if shape is not None else None
    except (IndexError, KeyError, ValueError):
        shape = None  # operands or called computations are missing
    if shape is None or not shape.element_type:
        raise HloError(f"expected a shape before {opcode}; it does not follow from the operands")
    return shape


def _completed(
    draft: Instruction, shape: Shape, operands: Sequence[Shape], results: Mapping[str, Shape]
) -> Shape:
    """The inferred shape with layout, and with the element types that verification leaves open."""
    match draft.opcode:
        case "transpose":
            return _transposed(shape, operands[0], integers(draft, "dimensions"))
        case "dot":
            return replace(shape, element_type=operands[0].element_type)
        case "reduce":
            reduced = shape.elements or (shape,)
            typed = [
                replace(result, element_type=operand.element_type)
                for result, operand in zip(reduced, operands, strict=False)
            ]
            return tuple_shape(*typed) if shape.is_tuple else typed[0]
        case "map":
            return replace(shape, element_type=results[draft.called[0]].element_type)
        case "select" if operands[0].rank:
            return replace(shape, layout=operands[0].layout)
        case opcode if opcode in _LAID_OUT_LIKE_FIRST:
            return replace(shape, layout=operands[0].layout, dynamic=operands[0].dynamic)
        case _:
            return shape


def _transposed(shape: Shape, operand: Shape, order: tuple[int, ...]) -> Shape:
    """The layout that makes the transpose a bitcast."""
    place = {old: new for new, old in enumerate(order)}
    return replace(
        shape,
        dynamic=tuple(sorted(place[old] for old in operand.dynamic)),
        layout=Layout(minor_to_major=tuple(place[old] for old in operand.minor_to_major)),
    )
