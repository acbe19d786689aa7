"""A program's time as the sum of its kernels' estimates."""

import math

import numpy as np
import pytest

from kernelcast.core.estimate import Status, estimates_of
from kernelcast.errors import KernelcastError
from kernelcast.hlo.text import parse
from kernelcast.jobs.programs.memory_factor import MemoryFactor
from kernelcast.jobs.programs.overheads import Overheads
from kernelcast.jobs.programs.predict import predict_program
from kernelcast.jobs.programs.target_terms import TargetTerms

TWICE = parse(
    "HloModule m, is_scheduled=true\nENTRY e {\n  x = f32[8]{0} parameter(0)\n  a = f32[8]{0} negate(x)\n"
    "  b = f32[8]{0} tanh(a)\n  ROOT c = f32[8]{0} negate(b)\n}\n"
)


class Fixed:
    """An estimator that says what it is told, and counts its calls."""

    def __init__(self, seconds, status=None):
        self.seconds, self.status, self.calls = seconds, status, 0

    def estimate(self, kernels):
        self.calls += 1
        status = None if self.status is None else np.array(self.status, dtype=np.int8)
        return estimates_of(np.array(self.seconds[: len(kernels)]), status)


def test_distinct_kernels_are_asked_once_and_counted_often():
    estimator = Fixed([1e-6, 5e-6])
    found = predict_program(TWICE, estimator)
    assert [k.times.value for k in found.kernels] == [2, 1]
    assert found.kernels[0].where == "e/%a"
    assert found.seconds == pytest.approx(7e-6)
    assert estimator.calls == 1


OVERHEADS = Overheads(call_s=6e-6, sequential_launch_s=1e-8, dataflow_launch_s=4e-8, iteration_s=3e-8)


def test_the_memory_factor_stretches_the_sum_and_overheads_are_added():
    terms = TargetTerms(target="t", factor=MemoryFactor(scale=1.5, slope=1.0), overheads=OVERHEADS)
    found = predict_program(TWICE, Fixed([1e-6, 5e-6]), terms=terms, temporary_bytes=8 << 20)
    assert found.factor == pytest.approx(3)
    assert found.overhead_s == pytest.approx(6e-6 + 3 * 1e-8)
    assert found.seconds == pytest.approx(3 * 7e-6 + 6e-6 + 3 * 1e-8)


def test_a_kernel_without_an_estimate_makes_the_total_unknown_and_is_named():
    found = predict_program(TWICE, Fixed([math.nan, 5e-6]))
    assert math.isnan(found.seconds)
    assert [k.where for k in found.missing] == ["e/%a"]


def test_the_share_that_is_extrapolated():
    found = predict_program(TWICE, Fixed([1e-6, 6e-6], [Status.EXTRAPOLATED, Status.KNOWN]))
    assert found.extrapolated_share == pytest.approx(0.25)


def test_a_program_without_kernels_is_an_error():
    empty = parse("HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8]{0} parameter(0) }\n")
    with pytest.raises(KernelcastError, match="launches no kernel"):
        predict_program(empty, Fixed([]))
