"""Plans as values and as text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.errors import PlanError
from kernelcast.fusion.plan import FusionPlan, Group, LibraryOff, Setting, Untouched

PLANS = st.builds(
    FusionPlan,
    space=st.text("0123456789abcdef", min_size=16, max_size=16),
    rules=st.just("xla-cpu/1:0"),
    fused=st.integers(0, 1 << 200),
    loops=st.integers(0, 1 << 20),
    groups=st.lists(
        st.builds(Group, scope=st.integers(0, 5), roots=st.tuples(st.integers(0, 9), st.integers(10, 19))),
        max_size=3,
    ).map(tuple),
    settings=st.lists(
        st.builds(
            Setting,
            scope=st.integers(0, 5),
            root=st.integers(0, 9),
            emission=st.sampled_from(["bare", "wrapped"]),
        ),
        max_size=3,
    ).map(tuple),
)


@given(PLANS)
def test_decode_undoes_encode(plan: FusionPlan):
    assert FusionPlan.decode(plan.encode()) == plan
    assert FusionPlan.decode(plan.encode().encode()) == plan
    assert hash(FusionPlan.decode(plan.encode())) == hash(plan)


@pytest.mark.parametrize("text", ["", "{}", "null", "[1]", '{"format":', b"\x00\xff"])
def test_what_is_no_plan_is_refused(text: str | bytes):
    with pytest.raises(PlanError, match="not a fusion plan"):
        FusionPlan.decode(text)


def test_another_version_is_named():
    record = json.loads(FusionPlan(space="s", rules="r", fused=1).encode())
    record["version"] = 7
    with pytest.raises(PlanError, match="version 7; this version reads kernelcast-plan version 1"):
        FusionPlan.decode(json.dumps(record))


def test_the_two_defaults_are_values():
    assert Untouched() == Untouched()
    assert len({Untouched(), LibraryOff(), Untouched()}) == 2
