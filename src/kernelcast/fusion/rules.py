"""Which operations may stand where in a fusion: a table per target, every row with its evidence.

What no row allows is illegal: an illegal fusion does not fail cleanly but aborts, hangs or computes wrong
numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from kernelcast.fusion.library import YNNPACK, Library
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import Shape


class Sharing(StrEnum):
    """What happens to a fused producer with several consumers."""

    COPY = "copy"  # cheap: computed again in every consumer's kernel
    SHARE = "share"  # at most one kernel may hold it


class Emission(StrEnum):
    """How one operation becomes a kernel of its own."""

    BARE = "bare"
    WRAPPED = "wrapped"  # in a fusion of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What some opcodes may do.

    Attributes:
        name: of the row.
        opcodes: that the row is about.
        root: whether it may be the result of a fusion that has other members too.
        producer: whether it may be fused into a consumer.
        sharing: for a producer with several consumers.
        alone: how it is emitted as a kernel of its own.
        grouped: whether it may be one of several results of one kernel.
        equal_dimensions: legal only where every operand has the result's dimensions.
        equal_types: legal only where every operand has the result's element type.
        requires: attributes, with their values, that it must have.
        evidence: what was run, where.
    """

    name: str
    opcodes: frozenset[str]
    root: bool
    producer: bool
    sharing: Sharing = Sharing.COPY
    alone: Emission = Emission.WRAPPED
    grouped: bool = False
    equal_dimensions: bool = False
    equal_types: bool = False
    requires: tuple[tuple[str, str], ...] = ()
    evidence: str


class Legality(Protocol):
    """Conditions of a target that depend on more than one operation."""

    @property
    def version(self) -> int:
        """Raised on every change of meaning."""
        ...

    def allows(self, producer: Instruction, consumer: Instruction, *, users: int) -> bool:
        """Whether a pair that the compiler does not fuse may be fused.

        Args:
            users: how many operations read the producer.
        """
        ...

    def objection(
        self, members: Sequence[Instruction], roots: Collection[str], *, is_part_of_default: bool
    ) -> str:
        """What is wrong with a kernel that the compiler does not make; empty where nothing is.

        Args:
            members: its operations, operands before users.
            roots: names of its results.
            is_part_of_default: whether one kernel of the compiler computes all of it.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The legality of one target, and the bounds of one kernel.

    Attributes:
        name: of the target.
        version: raised on every change of meaning.
        table: first row that names an opcode decides; none means illegal.
        opaque_custom_fusions: whether library fusions may be turned into loops (regions).
        library: takes kernels that a plan hands to it; not a part of the identity, since it changes no plan
            that does not ask for it.
        max_members: operations in one fused kernel, constants not counted.
        max_operands: of one fused kernel.
        max_copies: how often the code of one member may be emitted. Index-changing diamonds double it at
            every step; the compiler's own guard sits in the fusion pass, which a plan replaces.
        max_rework: evaluated elements of all members over their sizes.
        expensive_fan_in: a reduction of more elements than this per result is shared, not copied.
        max_serial_terms: a reduction of more elements than this per result stays as the compiler has it.
            Generated loops may add them one after the other: 875,000 squares in f32 came out 1.7e-4 off where
            the library is 1e-8 off.
        kinds: of fusions that are generated code and are taken apart.
        several_results: whether fusions with several results are taken apart too.
        nests_inputs: whether what a dot or convolution reads inside its kernel is a nested fusion, and the
            kernel of kind kOutput.
        legality: what the table cannot say: conditions on pairs and on kernels.
    """

    name: str
    version: int
    table: tuple[Rule, ...]
    library_kinds: tuple[str, ...] = ()
    library: Library | None = None
    max_members: int = 192
    max_operands: int = 48
    max_copies: int = 24
    max_rework: float = 32.0
    expensive_fan_in: int = 64
    max_serial_terms: int = 1 << 18
    kinds: tuple[str, ...] = ("kLoop",)
    several_results: bool = False
    nests_inputs: bool = False
    legality: Legality | None = None

    def rule(self, instruction: Instruction, operands: Sequence[Shape]) -> Rule | None:
        """The row for an operation on operands of the given shapes; None where nothing is allowed."""
        row = self._by_opcode.get(instruction.opcode)
        if row is None or not _has_usable_type(instruction.shape):
            return None
        dimensions = instruction.shape.dimensions
        if row.equal_dimensions and any(operand.dimensions != dimensions for operand in operands):
            return None
        if row.equal_types and any(o.element_type != instruction.shape.element_type for o in operands):
            return None
        if instruction.opcode == "reduce" and self._adds_too_many(instruction, operands):
            return None
        if any(instruction.attribute(key) != value for key, value in row.requires):
            return None
        return row

    def _adds_too_many(self, reduction: Instruction, operands: Sequence[Shape]) -> bool:
        results = next(reduction.shape.leaves()).element_count
        return operands[0].element_count > self.max_serial_terms * max(1, results)

    @cached_property
    def _by_opcode(self) -> dict[str, Rule]:
        found: dict[str, Rule] = {}
        for row in self.table:
            for opcode in row.opcodes:
                found.setdefault(opcode, row)
        return found

    @cached_property
    def identity(self) -> str:
        """Name, version and digest, e.g. ``xla-cpu/1:0f3a…``."""
        text = repr(
            [
                (
                    sorted(row.opcodes),
                    sorted((k, v) for k, v in asdict(row).items() if k not in ("opcodes", "evidence")),
                )
                for row in self.table
            ]
        )
        bounds = (
            self.library_kinds, self.max_members, self.max_operands, self.max_copies, self.max_rework,
            self.expensive_fan_in, self.max_serial_terms,
        )  # fmt: skip
        if self.legality is not None:
            bounds = (*bounds, self.kinds, self.several_results, self.nests_inputs, self.legality.version)
        digest = hashlib.blake2b(f"{text}{bounds}".encode(), digest_size=6).hexdigest()
        return f"{self.name}/{self.version}:{digest}"


def _has_usable_type(shape: Shape) -> bool:
    """Arrays without dynamic dimensions, or tuples of them."""
    return all(leaf.is_array and not leaf.dynamic for leaf in shape.leaves())


_NOTE = "jaxlib 0.10.2, CPU, POST_SCHEDULER, each case compiled in a child and its values compared"

_ELEMENTWISE = frozenset({
    "abs", "add", "and", "atan2", "bitcast-convert", "cbrt", "ceil", "clamp", "compare", "complex", "convert",
    "cosine", "count-leading-zeros", "divide", "erf", "exponential", "exponential-minus-one", "floor", "imag",
    "is-finite", "log", "log-plus-one", "logistic", "map", "maximum", "minimum", "multiply", "negate", "not",
    "or", "popcnt", "power", "real", "reduce-precision", "remainder", "round-nearest-afz",
    "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic", "shift-right-logical",
    "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor",
})  # fmt: skip

XLA_CPU = Rules(
    name="xla-cpu",
    version=1,
    library_kinds=("__ynn_fusion", "__onednn_fusion"),
    library=YNNPACK,
    table=(
        Rule(
            name="elementwise",
            opcodes=_ELEMENTWISE,
            root=True,
            producer=True,
            grouped=True,
            equal_dimensions=True,
            evidence=f"{_NOTE}: float, bf16, complex, pred, signed and unsigned chains; a clamp with scalar "
            "bounds is refused",
        ),
        Rule(
            name="index-only",
            opcodes=frozenset({"broadcast", "slice", "dynamic-slice", "pad", "reverse", "iota"}),
            root=True,
            producer=True,
            grouped=True,
            evidence=f"{_NOTE}: wrapped, as producer, as root, both",
        ),
        Rule(
            name="view",
            opcodes=frozenset({"bitcast", "reshape"}),
            root=True,
            producer=True,
            alone=Emission.BARE,
            evidence=f"{_NOTE}; alone it is a view and launches nothing",
        ),
        Rule(
            name="moves with an emitter of their own",
            opcodes=frozenset({"transpose", "copy", "concatenate"}),
            root=True,
            producer=True,
            alone=Emission.BARE,
            grouped=True,
            evidence=f"{_NOTE}; the compiler leaves them bare: wrapped, concatenate is 3-6 % slower",
        ),
        Rule(
            name="gather",
            opcodes=frozenset({"gather"}),
            root=True,
            producer=True,
            requires=(("collapsed_slice_dims", "{}"),),
            evidence=f"{_NOTE}: in the simplified form, which is what final modules hold; others crash",
        ),
        Rule(
            name="reduction",
            opcodes=frozenset({"reduce", "reduce-window"}),
            root=True,
            producer=True,
            grouped=True,
            evidence=f"{_NOTE}: rows, columns, two results; two reductions of one shape in one kernel",
        ),
        Rule(
            name="contraction",
            opcodes=frozenset({"dot"}),
            root=True,
            producer=True,
            sharing=Sharing.SHARE,
            alone=Emission.BARE,
            equal_types=True,
            evidence=f"{_NOTE}: producer + dot, dot + consumer, all; a fused dot becomes a plain loop. Of s8 "
            "operands with an s32 result the loop is invalid LLVM IR",
        ),
        Rule(
            name="convolution",
            opcodes=frozenset({"convolution"}),
            root=True,
            producer=True,
            sharing=Sharing.SHARE,
            alone=Emission.BARE,
            equal_types=True,
            evidence=f"{_NOTE}: tanh + convolution + tanh",
        ),
        Rule(
            name="in-place update",
            opcodes=frozenset({"dynamic-update-slice"}),
            root=True,
            producer=False,
            alone=Emission.BARE,
            evidence=f"{_NOTE}; as a producer it would copy the whole array that it saves copying",
        ),
    ),
)
"""XLA:CPU. Not in the table, hence never in a fusion: scatter (aborts as a producer, wrong values or a crash
with its operands), sort, rng, fft, custom calls, select-and-scatter (tried, refused or crash), and all that
nobody tried."""
