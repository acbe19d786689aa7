"""The roofline by hand."""

import math

import pytest

from kernelcast.core.analytical import Peaks, roofline_seconds

PEAKS = Peaks(flops_per_s=100.0, bytes_per_s=10.0)


@pytest.mark.parametrize(
    ("flops", "accessed", "seconds"), [(1000, 10, 10), (100, 1000, 100), (100, 10, 1), (0, 0, 0), (0, 5, 0.5)]
)
def test_the_slower_of_arithmetic_and_traffic_decides(flops: float, accessed: float, seconds: float) -> None:
    assert roofline_seconds(flops, accessed, PEAKS) == seconds


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_peaks_are_positive_numbers(value: float) -> None:
    with pytest.raises(ValueError, match="bytes_per_s must be a positive number, got"):
        Peaks(flops_per_s=1.0, bytes_per_s=value)
