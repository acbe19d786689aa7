"""Rounds of whole programs, on a device whose clock only programs move."""

from typing import Any, TypeVar

import pytest

from kernelcast.targets.pjrt.time_programs import TimeRounds

Kept = TypeVar("Kept")


class Machine:
    """A device whose kept programs take the seconds that they are kept under."""

    def __init__(self, seconds: list[float]) -> None:
        self.seconds = seconds
        self.now_s = 0.0
        self.order: list[int] = []
        self.sentinel = self
        self.floor_s = 1e-5
        self.quiet_share = 1.0
        self.arrays = ()

    def kept(self, handle: int, kind: type[Kept]) -> Any:
        if handle < 0:
            return self
        machine = self

        class Program:
            def execute(self, _: object) -> None:
                machine.order.append(handle)
                machine.now_s += machine.seconds[handle]

        return Program()

    def clock(self) -> float:
        return self.now_s

    def timed(self, work: Any) -> tuple[float, float]:
        begin = self.now_s
        work()
        return self.now_s - begin, 1.0

    def wait(self, limit_s: float) -> bool:
        return True

    def loudness(self) -> float:
        return 1.0


def rounds(machine: Machine, *, rounds: int = 8, limit_s: float = 1e9, first: int = 0) -> Any:
    request = TimeRounds(
        programs=tuple(range(len(machine.seconds))),
        inputs=-1,
        first_round=first,
        rounds=rounds,
        wait_s=0.0,
        limit_s=limit_s,
        seed=0,
    )
    return request.run(machine)  # pyright: ignore[reportArgumentType]


def test_every_form_runs_once_a_round() -> None:
    result = rounds(Machine([1e-3, 2e-3, 3e-3]), first=6)
    assert result.rounds == 8
    assert [[s.round for s in samples] for samples in result.samples] == [list(range(6, 14))] * 3
    assert [samples[0].seconds for samples in result.samples] == pytest.approx([1e-3, 2e-3, 3e-3])


def test_orders_differ_between_rounds_and_repeat_with_the_seed() -> None:
    first, again = Machine([1e-3] * 4), Machine([1e-3] * 4)
    rounds(first)
    rounds(again)
    assert first.order == again.order
    per_round = [tuple(first.order[8 + 8 * r : 16 + 8 * r]) for r in range(8)]
    assert len(set(per_round)) > 3


def test_short_programs_run_several_times_a_sample() -> None:
    (samples,) = rounds(Machine([3e-5])).samples
    assert {s.runs for s in samples} == {7}
    assert samples[0].seconds == pytest.approx(7 * 3e-5)


def test_slow_forms_get_three_rounds() -> None:
    result = rounds(Machine([1e-3, 31e-3, 33e-3]))
    assert [len(samples) for samples in result.samples] == [8, 8, 3]
    result = rounds(Machine([10e-3, 79e-3, 81e-3]))
    assert [len(samples) for samples in result.samples] == [8, 8, 3]


def test_no_round_starts_after_the_limit() -> None:
    result = rounds(Machine([0.5]), limit_s=2.6)
    assert result.rounds == 2
