"""Arithmetic that one instruction does: operations and transcendentals, closed form by opcode."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kernelcast.hlo import attributes
from kernelcast.hlo.attributes import WindowDimension
from kernelcast.hlo.opcodes import ELEMENTWISE, TRANSCENDENTAL
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import Shape

# Libraries' matrix products: the result's rows times the shared dimension, whatever the layout.
_MATRIX_PRODUCT_TARGETS = ("__onednn$matmul", "__cublas$gemm", "__cublas$lt$matmul")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Arithmetic of one run.

    Attributes:
        operations: additions, multiplications, comparisons … of any element type, one for each element
            (a multiply-add is two); XLA's ``flops``.
        transcendentals: elements of exponentials, roots, sines …, counted apart.
    """

    operations: float = 0.0
    transcendentals: float = 0.0

    def times(self, factor: float) -> Work:
        return Work(operations=self.operations * factor, transcendentals=self.transcendentals * factor)


_NOTHING = Work()
# Opcodes that move, make or exchange data.
_NO_ARITHMETIC = frozenset({
    "all-gather", "all-gather-done", "all-gather-start", "all-reduce-done", "all-to-all", "bitcast",
    "bitcast-convert", "broadcast", "collective-broadcast", "collective-permute", "collective-permute-done",
    "collective-permute-start", "concatenate", "copy", "copy-done", "copy-start", "dynamic-reshape",
    "dynamic-slice", "dynamic-update-slice", "gather", "get-dimension-size", "infeed", "iota", "outfeed",
    "pad", "partition-id", "ragged-all-to-all", "recv", "recv-done", "replica-id", "reshape", "reverse",
    "rng-get-and-update-state", "send", "send-done", "set-dimension-size", "slice", "transpose",
})  # fmt: skip


def work(program: Program, computation: Computation, instruction: Instruction) -> Work | None:
    """The arithmetic of one instruction that is computed in full; None where it is not known.

    Unknown are custom calls other than matrix products, and opcodes without an entry here. Fusions, loops and
    calls are sums over their computations and not for this function.
    """
    opcode = instruction.opcode
    if opcode in _NO_ARITHMETIC:
        return _NOTHING
    if opcode in ELEMENTWISE and opcode != "map":
        count = float(instruction.shape.element_count)
        return Work(transcendentals=count) if opcode in TRANSCENDENTAL else Work(operations=count)
    rule = _RULES.get(opcode)
    return rule(program, computation, instruction) if rule is not None else None


def _applied(program: Program, instruction: Instruction, key: str | None = None) -> Work:
    """One application of a scalar computation: a reducer, a comparator.

    Args:
        key: the attribute that names it, where the instruction calls several.
    """
    total = _NOTHING
    name = attributes.required(instruction, key).lstrip("%") if key else instruction.called[0]
    scalar = program[name]
    for inner in scalar:
        if inner.opcode in ("parameter", "constant", "tuple", "get-tuple-element"):
            continue
        if inner.opcode in ("call", "fusion"):
            done = _applied(program, inner)
        else:
            done = work(program, scalar, inner) or _NOTHING
        total = Work(
            operations=total.operations + done.operations,
            transcendentals=total.transcendentals + done.transcendentals,
        )
    return total


def _map(program: Program, computation: Computation, instruction: Instruction) -> Work:
    return _applied(program, instruction).times(instruction.shape.element_count)


def _dot(program: Program, computation: Computation, dot: Instruction) -> Work:
    lhs = computation[dot.operands[0]].shape
    depth = math.prod(lhs.dimensions[d] for d in attributes.dot_numbers(dot).lhs_contracting)
    return Work(operations=2.0 * dot.shape.element_count * depth)


def _convolution(program: Program, computation: Computation, convolution: Instruction) -> Work:
    """2 · output batch · output features · input features of a group · pairs (output, window) in the base."""
    numbers = attributes.convolution_numbers(convolution)
    base, kernel = (computation[operand].shape for operand in convolution.operands[:2])
    pairs = 1
    window = attributes.window(convolution).dimensions
    for dimension, at_base, at_output in zip(
        window, numbers.input_spatial, numbers.output_spatial, strict=True
    ):
        pairs *= valid_positions(dimension, base.dimensions[at_base], convolution.shape.dimensions[at_output])
    batch, features = (
        convolution.shape.dimensions[d] for d in (numbers.output_batch, numbers.output_feature)
    )
    return Work(operations=2.0 * batch * features * kernel.dimensions[numbers.kernel_input_feature] * pairs)


def _reduce(program: Program, computation: Computation, reduce: Instruction) -> Work:
    """One application for each element but the first of every output."""
    reduced = computation[reduce.operands[0]].shape.element_count
    outputs = _first_array(reduce.shape).element_count
    return _applied(program, reduce).times(max(0, reduced - outputs))


def _reduce_window(program: Program, computation: Computation, reduce: Instruction) -> Work:
    """As a reduce; elements of a window that lie in the padding or between the base's are not combined."""
    base = computation[reduce.operands[0]].shape
    output = _first_array(reduce.shape)
    pairs = math.prod(
        valid_positions(dimension, extent, positions)
        for dimension, extent, positions in zip(
            attributes.window(reduce).dimensions, base.dimensions, output.dimensions, strict=True
        )
    )
    return _applied(program, reduce).times(max(0, pairs - output.element_count))


def _select_and_scatter(program: Program, computation: Computation, instruction: Instruction) -> Work:
    sources = computation[instruction.operands[1]].shape.element_count
    window = attributes.window(instruction).element_count
    select, scatter = (_applied(program, instruction, key) for key in ("select", "scatter"))
    return Work(
        operations=sources * (select.operations * (window - 1) + scatter.operations),
        transcendentals=sources * (select.transcendentals * (window - 1) + scatter.transcendentals),
    )


def _scatter(program: Program, computation: Computation, scatter: Instruction) -> Work:
    updates = computation[scatter.operands[-1]].shape.element_count
    return _applied(program, scatter).times(updates)


def _sort(program: Program, computation: Computation, sort: Instruction) -> Work:
    """n · log2 n runs of the comparator for each row of n (XLA counts one operation for each)."""
    shape = computation[sort.operands[0]].shape
    extent = shape.dimensions[attributes.integers(sort, "dimensions")[0]]
    comparisons = shape.element_count * math.ceil(math.log2(extent)) if extent > 1 else 0
    return _applied(program, sort).times(comparisons)


def _top_k(program: Program, computation: Computation, instruction: Instruction) -> Work:
    values = computation[instruction.operands[0]].shape
    kept = max(2, attributes.integer(instruction, "k", default=2))
    return Work(operations=values.element_count * math.ceil(math.log2(kept)))


def _fft(program: Program, computation: Computation, fft: Instruction) -> Work:
    """5 · n · log2 n for each complex transform, half of it where one side is real."""
    lengths = attributes.integers(fft, "fft_length")
    points = math.prod(lengths)
    shapes = (computation[fft.operands[0]].shape, fft.shape)
    complex_only = all(shape.element_type in ("c64", "c128") for shape in shapes)
    transforms = max(math.prod(shape.dimensions[: shape.rank - len(lengths)]) for shape in shapes)
    steps = math.log2(points) if points > 1 else 0.0
    return Work(operations=transforms * (5.0 if complex_only else 2.5) * points * steps)


def _cholesky(program: Program, computation: Computation, cholesky: Instruction) -> Work:
    return Work(operations=cholesky.shape.element_count * cholesky.shape.dimensions[-1] / 3)


def _triangular_solve(program: Program, computation: Computation, solve: Instruction) -> Work:
    matrix, right = (computation[operand].shape for operand in solve.operands)
    return Work(operations=float(right.element_count * matrix.dimensions[-1]))


def _random(program: Program, computation: Computation, random: Instruction) -> Work:
    """Counted as one transcendental for each element, like XLA does."""
    leaves = list(random.shape.leaves())
    return Work(transcendentals=float(leaves[-1].element_count))


def _collective_reduction(program: Program, computation: Computation, instruction: Instruction) -> Work:
    elements = sum(computation[operand].shape.element_count for operand in instruction.operands)
    return _applied(program, instruction).times(elements)


def _custom_call(program: Program, computation: Computation, call: Instruction) -> Work | None:
    if attributes.custom_call_target(call) not in _MATRIX_PRODUCT_TARGETS:
        return None
    left, result = computation[call.operands[0]].shape, _first_array(call.shape)
    rows = math.prod(result.dimensions[:-1])
    return Work(operations=2.0 * result.element_count * left.element_count / rows) if rows else None


def _first_array(shape: Shape) -> Shape:
    return next(shape.leaves())


_Rule = Callable[[Program, Computation, Instruction], Work | None]
_RULES: Mapping[str, _Rule] = {
    "all-reduce": _collective_reduction,
    "all-reduce-start": _collective_reduction,
    "cholesky": _cholesky,
    "convolution": _convolution,
    "custom-call": _custom_call,
    "dot": _dot,
    "fft": _fft,
    "map": _map,
    "reduce": _reduce,
    "reduce-scatter": _collective_reduction,
    "reduce-scatter-start": _collective_reduction,
    "reduce-window": _reduce_window,
    "rng": _random,
    "rng-bit-generator": _random,
    "scatter": _scatter,
    "select-and-scatter": _select_and_scatter,
    "sort": _sort,
    "topk": _top_k,
    "triangular-solve": _triangular_solve,
}


@lru_cache(maxsize=4096)
def valid_positions(dimension: WindowDimension, base: int, positions: int) -> int:
    """Pairs (position of the window, element of the window) that meet an element of the base.

    What falls into the padding, or between the elements of a dilated base, is not counted.

    >>> valid_positions(WindowDimension(size=3, padding_low=1, padding_high=1), 8, 8)
    22
    """
    dilated = (base - 1) * dimension.base_dilation + 1 if base > 0 else 0
    starts = np.arange(positions, dtype=np.int64) * dimension.stride - dimension.padding_low
    count = 0
    for element in range(dimension.size):
        at = starts + element * dimension.window_dilation
        count += int(np.count_nonzero((at >= 0) & (at < dilated) & (at % dimension.base_dilation == 0)))
    return count
