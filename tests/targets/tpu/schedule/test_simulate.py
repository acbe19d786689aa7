"""Simulated times."""

import pytest
from tests.targets.tpu.schedule.listings import COPY, LOOP, listing

from kernelcast.core.timing import Clock, Failure, Reason
from kernelcast.targets.tpu.chip import chip
from kernelcast.targets.tpu.schedule.constants import CLOCKS, ENGINES, FITTED, MEASURED_BUFFERS
from kernelcast.targets.tpu.schedule.simulate import SimulatedTime, simulate


def test_a_copy_takes_its_bundles_transfers_and_latencies() -> None:
    found = simulate(listing(COPY), chip("tpu_v3"), with_intervals=True)
    assert isinstance(found, SimulatedTime)
    v3 = ENGINES["tpu_v3"]
    moved = 16 * 1024 / v3.bytes_per_cycle + v3.transfer_cycles
    # The core issues a bundle while the engine moves already: the wait's own.
    expected = 3 + 3 + 2 * (v3.issue_cycles + moved) + v3.read_latency_cycles + v3.write_latency_cycles
    assert found.replay.cycles == pytest.approx(expected)
    assert found.seconds == found.replay.cycles / 0.94e9
    assert found.clock is Clock.SIMULATED
    assert found.is_validated
    assert found.replay.intervals


def test_times_of_v2_say_that_they_are_not_validated() -> None:
    found = simulate(listing(COPY), chip("tpu_v2"))
    assert isinstance(found, SimulatedTime)
    assert not found.is_validated


def test_later_chips_have_no_times() -> None:
    found = simulate(listing(COPY), chip("tpu_v4"))
    assert isinstance(found, Failure)
    assert str(found) == "unsupported: times of tpu_v4 are not simulated, only those of tpu_v3, tpu_v2"


def test_a_flag_that_is_not_understood_is_a_failure() -> None:
    found = simulate(listing(["%1 = dma.done.wait [#allocation1], 4"]), chip("tpu_v3"))
    assert isinstance(found, Failure)
    assert "1 waits are for more than was handed over" in found.message


def test_a_kernel_that_never_ends_is_a_failure() -> None:
    endless = [*LOOP[:2], "%p3_p0 = scmp.ne.s32.totalorder %s2_s1, 0", *LOOP[3:]]
    found = simulate(listing(endless), chip("tpu_v3"), most_steps=100)
    assert isinstance(found, Failure)
    assert found.reason is Reason.TIMEOUT


def test_there_are_at_most_ten_fitted_constants() -> None:
    assert len(FITTED) + len((MEASURED_BUFFERS, ENGINES["tpu_v3"].conflict_bytes)) <= 10
    assert CLOCKS["tpu_v3"].hertz == 0.94e9
