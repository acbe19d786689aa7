import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.core.kernel import InputPolicy, InputSpec
from kernelcast.errors import TargetError
from kernelcast.hlo.shape import array_shape
from kernelcast.targets.inputs import FLOAT_HIGH, FLOAT_LOW, default_spec, dtype_of, make_input

FLOATS = ["f16", "f32", "f64", "bf16", "f8e4m3fn", "f8e5m2", "c64"]
INTEGERS = ["s4", "u4", "s8", "u8", "s32", "u32", "s64"]
INDEX_TYPES = ["s8", "u8", "s32", "u32", "s64"]


@pytest.mark.parametrize("element_type", FLOATS)
def test_floats_are_of_normal_size(element_type: str) -> None:
    values = make_input(element_type, (7, 11), InputSpec(policy=InputPolicy.FLOAT), seed=3)
    assert values.shape == (7, 11)
    assert values.dtype == dtype_of(element_type)
    real = values.real if values.dtype.kind == "c" else values.astype(np.float64)
    assert np.isfinite(real).all()
    assert (real >= FLOAT_LOW / 1.1).all()
    assert (real <= FLOAT_HIGH * 1.1).all()
    assert len(np.unique(real)) > 3


@given(st.sampled_from(INDEX_TYPES), st.integers(1, 100), st.integers(0, 500))
def test_indices_stay_below_their_bound(element_type: str, bound: int, count: int) -> None:
    spec = InputSpec(policy=InputPolicy.INDEX, bound=bound)
    values = make_input(element_type, (count,), spec, seed=0).astype(np.int64)
    assert values.size == count
    assert ((values >= 0) & (values < bound)).all()


def test_indices_are_spread() -> None:
    values = make_input("s32", (10_000,), InputSpec(policy=InputPolicy.INDEX, bound=1000), seed=0)
    assert len(np.unique(values)) > 950


@pytest.mark.parametrize("element_type", INTEGERS)
def test_integers_of_unknown_use_fit_their_type(element_type: str) -> None:
    values = make_input(element_type, (100,), InputSpec(policy=InputPolicy.INTEGER), seed=0)
    assert values.astype(np.int64).max() < min(8, int(ml_dtypes.iinfo(values.dtype).max) + 1)
    assert values.astype(np.int64).min() >= 0


def test_permutation_holds_every_index_once() -> None:
    values = make_input("s32", (50,), InputSpec(policy=InputPolicy.PERMUTATION, bound=50), seed=1)
    assert sorted(values.tolist()) == list(range(50))
    assert values.tolist() != list(range(50))


@pytest.mark.parametrize("element_type", ["s32", "f32"])
def test_sorted_values_ascend(element_type: str) -> None:
    spec = InputSpec(policy=InputPolicy.SORTED, bound=9)
    values = make_input(element_type, (200,), spec, seed=1)
    assert (np.diff(values) >= 0).all()
    assert values[0] < values[-1]


def test_predicates_are_mixed() -> None:
    values = make_input("pred", (1000,), InputSpec(policy=InputPolicy.PREDICATE), seed=0)
    assert 400 < values.sum() < 600


def test_counter_is_in_the_middle_of_its_range() -> None:
    values = make_input("s32", (), InputSpec(policy=InputPolicy.COUNTER, bound=200), seed=0)
    assert values == 100
    assert values.shape == ()


def test_zero_sized_dimension() -> None:
    for policy in InputPolicy:
        assert make_input("s32", (0, 4), InputSpec(policy=policy, bound=3), seed=0).shape == (0, 4)


def test_same_seed_same_values() -> None:
    spec = InputSpec(policy=InputPolicy.FLOAT)
    assert (make_input("f32", (100,), spec, seed=1) == make_input("f32", (100,), spec, seed=1)).all()
    assert (make_input("f32", (100,), spec, seed=1) != make_input("f32", (100,), spec, seed=2)).any()


def test_default_spec_follows_the_element_type() -> None:
    wanted = {"pred": InputPolicy.PREDICATE, "s8": InputPolicy.INTEGER, "bf16": InputPolicy.FLOAT}
    assert {t: default_spec(array_shape(t, (2,))).policy for t in wanted} == wanted


def test_unknown_element_type() -> None:
    with pytest.raises(TargetError, match=r"no input can be made: .*f3"):
        dtype_of("f3")
