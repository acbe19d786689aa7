"""Shape inference: the shape that an instruction's operands and attributes imply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kernelcast.errors import HloError
from kernelcast.hlo import attributes
from kernelcast.hlo.infer_products import convolution_shape, dot_shape, gather_shape, reduce_window_shape
from kernelcast.hlo.opcodes import BINARY, ELEMENTWISE, UNARY
from kernelcast.hlo.program import Computation, Instruction
from kernelcast.hlo.shape import Shape, array_shape, tuple_shape

_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_REAL_OF = {"c64": "f32", "c128": "f64"}


def infer_shape(computation: Computation, instruction: Instruction) -> Shape | None:
    """The implied shape, without layouts; None for opcodes whose shape the text alone decides.

    The operand count and the presence of called computations are taken for granted. Element type ``""``
    stands for any. Dynamic dimensions count with their bound; with unbounded ones nothing is inferred.

    Raises:
        HloError: the operands or attributes do not fit each other.

    >>> from kernelcast.hlo.text import parse
    >>> entry = parse('''HloModule m
    ... ENTRY e { x = f32[4,8] parameter(0)  ROOT y = f32[8,4] transpose(x), dimensions={1,0} }''')
    >>> str(infer_shape(entry.entry_computation, entry.entry_computation["y"]))
    'f32[8,4]'
    """
    return shape_from_operands(instruction, [computation[operand].shape for operand in instruction.operands])


def shape_from_operands(instruction: Instruction, operands: Sequence[Shape]) -> Shape | None:
    """The same for operands of given shapes, whether or not they are in a computation.

    Raises:
        HloError: the operands or attributes do not fit each other.
    """
    if any(-1 in leaf.dimensions for shape in (*operands, instruction.shape) for leaf in shape.leaves()):
        return None
    rule = _RULES.get(instruction.opcode)
    if rule is None and instruction.opcode in ELEMENTWISE:
        rule = _elementwise
    return rule(instruction, operands) if rule is not None else None


def disagreement(implied: Shape, written: Shape) -> str | None:
    """What is wrong with a written shape, or None; layouts, float precision and unbounded extents are free.

    >>> disagreement(array_shape("f32", (4,)), array_shape("bf16", (4,)))
    >>> disagreement(array_shape("f32", (4,)), array_shape("f32", (5,)))
    'expected f32[4], got f32[5]'
    """
    if _agree(implied, written):
        return None
    return f"expected {_plain(implied)}, got {_plain(written)}"


def _agree(implied: Shape, written: Shape) -> bool:
    if implied.is_tuple or written.is_tuple:
        return (
            implied.is_tuple == written.is_tuple
            and len(implied.elements) == len(written.elements)
            and all(_agree(a, b) for a, b in zip(implied.elements, written.elements, strict=True))
        )
    return (
        implied.rank == written.rank
        and all(-1 in (a, b) or a == b for a, b in zip(implied.dimensions, written.dimensions, strict=True))
        and same_type(implied.element_type, written.element_type)
    )


def same_type(a: str, b: str) -> bool:
    """Whether two element types may meet: equal, or floats of different precision."""
    return a == b or not a or not b or (_is_float(a) and _is_float(b))


def _is_float(element_type: str) -> bool:
    return element_type in _FLOATS or element_type.startswith("f")


def _plain(shape: Shape) -> str:
    return ("" if shape.element_type else "any") + str(shape.without_layout())


def _elementwise(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    first = operands[0]
    for other in operands[1:]:
        if other.dimensions != first.dimensions:
            raise HloError(
                f"{instruction.opcode} of operands with different dimensions: "
                f"{_plain(first)} and {_plain(other)}"
            )
        if instruction.opcode in BINARY and not same_type(first.element_type, other.element_type):
            raise HloError(
                f"{instruction.opcode} of different element types: {_plain(first)} and {_plain(other)}"
            )
    element_type = first.element_type
    match instruction.opcode:
        case "compare" | "is-finite":
            element_type = "pred"
        case "real" | "imag" | "abs":
            element_type = _REAL_OF.get(element_type, element_type)
        case "complex":
            element_type = {"f32": "c64", "f64": "c128"}.get(element_type, "")
        case "convert" | "stochastic-convert" | "map":
            element_type = ""
        case _:
            pass
    return array_shape(element_type, first.dimensions)


def _select(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    predicate, on_true, on_false = operands
    if not _agree(on_true, on_false):
        raise HloError(f"select between different shapes: {_plain(on_true)} and {_plain(on_false)}")
    if predicate.element_type != "pred" or (
        predicate.rank and on_true.is_array and predicate.dimensions != on_true.dimensions
    ):
        raise HloError(
            f"select needs a predicate of the shape of its values or a scalar, got {_plain(predicate)} "
            f"for {_plain(on_true)}"
        )
    return on_true


def _clamp(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    low, value, high = operands
    for bound in (low, high):
        if bound.rank and bound.dimensions != value.dimensions:
            raise HloError(
                f"clamp needs bounds that are scalars or of the value's shape {_plain(value)}, "
                f"got {_plain(bound)}"
            )
    return value


def _like_first(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    return operands[0]


def _like_operands(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    return operands[0] if len(operands) == 1 else tuple_shape(*operands)


def _like_updated(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    return _like_operands(instruction, operands[: (len(operands) - 1) // 2])


def _tuple(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    return tuple_shape(*operands)


def _element(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    index, whole = attributes.tuple_index(instruction), operands[0]
    if not whole.is_tuple or index >= len(whole.elements):
        raise HloError(f"index {index} is out of range of {_plain(whole)}")
    return whole.elements[index]


def _broadcast(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    operand, result = operands[0], instruction.shape
    places = attributes.integers(instruction, "dimensions", default=())
    if len(places) != operand.rank:
        raise HloError(f"broadcast of {_plain(operand)} needs {operand.rank} dimensions, got {len(places)}")
    for extent, place in zip(operand.dimensions, places, strict=True):
        if not 0 <= place < result.rank or result.dimensions[place] != extent:
            raise HloError(f"broadcast puts an extent of {extent} at dimension {place} of {_plain(result)}")
    return array_shape(operand.element_type, result.dimensions)


def _reshape(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    before, after = operands[0].element_count, instruction.shape.element_count
    if before != after:
        raise HloError(f"{instruction.opcode} from {before} to {after} elements")
    if instruction.opcode == "dynamic-reshape" and len(operands) - 1 != instruction.shape.rank:
        raise HloError(
            f"dynamic-reshape to {_plain(instruction.shape)} needs {instruction.shape.rank} sizes, "
            f"got {len(operands) - 1}"
        )
    return array_shape(operands[0].element_type, instruction.shape.dimensions)


def _transpose(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    order = attributes.integers(instruction, "dimensions")
    if sorted(order) != list(range(operands[0].rank)):
        raise HloError(f"transpose of {_plain(operands[0])} needs a permutation, got {list(order)}")
    return array_shape(operands[0].element_type, tuple(operands[0].dimensions[d] for d in order))


def _slice(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    ranges = attributes.slice_ranges(instruction)
    if len(ranges) != operands[0].rank:
        raise HloError(f"slice of {_plain(operands[0])} with {len(ranges)} ranges")
    for part, extent in zip(ranges, operands[0].dimensions, strict=True):
        if not (part.start <= part.limit <= extent and part.stride > 0):
            raise HloError(f"slice [{part.start}:{part.limit}:{part.stride}] of an extent of {extent}")
    return array_shape(operands[0].element_type, tuple(-((r.start - r.limit) // r.stride) for r in ranges))


def _dynamic_slice(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    sizes = attributes.integers(instruction, "dynamic_slice_sizes")
    _check_window(instruction, operands[0], sizes)
    _check_starts(instruction, operands[0], operands[1:])
    return array_shape(operands[0].element_type, sizes)


def _dynamic_update_slice(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    _check_window(instruction, operands[0], operands[1].dimensions)
    _check_starts(instruction, operands[0], operands[2:])
    return operands[0]


def _check_window(instruction: Instruction, whole: Shape, sizes: Sequence[int]) -> None:
    fits = len(sizes) == whole.rank and all(
        0 <= size <= extent for size, extent in zip(sizes, whole.dimensions, strict=True)
    )
    if not fits:
        raise HloError(f"{instruction.opcode} of a window of {list(sizes)} in {_plain(whole)}")


def _check_starts(instruction: Instruction, whole: Shape, starts: Sequence[Shape]) -> None:
    # The older form takes one vector of indices.
    vector = len(starts) == 1 and starts[0].dimensions == (whole.rank,)
    scalars = len(starts) == whole.rank and all(start.rank == 0 for start in starts)
    if not (vector or scalars):
        raise HloError(
            f"{instruction.opcode} in {_plain(whole)} needs {whole.rank} scalar indices, got {len(starts)}"
        )


def _one_dimension(instruction: Instruction) -> int:
    places = attributes.integers(instruction, "dimensions")
    if len(places) != 1:
        raise HloError(f"{instruction.opcode} needs one dimension, got {list(places)}")
    return places[0]


def _concatenate(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    along = _one_dimension(instruction)
    first = operands[0]
    if not 0 <= along < first.rank:
        raise HloError(f"concatenate along dimension {along} of {_plain(first)}")
    for other in operands[1:]:
        rest = [(*s.dimensions[:along], *s.dimensions[along + 1 :]) for s in (first, other)]
        if other.rank != first.rank or rest[0] != rest[1]:
            raise HloError(f"concatenate of {_plain(first)} and {_plain(other)} along dimension {along}")
    extent = sum(shape.dimensions[along] for shape in operands)
    return array_shape(
        first.element_type, (*first.dimensions[:along], extent, *first.dimensions[along + 1 :])
    )


def _pad(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    paddings = attributes.padding_config(instruction)
    if len(paddings) != operands[0].rank:
        raise HloError(f"pad of {_plain(operands[0])} with {len(paddings)} dimensions of padding")
    if operands[1].rank or any(p.interior < 0 for p in paddings):
        raise HloError("pad needs a scalar value and interior padding >= 0")
    dimensions = tuple(
        extent + p.low + p.high + max(0, extent - 1) * p.interior
        for p, extent in zip(paddings, operands[0].dimensions, strict=True)
    )
    return array_shape(operands[0].element_type, tuple(max(0, d) for d in dimensions))


def _reduce(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    reduced = attributes.integers(instruction, "dimensions", default=())
    count = len(operands) // 2
    results: list[Shape] = []
    for operand in operands[:count]:
        if operand.dimensions != operands[0].dimensions:
            raise HloError(f"reduce of {_plain(operands[0])} beside {_plain(operand)}")
        if any(not 0 <= d < operand.rank for d in reduced) or len(set(reduced)) != len(reduced):
            raise HloError(f"reduce of {_plain(operand)} over dimensions {list(reduced)}")
        kept = tuple(extent for d, extent in enumerate(operand.dimensions) if d not in reduced)
        results.append(array_shape("", kept))
    return results[0] if count == 1 else tuple_shape(*results)


def _iota(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    along = attributes.integer(instruction, "iota_dimension")
    if not 0 <= along < instruction.shape.rank:
        raise HloError(f"iota along dimension {along} of {_plain(instruction.shape)}")
    return instruction.shape


def _counter(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    return array_shape("u32", ())


def _token(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    return Shape(element_type="token")


def _reversed(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    places = attributes.integers(instruction, "dimensions")
    if any(not 0 <= d < operands[0].rank for d in places) or len(set(places)) != len(places):
        raise HloError(f"reverse of {_plain(operands[0])} along dimensions {list(places)}")
    return operands[0]


def _sort(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    along = attributes.integers(instruction, "dimensions", default=(operands[0].rank - 1,))
    if len(along) != 1 or not 0 <= along[0] < max(1, operands[0].rank):
        raise HloError(f"sort of {_plain(operands[0])} along dimensions {list(along)}")
    for operand in operands:
        if operand.dimensions != operands[0].dimensions:
            raise HloError(f"sort of {_plain(operands[0])} beside {_plain(operand)}")
    return _like_operands(instruction, operands)


def _like_second(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    return operands[1]


def _custom_dimensions(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    places = attributes.integers(instruction, "dimensions")
    rank = max((shape.rank for shape in operands), default=0)
    if any(not 0 <= d < max(1, rank) for d in places):
        raise HloError(f"{instruction.opcode} along dimensions {list(places)} of operands of rank {rank}")
    return instruction.shape


def _dimension_size(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    place = _one_dimension(instruction)
    if not 0 <= place < operands[0].rank:
        raise HloError(f"{instruction.opcode} of dimension {place} of {_plain(operands[0])}")
    return array_shape("s32", ()) if instruction.opcode == "get-dimension-size" else operands[0]


def _random_bits(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    shape = instruction.shape
    if shape.is_tuple and (len(shape.elements) != 2 or not _agree(operands[0], shape.elements[0])):
        raise HloError(
            f"rng-bit-generator returns (state, bits) or bits; expected the state {_plain(operands[0])}, "
            f"got {_plain(shape)}"
        )
    return shape


_Rule = Callable[[Instruction, Sequence[Shape]], Shape]
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(UNARY - {"stochastic-convert"}, _elementwise),
    "after-all": _token,
    "all-gather": _custom_dimensions,
    "broadcast": _broadcast,
    "cholesky": _like_first,
    "copy": _like_first,
    "clamp": _clamp,
    "concatenate": _concatenate,
    "convolution": convolution_shape,
    "dot": dot_shape,
    "dynamic-reshape": _reshape,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": gather_shape,
    "get-dimension-size": _dimension_size,
    "get-tuple-element": _element,
    "iota": _iota,
    "opt-barrier": _like_first,
    "pad": _pad,
    "partition-id": _counter,
    "reduce": _reduce,
    "reduce-window": reduce_window_shape,
    "replica-id": _counter,
    "reshape": _reshape,
    "reverse": _reversed,
    "rng-bit-generator": _random_bits,
    "scan": _custom_dimensions,
    "scatter": _like_updated,
    "select": _select,
    "select-and-scatter": _like_first,
    "set-dimension-size": _dimension_size,
    "slice": _slice,
    "sort": _sort,
    "transpose": _transpose,
    "triangular-solve": _like_second,
    "tuple": _tuple,
}
