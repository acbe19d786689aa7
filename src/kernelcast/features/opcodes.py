"""The committed table of HLO opcodes and their ids; a checkpoint's embedding rows follow it."""

from __future__ import annotations

from types import MappingProxyType

# The ids 1–120 are those of XLA's list for learned models (xla/hlo/ir/hlo_opcode.h), which published datasets
# use too; 97 and 101 are retired there and stay empty here. Later opcodes are appended, never renumbered.
_BY_ID = (
    "unknown",
    "abs", "add", "add-dependency", "after-all", "all-reduce", "all-to-all", "atan2", "batch-norm-grad",
    "batch-norm-inference", "batch-norm-training", "bitcast", "bitcast-convert", "broadcast", "call", "ceil",
    "cholesky", "clamp", "collective-permute", "count-leading-zeros", "compare", "complex", "concatenate",
    "conditional", "constant", "convert", "convolution", "copy", "copy-done", "copy-start", "cosine",
    "custom-call", "divide", "domain", "dot", "dynamic-slice", "dynamic-update-slice", "exponential",
    "exponential-minus-one", "fft", "floor", "fusion", "gather", "get-dimension-size", "set-dimension-size",
    "get-tuple-element", "imag", "infeed", "iota", "is-finite", "log", "log-plus-one", "and", "not", "or",
    "xor", "map", "maximum", "minimum", "multiply", "negate", "outfeed", "pad", "parameter", "partition-id",
    "popcnt", "power", "real", "recv", "recv-done", "reduce", "reduce-precision", "reduce-window",
    "remainder", "replica-id", "reshape", "reverse", "rng", "rng-get-and-update-state", "rng-bit-generator",
    "round-nearest-afz", "rsqrt", "scatter", "select", "select-and-scatter", "send", "send-done",
    "shift-left",
    "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "slice", "sort", "sqrt", "subtract",
    "tanh", "", "transpose", "triangular-solve", "tuple", "", "while", "cbrt", "all-gather",
    "collective-permute-start", "collective-permute-done", "logistic", "dynamic-reshape", "all-reduce-start",
    "all-reduce-done", "reduce-scatter", "all-gather-start", "all-gather-done", "opt-barrier", "async-start",
    "async-update", "async-done", "round-nearest-even", "stochastic-convert", "tan",
    # Not in that list.
    "erf", "topk", "collective-broadcast", "ragged-all-to-all", "ragged-dot", "acos", "acosh", "asin",
    "asinh", "atan", "atanh", "cosh", "sinh", "scan", "all-to-all-start", "all-to-all-done",
)  # fmt: skip

UNKNOWN = 0
OPCODE_COUNT = len(_BY_ID)
OPCODE_NAMES: tuple[str, ...] = _BY_ID
_IDS = MappingProxyType({name: number for number, name in enumerate(_BY_ID) if name})


def opcode_id(opcode: str) -> int:
    """The row of the embedding for an opcode; 0 for one that the table does not have.

    >>> opcode_id("abs"), opcode_id("tan"), opcode_id("no-such-operation")
    (1, 120, 0)
    """
    return _IDS.get(opcode, UNKNOWN)
