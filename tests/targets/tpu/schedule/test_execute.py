"""The executor of scalar slots: closed forms by hand, what cannot be followed, and bounds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.tpu.schedule.listings import COPY, LOOP, listing

from kernelcast.core.timing import Failure, Reason
from kernelcast.targets.tpu.schedule.arithmetic import BINARY, LOGIC
from kernelcast.targets.tpu.schedule.execute import Trace, trace_of
from kernelcast.targets.tpu.schedule.trace import Adjust, Compute, Direction, Transfer, Wait
from kernelcast.targets.tpu.schedule.value import UNKNOWN


def run(bundles: list[str], **options: int) -> Trace:
    found = trace_of(listing(bundles), **{"delay_slots": 1, **options})
    assert isinstance(found, Trace), found
    return found


def failure(bundles: list[str], **options: int) -> Failure:
    found = trace_of(listing(bundles), **{"delay_slots": 1, **options})
    assert isinstance(found, Failure)
    return found


def cycles(bundles: list[str], **options: int) -> int:
    return sum(e.cycles for e in run(bundles, **options).events if isinstance(e, Compute))


def waits(value: str, *before: str) -> int:
    """What a scalar expression gives: it is waited for."""
    trace = run([*before, f"%s9_s9 = {value}", "%1 = dma.done.wait [#allocation1], %s9_s9"])
    return next(e.granules for e in trace.events if isinstance(e, Wait))


def test_a_loop_runs_its_body_and_delay_slot_each_time() -> None:
    assert cycles(LOOP) == 1 + 3 * 4 + 1


def test_more_delay_slots_are_issued_before_the_branch_lands() -> None:
    assert cycles(LOOP, delay_slots=2) == 1 + 3 * 5


def test_a_transfer_and_its_wait() -> None:
    assert run(COPY).events == (
        Compute(3),
        Transfer(
            direction=Direction.READ, granules=16, hbm_steps=16, hbm_stride=16, vmem_steps=16, vmem_stride=16,
            flag=1 << 24, is_described=False,
        ),
        Compute(1),
        Wait(flag=1 << 24, granules=16),
        Compute(1),
        Adjust(flag=1 << 24, granules=-16),
        Compute(1),
        Transfer(
            direction=Direction.WRITE, granules=16, hbm_steps=16, hbm_stride=16, vmem_steps=16,
            vmem_stride=16, flag=2 << 24, is_described=False,
        ),
        Compute(1),
        Wait(flag=2 << 24, granules=16),
        Compute(1),
        Adjust(flag=2 << 24, granules=-16),
    )  # fmt: skip


def test_a_strided_transfer() -> None:
    trace = run([
        "%1 = dma.hbm_to_vmem [thread:$0] /*hbm=*/%s0_s0, /*size_in_granules=*/64, /*vmem=*/%s0_s0, "
        "/*dst_syncflagno=*/[#allocation1 + $0x1], /*src_stride=*/40, /*dst_stride=*/4, "
        "/*steps_per_stride=*/4",
    ])  # fmt: skip
    transfer = next(e for e in trace.events if isinstance(e, Transfer))
    assert (transfer.hbm_run, transfer.vmem_run, transfer.run) == (4, 64, 4)
    assert transfer.flag == (1 << 24) + 1


def test_a_transfer_by_descriptor() -> None:
    words = {1: 0x400, 2: (4 << 16) | 4, 4: 0x200, 5: (40 << 16) | 4, 6: (320 << 16) | 64}
    stores = [f"%1 = sst [smem:[#allocation5 + ${index:#x}]] {word}" for index, word in words.items()]
    flag = "%s3_s3 = sor.u32 [#allocation1], 7168"
    trace = run([flag, *stores, "%2 = sst [smem:[#allocation5 + $0x7]] %s3_s3", "%3 = dma [#allocation5]"])
    transfer = next(e for e in trace.events if isinstance(e, Transfer))
    assert transfer.direction is Direction.READ
    assert (transfer.granules, transfer.hbm_run, transfer.hbm_stride, transfer.vmem_run) == (64, 4, 40, 64)
    assert transfer.flag == 1 << 24


def test_reads_of_a_bundle_come_before_its_writes() -> None:
    swap = "%s1_s1 = smov %s2_s2  ;;  %s2_s2 = smov %s1_s1"
    assert waits("smov %s1_s1", "%s1_s1 = smov 5  ;;  %s2_s2 = smov 6", swap) == 6
    assert waits("smov %s2_s2", "%s1_s1 = smov 5  ;;  %s2_s2 = smov 6", swap) == 5


def test_the_narrow_product_of_v2_drops_high_bits() -> None:
    assert waits("smul.u24 16777219, 5") == 15


def test_predicates_choose() -> None:
    holds = "%p1_p1 = scmp.lt.s32.totalorder 4294967295, 0"
    assert waits("scalar_select /*predicate=*/%p1_p1, /*on_true=*/7, /*on_false=*/8", holds) == 7
    assert waits("smov (!%p1_p1, %s4_s4), 3", "%s4_s4 = smov 2", holds) == 2
    assert waits("smov (%p1_p1, %s4_s4), 3", "%s4_s4 = smov 2", holds) == 3


def test_scalar_memory_holds_what_was_stored() -> None:
    store = "%1 = sst [smem:[#allocation3 + $0x2]] 11"
    assert waits("sld [smem:[#allocation3 + $0x2]]", store) == 11
    spill = "%1 = sst [smem:[#allocation3_spill]] 12"
    assert waits("sld [smem:[#allocation3_spill]]", "%1 = sst [smem:[#allocation3]] 1", spill) == 12


def test_the_numbers_of_chip_and_core_are_zero() -> None:
    assert waits("sld [smem:[#allocation6]] /* core id */") == 0


def test_a_division_is_popped_in_order() -> None:
    divide = "%1 = sdivrem.u32 17, 5 /* kDivAndRem */"
    assert waits("sadd.s32 %s5_s5, %s6_s6", divide, "%s5_s5 = spop %1", "%s6_s6 = spop %1") == 3 + 2


def test_a_delay_takes_its_cycles() -> None:
    assert cycles(["%1 = vdelay 6", "%2 = vnop"]) == 8


def test_a_halt_ends_the_kernel() -> None:
    assert cycles(["%p1_p1 = scmp.eq.s32.totalorder 1, 1", "%2 = shalt (%p1_p1)", "%3 = vnop"]) == 2


@pytest.mark.parametrize(
    ("bundles", "place"),
    [
        (["%s1_s1 = spop %1", "%p2_p2 = scmp.eq.s32.totalorder %s1_s1, 0",
          "%3 = sbr.rel (%p2_p2) target = $region4 | Start region 4", "%4 = vnop"],
         "line 7: what is done next depends on data"),
        (["%1 = dma.done.wait [#allocation1], %s1_s1"], "line 5: the count of a wait depends on data"),
        (["%1 = dma [#allocation5]"], "line 5: word 4 of a transfer's descriptor depends on data"),
        (["%1 = sst [smem:[%s4_s4]] 1"], "line 5: where a word is stored depends on data"),
    ],
)  # fmt: skip
def test_what_depends_on_data_is_a_failure_with_its_line(bundles: list[str], place: str) -> None:
    found = failure(bundles)
    assert found.reason is Reason.VALUE_DEPENDENT
    assert place in found.message


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        ("%1 = scall target", "line 5: the operation is not known, got '%1 = scall target'"),
        ("%1 = sbr.rel target = $region9", "the branch before bundle 0x1 goes to region 9, which starts no"),
        ("%1 = dma.hbm_to_moon /*size_in_granules=*/1", "line 5: a transfer is one of dma.hbm_to_vmem"),
        ("%1 = sst here", "line 5: a store is 'sst [smem:…] word'"),
        ("%1 = dma.done.wait [#allocation1]", "line 5: a flag and a count are needed"),
    ],
)
def test_what_is_not_understood_is_a_failure_with_its_line(slot: str, message: str) -> None:
    found = failure([slot])
    assert found.reason is Reason.UNSUPPORTED
    assert message in found.message


def test_a_branch_that_is_not_taken_needs_no_target() -> None:
    assert cycles(["%p1_p1 = scmp.eq.s32.totalorder 1, 2", "%2 = sbr.rel (%p1_p1) target = $region9"]) == 2


def test_an_endless_loop_is_ended() -> None:
    found = failure(["%1 = sbr.rel target = $region2 | Start region 2", "%2 = vnop"], most_steps=1000)
    assert found.reason is Reason.TIMEOUT
    assert "line 5" in found.message


def test_an_unknown_value_may_be_moved_about() -> None:
    assert cycles(["%s1_s1 = sfloor.f32 %s2_s2", "%1 = sst [smem:[#allocation3]] %s1_s1"]) == 2


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_results_are_words(a: int, b: int) -> None:
    for name, compute in BINARY.items():
        if name != "scalar_lea":
            assert 0 <= compute(a, b) < 1 << 32, name


@pytest.mark.parametrize("name", LOGIC)
def test_logic_with_an_unknown_side_is_right_for_both(name: str) -> None:
    for known in (False, True):
        either = {LOGIC[name](known, side) for side in (False, True)}
        found = LOGIC[name](known, UNKNOWN)
        assert found is UNKNOWN if len(either) == 2 else {found} == either
