"""Shapes of dots, convolutions, windows and gathers."""

from __future__ import annotations

from collections.abc import Sequence

from kernelcast.errors import HloError
from kernelcast.hlo import attributes
from kernelcast.hlo.attributes import Window, WindowDimension
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import Shape, array_shape, tuple_shape


def window_extent(dimension: WindowDimension, base: int) -> int:
    """The number of positions of a window along one dimension.

    >>> window_extent(WindowDimension(size=3, stride=2, padding_low=1, padding_high=1), 8)
    4
    """
    dilated = (base - 1) * dimension.base_dilation + 1 if base > 0 else 0
    padded = dilated + dimension.padding_low + dimension.padding_high
    window = (dimension.size - 1) * dimension.window_dilation + 1
    return (padded - window) // dimension.stride + 1 if padded >= window else 0


def check_window(window: Window) -> None:
    """Refuses a window that cannot slide.

    Raises:
        HloError: a size, stride or dilation is not positive.
    """
    for dimension in window.dimensions:
        if min(dimension.size, dimension.stride, dimension.base_dilation, dimension.window_dilation) < 1:
            raise HloError(f"window sizes, strides and dilations must be >= 1, got {dimension}")


def dot_shape(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    """Batch dimensions, then what is free of the left, then of the right."""
    lhs, rhs = operands[:2]
    numbers = attributes.dot_numbers(instruction)
    if instruction.attribute("sparsity") is not None:  # a compressed side has another extent
        return instruction.shape
    paired = (
        ("batch", numbers.lhs_batch, numbers.rhs_batch),
        ("contracting", numbers.lhs_contracting, numbers.rhs_contracting),
    )
    for what, left, right in paired:
        if len(left) != len(right):
            raise HloError(f"dot with {len(left)} {what} dimensions on the left, {len(right)} on the right")
    for shape, used in (
        (lhs, (*numbers.lhs_batch, *numbers.lhs_contracting)),
        (rhs, (*numbers.rhs_batch, *numbers.rhs_contracting)),
    ):
        if any(not 0 <= d < shape.rank for d in used) or len(set(used)) != len(used):
            raise HloError(f"dot uses dimensions {list(used)} of {shape.without_layout()}")
    for what, left, right in paired:
        for a, b in zip(left, right, strict=True):
            if lhs.dimensions[a] != rhs.dimensions[b]:
                raise HloError(
                    f"dot pairs {what} extents {lhs.dimensions[a]} and {rhs.dimensions[b]} "
                    f"of {lhs.without_layout()} and {rhs.without_layout()}"
                )
    used_left = (*numbers.lhs_batch, *numbers.lhs_contracting)
    used_right = (*numbers.rhs_batch, *numbers.rhs_contracting)
    return array_shape(
        "",
        (
            *(lhs.dimensions[d] for d in numbers.lhs_batch),
            *(extent for d, extent in enumerate(lhs.dimensions) if d not in used_left),
            *(extent for d, extent in enumerate(rhs.dimensions) if d not in used_right),
        ),
    )


def convolution_shape(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    """Batch, output features, and the positions of the window."""
    base, kernel = operands
    numbers = attributes.convolution_numbers(instruction)
    window = attributes.window(instruction)
    check_window(window)
    spatial = len(numbers.input_spatial)
    if not (base.rank == kernel.rank == instruction.shape.rank == spatial + 2):
        raise HloError(
            f"convolution of {base.without_layout()} with {kernel.without_layout()} over {spatial} dimensions"
        )
    if len(window.dimensions) != spatial:
        raise HloError(f"convolution over {spatial} dimensions with a window of {len(window.dimensions)}")
    groups, batch_groups = (
        attributes.feature_group_count(instruction),
        attributes.batch_group_count(instruction),
    )
    features, kernel_features = (
        base.dimensions[numbers.input_feature],
        kernel.dimensions[numbers.kernel_input_feature],
    )
    if groups < 1 or batch_groups < 1 or features != kernel_features * groups:
        raise HloError(
            f"convolution of {features} features with a kernel of {kernel_features} in {groups} groups"
        )
    dimensions = [0] * base.rank
    dimensions[numbers.output_batch] = base.dimensions[numbers.input_batch] // batch_groups
    dimensions[numbers.output_feature] = kernel.dimensions[numbers.kernel_output_feature]
    for part, at_base, at_kernel, at_output in zip(
        window.dimensions,
        numbers.input_spatial,
        numbers.kernel_spatial,
        numbers.output_spatial,
        strict=True,
    ):
        if kernel.dimensions[at_kernel] != part.size:
            raise HloError(
                f"convolution window of size {part.size} for a kernel extent of "
                f"{kernel.dimensions[at_kernel]}"
            )
        dimensions[at_output] = window_extent(part, base.dimensions[at_base])
    return array_shape("", tuple(dimensions))


def reduce_window_shape(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    """The positions of the window in each dimension."""
    window = attributes.window(instruction)
    check_window(window)
    count = len(operands) // 2
    results: list[Shape] = []
    for operand in operands[:count]:
        # A window without dimensions is that of a scalar, or all ones.
        if window.dimensions and len(window.dimensions) != operand.rank:
            raise HloError(
                f"reduce-window of {operand.without_layout()} with a window of {len(window.dimensions)}"
            )
        pairs = zip(window.dimensions, operand.dimensions, strict=False)
        extents = tuple(window_extent(part, extent) for part, extent in pairs)
        results.append(array_shape("", extents if window.dimensions else operand.dimensions))
    return results[0] if count == 1 else tuple_shape(*results)


def gather_shape(instruction: Instruction, operands: Sequence[Shape]) -> Shape:
    """The batch of indices, with the window's dimensions at ``offset_dims``."""
    operand, indices = operands
    numbers = attributes.gather_numbers(instruction)
    if len(numbers.slice_sizes) != operand.rank or any(
        not 0 <= size <= extent for size, extent in zip(numbers.slice_sizes, operand.dimensions, strict=False)
    ):
        raise HloError(f"gather of slices of {list(numbers.slice_sizes)} from {operand.without_layout()}")
    if not 0 <= numbers.index_vector_dim <= indices.rank:
        raise HloError(f"gather with index_vector_dim={numbers.index_vector_dim} of {indices}")
    batch = [extent for d, extent in enumerate(indices.dimensions) if d != numbers.index_vector_dim]
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [size for d, size in enumerate(numbers.slice_sizes) if d not in dropped]
    rank = len(batch) + len(window)
    if len(window) != len(numbers.offset_dims) or any(not 0 <= d < rank for d in numbers.offset_dims):
        raise HloError(
            f"gather with offset_dims={list(numbers.offset_dims)} for a window of {len(window)} dimensions"
        )
    batch_extents, window_extents = iter(batch), iter(window)
    return array_shape(
        operand.element_type,
        tuple(next(window_extents if d in numbers.offset_dims else batch_extents) for d in range(rank)),
    )
