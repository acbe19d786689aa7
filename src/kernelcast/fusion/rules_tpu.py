"""Which fusions the TPU compiler takes: the table of XLA:TPU, and its conditions on pairs and kernels.

Default illegal: an illegal fusion aborts libtpu ("Loop will not make progress"), hangs it, or comes out
changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kernelcast.fusion.nested import CONTRACTIONS
from kernelcast.fusion.rules import Emission, Rule, Rules, Sharing
from kernelcast.hlo.attribute_text import integers
from kernelcast.hlo.opcodes import ELEMENTWISE
from kernelcast.hlo.program import Instruction

# Moves inside kernels of the compiler; in new pairs they abort, so they stay with the partners they have.
AS_COMPILED = frozenset({
    "bitcast", "concatenate", "copy", "dynamic-slice", "dynamic-update-slice", "iota",
    "pad", "reshape", "reverse", "slice", "transpose",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuLegality:
    """Conditions of XLA:TPU on pairs and kernels; as tried with libtpu 0.0.42.1 on v3."""

    version: int = 1

    def allows(self, producer: Instruction, consumer: Instruction, *, users: int) -> bool:
        """Whether a pair that the compiler does not fuse may be fused."""
        opcodes = {producer.opcode, consumer.opcode}
        if opcodes & AS_COMPILED or producer.opcode == "reduce" or consumer.opcode == "broadcast":
            return False  # in the compiler's own kernels only parameters and constants are broadcast
        if not producer.shape.dimensions or not consumer.shape.is_array or not consumer.shape.dimensions:
            return False  # scalars are computed on another core
        if producer.opcode in CONTRACTIONS:
            same = producer.shape.dimensions == consumer.shape.dimensions
            return users == 1 and same and consumer.opcode in ELEMENTWISE and _keeps_order(producer, consumer)
        return consumer.opcode in CONTRACTIONS or _keeps_order(producer, consumer)

    def objection(
        self, members: Sequence[Instruction], roots: Collection[str], *, is_part_of_default: bool
    ) -> str:
        """What is wrong with a kernel that the compiler does not make; empty where nothing is."""
        contractions = [i for i in members if i.opcode in CONTRACTIONS]
        if len(contractions) > 1:
            return "two convolutions; at most one"
        if is_part_of_default:
            return ""
        moving = next((i for i in members if i.opcode in AS_COMPILED), None)
        if moving is not None and len(members) > 1:
            return f"{moving.opcode} beside operations that the compiler does not fuse with it"
        return _objection_to_epilogue(members, contractions[0], roots) if contractions else ""


def _objection_to_epilogue(
    members: Sequence[Instruction], contraction: Instruction, roots: Collection[str]
) -> str:
    """What is wrong with the operations after a convolution; empty where nothing is."""
    if len(roots) > 1:
        return "several results beside a convolution"
    after = {contraction.name}
    before = set(contraction.operands)
    for instruction in reversed(members):
        if instruction.name in before:
            before.update(instruction.operands)
    for instruction in members:
        if after & set(instruction.operands):
            after.add(instruction.name)
        elif instruction.name in before or instruction is contraction:
            continue
        if instruction.opcode == "reduce":
            return "a reduction after a convolution"
    return ""


def _keeps_order(producer: Instruction, consumer: Instruction) -> bool:
    """Whether the consumer walks memory in the producer's order: mixed layouts abort."""
    order = producer.shape.minor_to_major
    if consumer.opcode != "reduce":
        return order == consumer.shape.minor_to_major
    reduced = integers(consumer, "dimensions", default=())
    kept = [axis for axis in range(producer.shape.rank) if axis not in reduced]
    left = [kept.index(axis) for axis in order if axis in kept]
    return left == list(consumer.shape.minor_to_major)


_NOTE = (
    "libtpu 0.0.42.1, v3, after fusion and before windows: the default, the un-fused and random plans of 26 "
    "zoo programs, 120 compiles, one abort"
)

XLA_TPU = Rules(
    name="xla-tpu",
    version=1,
    kinds=("kLoop", "kOutput"),
    several_results=True,
    nests_inputs=True,
    legality=TpuLegality(),
    table=(
        Rule(
            name="elementwise",
            opcodes=ELEMENTWISE - AS_COMPILED,
            root=True,
            producer=True,
            alone=Emission.BARE,
            grouped=True,
            equal_dimensions=True,
            evidence=f"{_NOTE}, none by a pair of these in one layout order; in mixed orders it aborts",
        ),
        Rule(
            name="broadcast",
            opcodes=frozenset({"broadcast"}),
            root=True,
            producer=True,
            alone=Emission.BARE,
            evidence=f"{_NOTE}, none by broadcasts of parameters or constants; of other values they abort",
        ),
        Rule(
            name="reduction",
            opcodes=frozenset({"reduce"}),
            root=True,
            producer=True,
            alone=Emission.BARE,
            grouped=True,
            evidence=f"{_NOTE}, none by reductions as roots, or as producers where the compiler has them so",
        ),
        Rule(
            name="convolution",
            opcodes=CONTRACTIONS,
            root=True,
            producer=True,
            sharing=Sharing.SHARE,
            alone=Emission.BARE,
            evidence=f"{_NOTE}, none with nested inputs and an elementwise epilogue of the same shape",
        ),
        Rule(
            name="as the compiler has it",
            opcodes=AS_COMPILED,
            root=True,
            producer=True,
            alone=Emission.BARE,
            evidence=f"{_NOTE}, by a part of a kernel with reduce-window, which has no row since",
        ),
    ),
)
"""XLA:TPU. Not in the table, hence never taken apart: reduce-window (parts of the compiler's own kernels that
hold one abort), gather, scatter, sort, rng, custom calls, and all that nobody tried; nor is kind kCustom."""
