"""Which values each parameter of a kernel should hold when the kernel is timed alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.core.kernel import InputPolicy, InputSpec
from kernelcast.hlo import attributes
from kernelcast.hlo.program import Instruction, Program
from kernelcast.hlo.shape import Shape

# Operations through which an index stays an index: wrap-around of negative indices (compare, add, select),
# clamping, change of type and shape.
_CARRIES_INDICES = frozenset({
    "add", "subtract", "select", "clamp", "minimum", "maximum", "convert", "copy", "bitcast", "reshape",
    "broadcast", "transpose", "slice", "concatenate", "reverse", "pad", "multiply", "and", "remainder",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _IndexUse:
    bound: int
    is_sorted: bool = False
    is_unique: bool = False


def input_specs(program: Program) -> tuple[InputSpec, ...]:
    """One specification per parameter of the entry, from what the kernel does with it.

    All-zero indices would make a gather hit one cache line, and indices out of range would all be clamped to
    the last row; so integers that end up as an index get the bound that keeps the whole slice inside.

    Args:
        program: a kernel's closed sub-program.
    """
    reader = _UseReader(program)
    return tuple(
        _spec(parameter.shape, reader.index_uses(parameter.name))
        for parameter in program.entry_computation.parameters
    )


def _spec(shape: Shape, uses: tuple[_IndexUse, ...]) -> InputSpec:
    element_type = shape.element_type
    if element_type == "pred":
        return InputSpec(policy=InputPolicy.PREDICATE)
    if not _is_integer(shape):
        return InputSpec(policy=InputPolicy.FLOAT)
    if uses:
        bound = max(1, min(use.bound for use in uses))
        if any(use.is_unique for use in uses) and shape.element_count <= bound:
            return InputSpec(policy=InputPolicy.PERMUTATION, bound=bound)
        policy = InputPolicy.SORTED if any(use.is_sorted for use in uses) else InputPolicy.INDEX
        return InputSpec(policy=policy, bound=bound)
    return InputSpec(policy=InputPolicy.COUNTER if shape.rank == 0 else InputPolicy.INTEGER)


def _is_integer(shape: Shape) -> bool:
    return shape.is_array and shape.element_type[0] in "su"


class _UseReader:
    """Finds where a value of a kernel ends up as an index, through called fusions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._uses: dict[str, dict[str, list[tuple[Instruction, int]]]] = {}

    def index_uses(self, parameter: str) -> tuple[_IndexUse, ...]:
        """Uses of an entry parameter as indices, directly or after index arithmetic."""
        found: list[_IndexUse] = []
        seen: set[tuple[str, str]] = set()
        pending = [(self._program.entry, parameter)]
        while pending:
            computation, value = pending.pop()
            if (computation, value) in seen:
                continue
            seen.add((computation, value))
            for user, position in self._users(computation)[value]:
                if user.opcode == "fusion":
                    callee = self._program[user.called[0]]
                    pending.append((callee.name, callee.parameters[position].name))
                    continue
                use = self._index_use(computation, user, position)
                if use is not None:
                    found.append(use)
                elif self._carries(user, position):
                    pending.append((computation, user.name))
        return tuple(found)

    def _users(self, computation: str) -> dict[str, list[tuple[Instruction, int]]]:
        if computation not in self._uses:
            uses: dict[str, list[tuple[Instruction, int]]] = defaultdict(list)
            for instruction in self._program[computation]:
                for position, operand in enumerate(instruction.operands):
                    uses[operand].append((instruction, position))
            self._uses[computation] = uses
        return self._uses[computation]

    def _carries(self, user: Instruction, position: int) -> bool:
        if not _is_integer(user.shape) or (user.opcode == "select" and position == 0):
            return False
        reads_values = user.opcode in ("dynamic-slice", "gather") and position == 0
        return reads_values or user.opcode in _CARRIES_INDICES

    def _index_use(self, computation: str, user: Instruction, position: int) -> _IndexUse | None:
        """How ``user`` indexes with its operand at ``position``; None where that operand is not an index."""
        shapes = [self._program[computation][operand].shape for operand in user.operands]
        if user.opcode == "dynamic-slice" and position >= 1:
            axis = position - 1
            return _IndexUse(bound=shapes[0].dimensions[axis] - user.shape.dimensions[axis] + 1)
        if user.opcode == "dynamic-update-slice" and position >= 2:
            axis = position - 2
            return _IndexUse(bound=shapes[0].dimensions[axis] - shapes[1].dimensions[axis] + 1)
        if user.opcode == "gather" and position == 1:
            numbers = attributes.gather_numbers(user)
            return _IndexUse(
                bound=_bound(shapes[0], numbers.slice_sizes, numbers.start_index_map),
                is_sorted=numbers.indices_are_sorted,
            )
        if user.opcode == "scatter" and position == len(shapes) // 2:
            numbers = attributes.scatter_numbers(user)
            windows = _scatter_windows(numbers, shapes[0], shapes[-1])
            return _IndexUse(
                bound=_bound(shapes[0], windows, numbers.scatter_dims_to_operand_dims),
                is_sorted=numbers.indices_are_sorted,
                is_unique=numbers.unique_indices,
            )
        return None


def _bound(operand: Shape, windows: Sequence[int], axes: Sequence[int]) -> int:
    """Below it an index keeps the whole window inside the operand, whichever of the axes it is for."""
    return min((operand.dimensions[axis] - windows[axis] + 1 for axis in axes), default=1)


def _scatter_windows(numbers: attributes.ScatterNumbers, operand: Shape, update: Shape) -> list[int]:
    """Extent of the updated window in each dimension of the operand; 1 where the update has no dimension."""
    absent = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    extents = iter(update.dimensions[axis] for axis in numbers.update_window_dims)
    return [1 if axis in absent else next(extents, 1) for axis in range(operand.rank)]
