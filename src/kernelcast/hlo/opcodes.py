"""Families of opcodes that several analyses share."""

# Counted apart from other arithmetic, since one of them is many machine operations.
TRANSCENDENTAL = frozenset({
    "acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt", "cosh", "cosine", "erf", "exponential",
    "exponential-minus-one", "log", "log-plus-one", "logistic", "power", "rsqrt", "sine", "sinh", "sqrt",
    "tan", "tanh",
})  # fmt: skip

UNARY = frozenset({
    "abs", "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "ceil", "convert", "copy", "cosh", "cosine",
    "count-leading-zeros", "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log",
    "log-plus-one", "logistic", "negate", "not", "popcnt", "real", "reduce-precision", "round-nearest-afz",
    "round-nearest-even", "rsqrt", "sign", "sine", "sinh", "sqrt", "stochastic-convert", "tan", "tanh",
})  # fmt: skip

BINARY = frozenset({
    "add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "or", "power",
    "remainder", "shift-left", "shift-right-arithmetic", "shift-right-logical", "subtract", "xor",
})  # fmt: skip

TERNARY = frozenset({"clamp", "select"})

# One output element needs the elements at the same index only. (A scalar bound of a clamp or predicate of a
# select is the exception; its shape tells.)
ELEMENTWISE = UNARY | BINARY | TERNARY | {"map"}

# No code runs for these: they name, group or reinterpret values.
TRANSPARENT = frozenset({
    "add-dependency", "after-all", "bitcast", "constant", "domain", "get-tuple-element", "opt-barrier",
    "parameter", "tuple",
})  # fmt: skip

# These launch no kernel of their own: their computations do.
CONTROL_FLOW = frozenset({"call", "conditional", "while", "async-start", "async-update", "async-done"})

# Scheduled instructions that are no kernels.
NOT_LAUNCHED = TRANSPARENT | CONTROL_FLOW

# All that jaxlib 0.10's parser knows, without the asynchronous forms (``-start``, ``-update``, ``-done``).
KNOWN = (
    ELEMENTWISE
    | TRANSPARENT
    | {"async-done", "async-start", "async-update", "call", "conditional", "while"}
    | {
        "all-gather", "all-reduce", "all-to-all", "batch-norm-grad", "batch-norm-inference",
        "batch-norm-training", "bitcast-convert", "broadcast", "cholesky", "collective-broadcast",
        "collective-permute", "concatenate", "convolution", "custom-call", "dot", "dynamic-reshape",
        "dynamic-slice", "dynamic-update-slice", "fft", "fusion", "gather", "get-dimension-size", "infeed",
        "iota", "outfeed", "pad", "partition-id", "ragged-all-to-all", "ragged-dot", "recv", "reduce",
        "reduce-scatter", "reduce-window", "replica-id", "reshape", "reverse", "rng", "rng-bit-generator",
        "rng-get-and-update-state", "scaled-dot", "scan", "scatter", "select-and-scatter", "send",
        "set-dimension-size", "slice", "sort", "topk", "transpose", "triangular-solve",
    }
)  # fmt: skip
