"""Which dimensions a dot, convolution, gather or scatter treats in which way; read from attribute text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelcast.errors import HloError
from kernelcast.hlo.attribute_text import flag, integer, integers, required
from kernelcast.hlo.program import Instruction

_DIM_LABELS = re.compile(r"([bf\d?]*)_([io\d?]*)->([bf\d?]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DotNumbers:
    """The dimensions of a dot's operands that are paired, in order; all others are free."""

    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionNumbers:
    """The meaning of each dimension of a convolution's input, kernel and output."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherNumbers:
    """How a gather's indices address its operand. Names as in XLA's ``GatherDimensionNumbers``."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...]
    start_indices_batching_dims: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[int, ...]
    indices_are_sorted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterNumbers:
    """How a scatter's indices address its operand. Names as in XLA's ``ScatterDimensionNumbers``."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    index_vector_dim: int
    indices_are_sorted: bool
    unique_indices: bool


def dot_numbers(instruction: Instruction) -> DotNumbers:
    """The paired dimensions of a dot; absent ones are none (an outer product)."""
    return DotNumbers(
        lhs_contracting=integers(instruction, "lhs_contracting_dims", default=()),
        rhs_contracting=integers(instruction, "rhs_contracting_dims", default=()),
        lhs_batch=integers(instruction, "lhs_batch_dims", default=()),
        rhs_batch=integers(instruction, "rhs_batch_dims", default=()),
    )


def convolution_numbers(instruction: Instruction) -> ConvolutionNumbers:
    """The dimensions that ``dim_labels`` names, e.g. ``b01f_01io->b01f``.

    Raises:
        HloError: the attribute is missing, or a label is missing or repeated.
    """
    text = required(instruction, "dim_labels")
    match = _DIM_LABELS.fullmatch(text)
    if match is None:
        raise HloError(
            f"expected dim_labels such as b01f_01io->b01f, got {text!r}", instruction=instruction.name
        )
    source, kernel, result = match.groups()
    return ConvolutionNumbers(
        input_batch=_place(instruction, source, "b"),
        input_feature=_place(instruction, source, "f"),
        input_spatial=_spatial(instruction, source, source),
        kernel_input_feature=_place(instruction, kernel, "i"),
        kernel_output_feature=_place(instruction, kernel, "o"),
        kernel_spatial=_spatial(instruction, kernel, source),
        output_batch=_place(instruction, result, "b"),
        output_feature=_place(instruction, result, "f"),
        output_spatial=_spatial(instruction, result, source),
    )


def _place(instruction: Instruction, labels: str, label: str) -> int:
    if labels.count(label) != 1:
        raise HloError(
            f"expected one label {label} in dim_labels, got {labels!r}", instruction=instruction.name
        )
    return labels.index(label)


def _spatial(instruction: Instruction, labels: str, source: str) -> tuple[int, ...]:
    """The places of the spatial labels 0, 1, …, as many as the input has."""
    count = sum(label.isdigit() for label in source)
    return tuple(_place(instruction, labels, str(number)) for number in range(count))


def gather_numbers(instruction: Instruction) -> GatherNumbers:
    """The dimension numbers of a gather.

    Raises:
        HloError: ``index_vector_dim`` or ``slice_sizes`` is missing.
    """
    return GatherNumbers(
        offset_dims=integers(instruction, "offset_dims", default=()),
        collapsed_slice_dims=integers(instruction, "collapsed_slice_dims", default=()),
        start_index_map=integers(instruction, "start_index_map", default=()),
        operand_batching_dims=integers(instruction, "operand_batching_dims", default=()),
        start_indices_batching_dims=integers(instruction, "start_indices_batching_dims", default=()),
        index_vector_dim=integer(instruction, "index_vector_dim"),
        slice_sizes=integers(instruction, "slice_sizes"),
        indices_are_sorted=flag(instruction, "indices_are_sorted"),
    )


def scatter_numbers(instruction: Instruction) -> ScatterNumbers:
    """The dimension numbers of a scatter.

    Raises:
        HloError: ``index_vector_dim`` is missing.
    """
    return ScatterNumbers(
        update_window_dims=integers(instruction, "update_window_dims", default=()),
        inserted_window_dims=integers(instruction, "inserted_window_dims", default=()),
        scatter_dims_to_operand_dims=integers(instruction, "scatter_dims_to_operand_dims", default=()),
        input_batching_dims=integers(instruction, "input_batching_dims", default=()),
        scatter_indices_batching_dims=integers(instruction, "scatter_indices_batching_dims", default=()),
        index_vector_dim=integer(instruction, "index_vector_dim"),
        indices_are_sorted=flag(instruction, "indices_are_sorted"),
        unique_indices=flag(instruction, "unique_indices"),
    )
