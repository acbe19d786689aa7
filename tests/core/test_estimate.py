"""Estimates: equally long columns, and a status where there is no number."""

import numpy as np
import pytest

from kernelcast.core.estimate import Estimates, Status, estimates_of

SECONDS = np.array([1e-6, np.nan])


def test_what_has_no_seconds_is_unknown_and_bounds_are_absent() -> None:
    estimates = estimates_of(SECONDS)
    assert len(estimates) == 2
    assert estimates.status.tolist() == [Status.KNOWN, Status.UNKNOWN]
    assert estimates.status.dtype == np.int8
    assert np.isnan(estimates.lower).all()
    assert np.isnan(estimates.upper).all()


def test_a_given_status_is_kept() -> None:
    status = np.array([Status.EXTRAPOLATED, Status.FAILED], dtype=np.int8)
    assert estimates_of(SECONDS, status).status.tolist() == [1, 3]


def test_no_kernels_are_no_estimates() -> None:
    assert len(estimates_of(np.zeros(0))) == 0


@pytest.mark.parametrize(
    "wrong", [{"lower": np.zeros(3)}, {"status": np.zeros(1, dtype=np.int8)}, {"seconds": np.zeros((2, 1))}]
)
def test_columns_of_several_lengths_are_refused(wrong: dict[str, np.ndarray]) -> None:
    columns = {"seconds": SECONDS, "lower": SECONDS, "upper": SECONDS, "status": np.zeros(2, dtype=np.int8)}
    with pytest.raises(ValueError, match="one-dimensional and equally long"):
        Estimates(**(columns | wrong))
