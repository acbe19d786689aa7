"""Order of instructions: operands before their users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelcast.errors import HloError
from kernelcast.hlo.program import Instruction


def dependency_order(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The instructions with operands and control predecessors before their users, otherwise in their order.

    Raises:
        HloError: an operand is not among them, or depends on its own user; names the user.
    """
    by_name = {instruction.name: instruction for instruction in instructions}
    ordered: list[Instruction] = []
    placed: dict[str, bool] = {}  # False while what it waits for is being placed: meeting it again is a cycle
    stack: list[tuple[Instruction, Iterator[str]]] = []
    for first in instructions:
        if first.name in placed:
            continue
        placed[first.name] = False
        stack.append((first, _before(first)))
        while stack:
            instruction, waiting = stack[-1]
            name = next((name for name in waiting if not placed.get(name)), None)
            if name is None:
                placed[instruction.name] = True
                ordered.append(instruction)
                stack.pop()
            elif name not in by_name:
                raise HloError(f"operand %{name} is not defined", instruction=instruction.name)
            elif name in placed:
                raise HloError(f"operand %{name} depends on its own user", instruction=instruction.name)
            else:
                placed[name] = False
                stack.append((by_name[name], _before(by_name[name])))
    return tuple(ordered)


def _before(instruction: Instruction) -> Iterator[str]:
    return iter((*instruction.operands, *instruction.control_predecessors))
