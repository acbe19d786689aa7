"""A program before fusion: for each scheduled computation the operations, and how the compiler fused them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kernelcast.fusion.rules import Rule
from kernelcast.hlo.program import Computation, Instruction

NO_REGION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value of a scheduled computation.

    Attributes:
        instruction: as in the un-fused program; for what is kept whole, the original.
        operands: node numbers, in operand order.
        after: node numbers that must run before although they are not read.
        rule: what fusion may do with it; None for data and for what is kept whole.
        region: number of the library region that holds it, or ``NO_REGION``.
        value: digest of what it computes, from the parameters up; equal for clones.
        slot: (position of the default's instruction that it belongs to, position inside it).
        is_inline_constant: a constant that every kernel that reads it holds itself.
    """

    instruction: Instruction
    operands: tuple[int, ...]
    after: tuple[int, ...] = ()
    rule: Rule | None
    region: int = NO_REGION
    value: str
    slot: tuple[int, int]
    is_inline_constant: bool = False

    @property
    def is_constant(self) -> bool:
        return self.instruction.opcode == "constant"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultKernel:
    """An instruction of the compiler's own module that the un-fused program takes apart.

    Attributes:
        instruction: the original, with its name, operand order and attributes.
        operands: node numbers of its operands, in order.
        members: bit n is set for each node that it computes, constants not counted.
        region: number of the library region that it is, or ``NO_REGION``.
        parts: for one with several results (node, instruction that takes it out) of each, in the order of
            the module.
    """

    instruction: Instruction
    operands: tuple[int, ...]
    members: int
    region: int = NO_REGION
    parts: tuple[tuple[int, Instruction], ...] = ()

    def name_of(self, number: int) -> str:
        """What the module calls one of its results."""
        return next((part.name for node, part in self.parts if node == number), self.instruction.name)

    @property
    def roots(self) -> tuple[int, ...]:
        """Its results, where it has several: node numbers, ascending."""
        return tuple(sorted({node for node, _ in self.parts}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A library call that may be made of generated loops instead.

    Attributes:
        scope: number of the computation.
        root: node number of its result.
        members: bit n is set for each of its nodes.
    """

    scope: int
    root: int
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedPair:
    """A producer that the default computes inside the kernel of its consumer."""

    producer: int
    consumer: int


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One scheduled computation, un-fused. Operands have lower numbers than their users.

    Attributes:
        computation: the original.
        nodes: all values; numbers are positions here.
        root: number of the result.
        kernels: the default's instruction for each node that is the result of one, by node number.
        fused: pairs that the default fuses, region insides included.
        path: how the computation is reached, independent of names.
    """

    computation: Computation
    nodes: tuple[Node, ...]
    root: int
    kernels: dict[int, DefaultKernel]
    fused: frozenset[FusedPair]
    path: str

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each node the numbers of those that read it, ascending, each once."""
        users: list[dict[int, None]] = [{} for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for operand in node.operands:
                users[operand][number] = None
        return tuple(tuple(found) for found in users)

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Node numbers by name in the un-fused program."""
        return {node.instruction.name: number for number, node in enumerate(self.nodes)}
