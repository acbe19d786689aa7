import pytest

from kernelcast.core.timing import Sample
from kernelcast.targets.sentinel import Sentinel, against_own_quiet


class Machine:
    """A clock that only work moves; how long the work takes is set from outside."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ran_s = 0.0
        self.work_s = 1.0
        self.interruptions: list[float] = []
        self.warmed = 0

    def clock(self) -> float:
        return self.now_s

    def work(self) -> None:
        self.ran_s += self.work_s
        self.now_s += self.work_s + (self.interruptions.pop(0) if self.interruptions else 0.0)

    def warm(self) -> None:
        self.warmed += 1


@pytest.fixture
def machine() -> Machine:
    return Machine()


def sentinel(machine: Machine, floor_s: float | None = None) -> Sentinel:
    return Sentinel(
        machine.work,
        warm=machine.warm,
        clock=machine.clock,
        processor_clock=lambda: machine.ran_s,
        floor_s=floor_s,
    )


def test_interrupted_readings_are_taken_again(machine: Machine) -> None:
    listener = sentinel(machine)
    listener.settle(30)
    machine.interruptions = [4.0, 4.0]
    assert listener.loudness() == pytest.approx(1.0)
    machine.interruptions = [4.0] * 3
    assert listener.loudness() == pytest.approx(5.0)


def test_loudness_is_the_reading_over_the_floor(machine: Machine) -> None:
    listener = sentinel(machine)
    listener.settle(30)
    machine.work_s = 1.5
    assert listener.loudness() == pytest.approx(1.5)
    assert listener.floor_s == 1.0


def test_floor_is_of_all_time_and_not_of_recent_readings(machine: Machine) -> None:
    listener = sentinel(machine)
    listener.settle(30)
    machine.work_s = 1.4
    for _ in range(10_000):
        listener.loudness()
    assert listener.floor_s == 1.0
    assert listener.quiet_share == 0.0


def test_a_few_freak_readings_do_not_move_the_floor(machine: Machine) -> None:
    listener = sentinel(machine)
    listener.settle(100)
    machine.work_s = 0.5
    for _ in range(5):
        listener.loudness()
    assert listener.floor_s == 1.0


def test_a_known_floor_holds_in_a_loud_start(machine: Machine) -> None:
    machine.work_s = 2.0
    listener = sentinel(machine, floor_s=1.0)
    listener.settle(50)
    assert listener.loudness() == pytest.approx(2.0)


def test_wait_needs_two_quiet_readings_in_a_row(machine: Machine) -> None:
    listener = sentinel(machine)
    listener.settle(30)
    assert listener.readings == 0
    assert listener.wait(limit_s=100)
    assert listener.readings == 2


def test_wait_gives_up_at_its_limit(machine: Machine) -> None:
    listener = sentinel(machine)
    listener.settle(30)
    machine.work_s = 1.2
    before = machine.now_s
    assert not listener.wait(limit_s=6)
    assert machine.now_s - before == pytest.approx(6, abs=1.2)


def test_every_reading_is_preceded_by_a_warm_up(machine: Machine) -> None:
    listener = sentinel(machine)
    listener.settle(25)
    assert machine.warmed == 25


def sample(runs: int, loudness: float) -> Sample:
    return Sample(runs=runs, seconds=1.0, loudness=loudness, round=0)


def test_what_a_kernel_itself_does_to_the_clock_is_not_noise() -> None:
    samples = against_own_quiet([sample(9, 1.12), sample(9, 1.13), sample(9, 1.5), sample(2, 1.01)])
    assert [round(s.loudness, 2) for s in samples] == [1.0, 1.01, 1.34, 1.0]
    assert [s.gated for s in samples] == [True, True, False, True]


def test_a_stretch_that_is_loud_throughout_stays_loud() -> None:
    assert not any(s.gated for s in against_own_quiet([sample(1, 1.4), sample(1, 1.45)]))


def test_readings_below_the_floor_are_left_as_they_are() -> None:
    assert [s.loudness for s in against_own_quiet([sample(1, 0.98), sample(1, 1.02)])] == [0.98, 1.02]
    assert against_own_quiet([]) == ()
