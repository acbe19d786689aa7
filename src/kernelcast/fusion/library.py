"""What the backend's library computes beyond what the compiler gives it.

XLA:CPU calls its library for dots, convolutions and reductions, with the operations around them; it never
gives it operations alone. The library computes them all the same, some several times as fast as generated
loops, because it has vector code for them (``benchmarks/offload.py``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What a backend's library takes beyond what the compiler gives it.

    Attributes:
        backend_config: of the fusion instruction, as the compiler writes it.
        opcodes: that every member of such a kernel must be of.
        moves: those of them that compute nothing; a kernel needs another one.
        element_types: of every member and operand.
        evidence: what was run, where.
    """

    backend_config: str
    opcodes: frozenset[str]
    moves: frozenset[str]
    element_types: frozenset[str]
    evidence: str


YNNPACK = Library(
    backend_config='{"outer_dimension_partitions":[],"fusion_config":{"kind":"__ynn_fusion"}}',
    opcodes=frozenset({
        "abs", "add", "bitcast", "broadcast", "ceil", "divide", "exponential", "floor", "log", "multiply",
        "power", "round-nearest-even", "rsqrt", "sqrt", "subtract",
    }),
    moves=frozenset({"bitcast", "broadcast"}),
    element_types=frozenset({"f32"}),
    evidence="jaxlib 0.10.2, CPU, POST_SCHEDULER: each opcode alone and in chains, ranks 0 to 7. All pairs "
    "of NaN, infinities, zeros, denormals and large numbers come out as from loops, with the signs of zeros. "
    "Not so: maximum and minimum lose NaN; negate, sign, tanh, erf, log-plus-one and exponential-minus-one "
    "lose the sign of a zero. When run it refuses sine, cosine, tan, cbrt, atan2, remainder, "
    "round-nearest-afz, compare, select, clamp, integers and column-major arrays. A reshape aborts the "
    "process",
)  # fmt: skip
