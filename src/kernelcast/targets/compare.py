"""How far the outputs of one compiled program lie from those of another, and whether that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Tolerated error as a fraction of the output's largest magnitude: fused and unfused code round differently.
# An element type that is not here must agree exactly.
TOLERANCE: dict[str, float] = {
    "float64": 1e-10, "complex128": 1e-10,
    "float32": 1e-4, "complex64": 1e-4,
    "float16": 2e-2, "bfloat16": 2e-2,
}  # fmt: skip
# Types of three mantissa bits or fewer: one unit in the last place.
_TOLERANCE_OF_8_BITS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Outcome of comparing all outputs.

    Attributes:
        error: the largest of the outputs' errors, each max |a − b| / max |reference|; 0 where all are equal.
        complaint: what is wrong, or empty.
    """

    error: float
    complaint: str = ""


def compare_outputs(reference: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Comparison:
    """How outputs differ from the reference's.

    Floats may differ by a fraction of the output's largest finite magnitude; positions of NaN and of
    infinities, integers and predicates may not differ.

    >>> one, other = np.float32([1, 2]), np.float32([1, 2.1])
    >>> compare_outputs([one], [other]).complaint
    'output 0 (float32[2]): error 0.05 of the largest magnitude, tolerated 0.0001'
    """
    if len(reference) != len(outputs):
        return Comparison(error=np.inf, complaint=f"{len(outputs)} outputs instead of {len(reference)}")
    worst = 0.0
    complaints: list[str] = []
    for number, (expected, got) in enumerate(zip(reference, outputs, strict=True)):
        error, complaint = _compare(expected, got)
        worst = max(worst, error)
        if complaint:
            shape = f"{expected.dtype}[{','.join(map(str, expected.shape))}]"
            complaints.append(f"output {number} ({shape}): {complaint}")
    return Comparison(error=worst, complaint="; ".join(complaints))


def _compare(expected: np.ndarray, got: np.ndarray) -> tuple[float, str]:
    if expected.dtype != got.dtype or expected.shape != got.shape:
        return np.inf, f"got {got.dtype}{list(got.shape)}"
    tolerance = _tolerance(expected.dtype)
    if tolerance is None:
        differing = int(np.count_nonzero(expected != got))
        if differing == 0:
            return 0.0, ""
        return np.inf, f"{differing} of {expected.size} elements differ"
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = expected.astype(wide), got.astype(wide)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        return np.inf, "NaN or infinity in other places"
    if not finite.any():
        return 0.0, ""
    difference = float(np.max(np.abs(a[finite] - b[finite])))
    largest = float(np.max(np.abs(a[finite])))
    if difference == 0.0:
        return 0.0, ""
    error = difference / largest if largest > 0 else np.inf
    return error, "" if error <= tolerance else (
        f"error {error:.3g} of the largest magnitude, tolerated {tolerance:g}"
    )


def _tolerance(dtype: np.dtype) -> float | None:
    if dtype.name.startswith(("float8", "float4")):
        return _TOLERANCE_OF_8_BITS
    return TOLERANCE.get(dtype.name)
