import ml_dtypes
import numpy as np
import pytest

from kernelcast.targets.compare import compare_outputs


def floats(*values: float, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(values, dtype)


def test_equal_outputs_have_no_error() -> None:
    outputs = [floats(1, 2), np.arange(3), np.asarray([True, False]), floats()]
    comparison = compare_outputs(outputs, [o.copy() for o in outputs])
    assert comparison.error == 0.0
    assert comparison.complaint == ""


@pytest.mark.parametrize(
    ("dtype", "tolerated"),
    [(np.float32, 1e-4), (np.float64, 1e-10), (np.float16, 2e-2), (ml_dtypes.bfloat16, 2e-2)],
)
def test_tolerance_by_element_type(dtype: type, tolerated: float) -> None:
    reference = floats(1, -4, dtype=np.float64)
    for factor, is_wrong in ((0.4, False), (2.5, True)):
        other = reference.copy()
        other[0] += factor * tolerated * 4
        comparison = compare_outputs([reference.astype(dtype)], [other.astype(dtype)])
        assert bool(comparison.complaint) == is_wrong


def test_error_is_relative_to_the_largest_magnitude_of_the_output() -> None:
    comparison = compare_outputs([floats(1, 100)], [floats(1.005, 100)])
    assert comparison.error == pytest.approx(5e-5, rel=1e-3)
    assert not comparison.complaint


def test_worst_output_counts() -> None:
    comparison = compare_outputs([floats(1), floats(1)], [floats(1.00001), floats(1.5)])
    assert comparison.error == pytest.approx(0.5)
    assert comparison.complaint.startswith("output 1 (float32[1]): error 0.5")


def test_integers_and_predicates_must_be_equal() -> None:
    comparison = compare_outputs([np.asarray([1, 2, 3])], [np.asarray([1, 2, 4])])
    assert comparison.complaint == "output 0 (int64[3]): 1 of 3 elements differ"
    assert compare_outputs([np.asarray([True])], [np.asarray([False])]).complaint


def test_nan_must_be_in_the_same_places() -> None:
    nan, inf = np.nan, np.inf
    assert not compare_outputs([floats(nan, 1, inf)], [floats(nan, 1, inf)]).complaint
    for other in (floats(1, nan, inf), floats(nan, 1, -inf), floats(nan, 1, 5), floats(nan, nan, inf)):
        assert "NaN or infinity" in compare_outputs([floats(nan, 1, inf)], [other]).complaint


def test_all_nan_is_equal_to_itself() -> None:
    assert compare_outputs([floats(np.nan)], [floats(np.nan)]).error == 0.0


def test_zero_reference_allows_no_difference() -> None:
    assert compare_outputs([floats(0, 0)], [floats(0, 0)]).error == 0.0
    assert compare_outputs([floats(0, 0)], [floats(0, 1e-30)]).complaint


def test_complex_numbers_are_compared_by_magnitude() -> None:
    one = np.asarray([1 + 1j], np.complex64)
    assert not compare_outputs([one], [one * np.complex64(1 + 1e-5j)]).complaint
    assert compare_outputs([one], [one.conj()]).complaint


def test_other_number_type_or_shape_of_outputs() -> None:
    assert "1 outputs instead of 2" in compare_outputs([floats(1), floats(1)], [floats(1)]).complaint
    assert "got float64[1]" in compare_outputs([floats(1)], [floats(1, dtype=np.float64)]).complaint
    assert "got float32[2]" in compare_outputs([floats(1)], [floats(1, 1)]).complaint
