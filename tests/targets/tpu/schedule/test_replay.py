"""The DMA model: closed forms by hand, properties, and narrowed pipelines."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.errors import SchemaError
from kernelcast.targets.tpu.schedule.engine import EngineConstants
from kernelcast.targets.tpu.schedule.packed import pack, unpack
from kernelcast.targets.tpu.schedule.replay import Activity, replay
from kernelcast.targets.tpu.schedule.trace import Adjust, Compute, Direction, Event, Transfer, Wait

ENGINE = EngineConstants(
    granule_bytes=1000,
    bytes_per_cycle=100.0,
    read_latency_cycles=50.0,
    write_latency_cycles=20.0,
    transfer_cycles=3.0,
    run_cycles=2.0,
    conflict_cycles=4.0,
    conflict_bytes=16_000,
    issue_cycles=1.0,
)


def transfer(
    granules: int, flag: int = 0, *, steps: int | None = None, stride: int = 0, write: bool = False
) -> Transfer:
    run = steps or granules
    return Transfer(
        direction=Direction.WRITE if write else Direction.READ,
        granules=granules,
        hbm_steps=run,
        hbm_stride=stride or run,
        vmem_steps=run,
        vmem_stride=run,
        flag=flag,
        is_described=False,
    )


@pytest.mark.parametrize(
    ("moved", "cycles"),
    [
        (transfer(8), 80 + 3),
        (transfer(8, steps=4, stride=5), 80 + 3 + 2 * 2),
        (transfer(8, steps=4, stride=16), 80 + 3 + 2 * (2 + 4)),
        (transfer(8, steps=8, stride=16), 80 + 3),
    ],
)
def test_the_engine_is_busy_by_bytes_and_runs(moved: Transfer, cycles: float) -> None:
    assert ENGINE.occupied_cycles(moved) == cycles


def test_a_read_that_is_waited_for() -> None:
    done = replay([Compute(10), transfer(2), Wait(0, 2), Adjust(0, -2)], ENGINE, with_intervals=True)
    assert done.cycles == 10 + 1 + 23 + 50
    assert (done.compute_cycles, done.waiting_cycles, done.engine_cycles) == (11, 73, 23)
    assert (done.bytes_read, done.bytes_written, done.starved) == (2000, 0, 0)
    shown = [(i.activity, i.start, i.end) for i in done.intervals]
    assert (Activity.READ, 11, 34) in shown
    assert (Activity.WAITING, 11, 84) in shown


def test_computing_hides_a_transfer() -> None:
    done = replay([transfer(2), Compute(500), Wait(0, 2)], ENGINE)
    assert (done.cycles, done.waiting_cycles) == (501, 0)


def test_transfers_are_served_in_order() -> None:
    done = replay([transfer(2, 1), transfer(2, 2), Wait(2, 2)], ENGINE)
    assert done.cycles == 1 + 23 + 23 + 50


def test_a_wait_for_what_never_comes_is_counted() -> None:
    assert replay([Wait(0, 1)], ENGINE).starved == 1
    assert replay([transfer(1), Wait(0, 2)], ENGINE).starved == 1


def test_what_was_taken_off_a_flag_is_not_waited_for_again() -> None:
    assert replay([transfer(1), Wait(0, 1), Adjust(0, -1), Wait(0, 1)], ENGINE).starved == 1


def test_the_core_may_count_a_flag_up() -> None:
    done = replay([Adjust(0, 3), Wait(0, 3)], ENGINE)
    assert (done.cycles, done.starved) == (0, 0)


def reads_in_turns(buffers: int, iterations: int, compute: int) -> list[Event]:
    """A pipeline as compilers make it: fill the buffers; then wait, compute, and fill the free one."""
    events: list[Event] = [transfer(1, turn) for turn in range(buffers - 1)]
    for i in range(iterations):
        if i + buffers - 1 < iterations:
            events.append(transfer(1, (i + buffers - 1) % buffers))
        flag = i % buffers
        events += [Wait(flag, 1), Adjust(flag, -1), Compute(compute)]
    return events


def test_fewer_buffers_expose_latency() -> None:
    deep = reads_in_turns(6, 24, 5)
    assert replay(deep, ENGINE, buffers=2).cycles > 1.5 * replay(deep, ENGINE).cycles


@pytest.mark.parametrize("compute", [1, 5, 40, 200])
def test_a_pipeline_narrowed_to_two_takes_as_long_as_one_made_with_two(compute: int) -> None:
    narrowed = replay(reads_in_turns(6, 24, compute), ENGINE, buffers=2)
    made = replay(reads_in_turns(2, 24, compute), ENGINE)
    assert narrowed.starved == 0
    assert narrowed.cycles == pytest.approx(made.cycles, rel=0.05)


@pytest.mark.parametrize("compute", [1, 5, 40, 200])
def test_narrowing_changes_nothing_where_two_are_used(compute: int) -> None:
    made = reads_in_turns(2, 24, compute)
    assert replay(made, ENGINE, buffers=2).cycles == replay(made, ENGINE).cycles


def test_two_write_buffers_take_turns() -> None:
    """Every second write has to be through before there is room: the period is half of both."""
    compute, writes = 10, 100
    events: list[Event] = []
    for i in range(writes):
        events += [Compute(compute), transfer(1, i % 6, write=True)]
    period = replay(events, ENGINE, buffers=2).cycles / writes
    assert period == pytest.approx((compute + 1 + 13 + 20) / 2, rel=0.05)


def test_a_window_has_a_buffer() -> None:
    with pytest.raises(ValueError, match="at least one buffer, got 0"):
        replay([], ENGINE, buffers=0)


_EVENTS = st.lists(
    st.one_of(
        st.builds(Compute, st.integers(1, 50)),
        st.builds(transfer, st.integers(1, 9), st.integers(0, 3), write=st.booleans()),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(_EVENTS)
def test_the_core_is_computing_or_waiting(events: list[Event]) -> None:
    for buffers in (None, 2):
        done = replay(events, ENGINE, buffers=buffers)
        assert done.cycles == pytest.approx(done.compute_cycles + done.waiting_cycles)


@settings(deadline=None)
@given(_EVENTS)
def test_a_slower_engine_is_not_faster(events: list[Event]) -> None:
    waited = [*events, *(Wait(e.flag, 1) for e in events if isinstance(e, Transfer))]
    slower = dataclasses.replace(ENGINE, bytes_per_cycle=50.0)
    assert replay(waited, slower).cycles >= replay(waited, ENGINE).cycles


@settings(deadline=None)
@given(_EVENTS)
def test_packed_traces_come_back(events: list[Event]) -> None:
    held = (*events, Wait(7 << 24, 3), Adjust(7 << 24, -3))
    assert unpack(pack(held)) == held


def test_another_text_is_no_trace() -> None:
    with pytest.raises(SchemaError, match="got 'nonsense'… where a packed trace is needed"):
        unpack("nonsense")


def test_narrowing_hands_over_all_that_a_flag_waits_for() -> None:
    """The second transfer of a flag lies behind those of two others; the core waits for both."""
    first, second, third = (1 << 24 | number for number in range(3))
    events: list[Event] = [*(transfer(16, flag) for flag in (first, second, third, first)), Wait(first, 32)]
    narrowed, plain = replay(events, ENGINE, buffers=2), replay(events, ENGINE)
    assert plain.starved == narrowed.starved == 0
    assert narrowed.bytes_read == plain.bytes_read


def test_a_read_that_is_held_back_to_the_end_is_not_passed_over() -> None:
    reads: list[Event] = [transfer(16, 1 << 24 | number) for number in range(3)]
    assert replay(reads, ENGINE, buffers=2).starved == 1
