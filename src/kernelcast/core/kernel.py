"""A kernel: a closed sub-program that is compiled and launched as one unit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from kernelcast.core.fingerprint import canonical_program, digest, skeleton_text
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import Instruction, Program


class Kind(StrEnum):
    """The family of code that a backend makes for a kernel; baselines fit one coefficient for each."""

    LOOP = "loop"
    REDUCE = "reduce"
    DOT = "dot"
    CONVOLUTION = "convolution"
    LIBRARY = "library"
    COPY = "copy"
    IN_PLACE = "in-place"
    GATHER = "gather"
    SCATTER = "scatter"
    SORT = "sort"
    RNG = "rng"
    FFT = "fft"
    CUSTOM_CALL = "custom-call"
    COLLECTIVE = "collective"
    OTHER = "other"


class InputPolicy(StrEnum):
    """What values one parameter needs so that the kernel does typical work."""

    FLOAT = "float"  # normal range, no denormals, no NaN
    INDEX = "index"  # integers, spread, below the bound
    SORTED = "sorted"
    PERMUTATION = "permutation"
    PREDICATE = "predicate"
    COUNTER = "counter"  # a loop counter: small, non-negative
    INTEGER = "integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """The values that one parameter of a kernel should hold when it is timed.

    Attributes:
        policy: the family of values.
        bound: exclusive upper bound of INDEX and PERMUTATION values; 0 where it has no meaning.
    """

    policy: InputPolicy
    bound: int = 0


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One unit of compiled code with its parameters and ordered outputs.

    The entry computation of ``program`` holds the parameters, the scalar constants and bitcasts that the
    kernel needs, and exactly one launched instruction, its root: a fusion or a bare operation.

    A tile is not inside: a candidate is (kernel, tile or none).

    Attributes:
        program: the closed sub-program, names and metadata as they came.
        kind: family of code.
        aliases: (output number, parameter number) pairs written in place.
        inputs: one specification per parameter.

    >>> from kernelcast.hlo.text import parse
    >>> text = "HloModule m ENTRY e { NAME = f32[4] parameter(0)  ROOT y = f32[4] tanh(NAME) }"
    >>> first, second = (
    ...     Kernel(program=parse(text.replace("NAME", name)), kind=Kind.LOOP) for name in ("a", "b")
    ... )
    >>> first.root.opcode, first == second, len(first.fingerprint)
    ('tanh', True, 32)
    """

    program: Program
    kind: Kind
    aliases: tuple[tuple[int, int], ...] = ()
    inputs: tuple[InputSpec, ...] = ()

    @property
    def root(self) -> Instruction:
        """The launched instruction."""
        return self.program.entry_computation.root_instruction

    @property
    def footprint_bytes(self) -> int:
        """Bytes of all parameters and results: what tells a large kernel from a small one."""
        parameters = self.program.entry_computation.parameters
        return sum(p.shape.byte_size for p in parameters) + self.root.shape.byte_size

    @cached_property
    def canonical(self) -> Program:
        """The same kernel with canonical names and order, without metadata; what is stored and hashed."""
        return canonical_program(self.program, self.aliases)

    @cached_property
    def text(self) -> str:
        """Canonical HLO text: readable by ``parse``, equal for equal kernels."""
        return format_program(self.canonical)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits: BLAKE2b of the canonical text.

        Aliases are in the text; kind and inputs follow from it.
        """
        return digest(self.text)

    @cached_property
    def skeleton(self) -> str:
        """Fingerprint without sizes: equal for one graph at several sizes (near-duplicates, leakage)."""
        return digest(skeleton_text(self.canonical))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
