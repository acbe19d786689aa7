"""A kernel as one flat graph: nested fusions inlined, parameters as nodes, outputs and aliases marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.core.kernel import Kernel, Kind
from kernelcast.hlo.attributes import tuple_index
from kernelcast.hlo.program import Computation, Instruction, Program

# Operand that holds what an in-place operation writes.
_UPDATES = {"dynamic-update-slice": 1, "scatter": -1}
# What an instruction name stands for while flattening: a node, or the nodes of a tuple's elements.
_Value = int | tuple["_Value", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatKernel:
    """The nodes of a kernel.

    Attributes:
        instructions: one per node; operands precede their users.
        operands: node numbers per node, in operand order, repeats kept.
        reducers: per node the root opcode of the computation it applies per element, or "".
        outputs: node numbers in output order.
        aliased: numbers of the nodes that write into a parameter's buffer, behind any bitcasts of the output.
        kind: family of code.
        is_fusion: whether the kernel is a fusion; else it is a bare operation.
    """

    instructions: tuple[Instruction, ...]
    operands: tuple[tuple[int, ...], ...]
    reducers: tuple[str, ...]
    outputs: tuple[int, ...]
    aliased: frozenset[int]
    kind: Kind
    is_fusion: bool

    def __len__(self) -> int:
        return len(self.instructions)

    def writer(self, output: int) -> int:
        """The node that computes the bytes of an output: the first one behind bitcasts."""
        return _writer(self.instructions, self.operands, output)

    def update_of(self, node: int) -> int | None:
        """The node that holds all that an in-place operation writes; None of a node that writes its value."""
        slot = _UPDATES.get(self.instructions[node].opcode) if node in self.aliased else None
        return None if slot is None else self.operands[node][slot]


def flatten(kernel: Kernel) -> FlatKernel:
    """The nodes of a kernel in topological order, without those that no output needs."""
    inliner = _Inliner(kernel.program)
    value = inliner.inline(kernel.program.entry_computation, None)
    outputs = _leaves(value)
    aliased = frozenset(
        _writer(inliner.instructions, inliner.operands, outputs[n])
        for n, _ in kernel.aliases
        if n < len(outputs)
    )
    needed = _reached(inliner.operands, outputs)
    number = {old: new for new, old in enumerate(needed)}
    return FlatKernel(
        instructions=tuple(inliner.instructions[old] for old in needed),
        operands=tuple(tuple(number[o] for o in inliner.operands[old]) for old in needed),
        reducers=tuple(inliner.reducers[old] for old in needed),
        outputs=tuple(number[o] for o in outputs),
        aliased=frozenset(number[o] for o in aliased),
        kind=kernel.kind,
        is_fusion=kernel.root.opcode == "fusion",
    )


class _Inliner:
    """Collects nodes while walking through fusions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.instructions: list[Instruction] = []
        self.operands: list[tuple[int, ...]] = []
        self.reducers: list[str] = []

    def inline(self, computation: Computation, arguments: list[_Value] | None) -> _Value:
        """The value of a computation's root; without arguments its parameters become nodes."""
        values: dict[str, _Value] = {}
        for instruction in computation:
            values[instruction.name] = self._value(instruction, values, arguments)
        return values[computation.root]

    def _value(
        self, instruction: Instruction, values: dict[str, _Value], arguments: list[_Value] | None
    ) -> _Value:
        opcode = instruction.opcode
        if opcode == "parameter" and arguments is not None and instruction.parameter_number is not None:
            return arguments[instruction.parameter_number]
        read = [values[name] for name in instruction.operands]
        if opcode == "fusion":
            return self.inline(self.program[instruction.called[0]], read)
        if opcode == "tuple":
            return tuple(read)
        if opcode == "get-tuple-element" and isinstance(read[0], tuple):
            return read[0][tuple_index(instruction)]
        self.instructions.append(instruction)
        self.operands.append(tuple(node for value in read for node in _leaves(value)))
        self.reducers.append(self._reducer(instruction))
        return len(self.instructions) - 1

    def _reducer(self, instruction: Instruction) -> str:
        # Select-and-scatter calls two; canonical text has them in another order than the compiler's.
        combiner = (instruction.attribute("scatter") or "").lstrip("%")
        name = combiner or next(iter(instruction.called), "")
        return self.program[name].root_instruction.opcode if name in self.program else ""


def _writer(instructions: Sequence[Instruction], operands: Sequence[tuple[int, ...]], node: int) -> int:
    while instructions[node].opcode == "bitcast":
        node = operands[node][0]
    return node


def _leaves(value: _Value) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(leaf for part in value for leaf in _leaves(part))


def _reached(operands: list[tuple[int, ...]], outputs: tuple[int, ...]) -> list[int]:
    """Ascending numbers of the nodes that the outputs need."""
    needed = set(outputs)
    stack = list(outputs)
    while stack:
        for operand in operands[stack.pop()]:
            if operand not in needed:
                needed.add(operand)
                stack.append(operand)
    return sorted(needed)
