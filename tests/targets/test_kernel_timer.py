"""The schedule of visits, with a scripted worker; the real worker is in ``test_xla_cpu.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.core.timing import Failure, Reason, Sample, Statistic, Timing
from kernelcast.targets.pjrt.kernel_timer import KernelRule, KernelTimer
from kernelcast.targets.pjrt.time_kernels import CompileBatch, CompiledBatch, Drop, PassResult, TimePass
from kernelcast.targets.protocol import Candidate

LONG, SHORT = 500, 100


class ScriptedWorker:
    """Answers as a worker does. A kernel takes 2 s a run, an empty iteration 1 s.

    Attributes:
        failing: decides by the number of kernels in a batch whether its compile fails.
        loudness: of each visit in turn; the last one goes on.
        log: what was asked, in order.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.memory_limit_bytes = 1 << 30
        self.now_s = 0.0
        self.log: list[str] = []
        self.failing: Callable[[CompileBatch], Failure | None] = lambda _: None
        self.loudness = [1.0]
        self.dies_at_visit: int | None = None
        self.kept: dict[int, int] = {}
        self.boots: list[Any] = []
        self.visits = 0

    def replace_boot(self, boot: Any) -> None:
        self.boots.append(boot)

    def ask(self, request: Any, *, limit_s: float) -> Any:
        match request:
            case CompileBatch():
                return self._compile(request)
            case TimePass():
                return self._visit(request)
            case Drop():
                self.log.append("drop")
                for handle in request.handles:
                    del self.kept[handle]
                return None
            case _:
                raise AssertionError(request)

    def _compile(self, request: CompileBatch) -> CompiledBatch | Failure:
        self.log.append(f"compile {request.batch.kernels}")
        self.now_s += 1.0
        failure = self.failing(request)
        if failure is not None:
            return failure
        handle = len(self.log)
        self.kept[handle] = request.batch.kernels
        return CompiledBatch(handle=handle, temporary_bytes=0, seconds=1.0)

    def _visit(self, request: TimePass) -> PassResult | Failure:
        self.visits += 1
        self.log.append(f"visit {len(request.branches)} at {self.now_s:g}")
        if self.visits == self.dies_at_visit:
            self.generation += 1
            self.kept.clear()
            return Failure(reason=Reason.CRASH, message="died")
        empty = self.kept[request.handle]
        loudness = self.loudness.pop(0) if len(self.loudness) > 1 else self.loudness[0]
        self.now_s += 1.0
        samples = {
            branch: tuple(
                Sample(
                    runs=runs, seconds=runs * (1.0 if branch == empty else 3.0), loudness=loudness, round=r
                )
                for r in range(3)
                for runs in (SHORT, LONG)
            )
            for branch in (empty, *request.branches)
        }
        runs = dict.fromkeys(samples, LONG)
        return PassResult(samples=samples, runs=runs, floor_s=1e-5, quiet_share=1.0, seconds=1.0)


@pytest.fixture
def worker() -> ScriptedWorker:
    return ScriptedWorker()


def run(worker: ScriptedWorker, kernels: list[Kernel], rule: KernelRule) -> dict[str, Timing | Failure]:
    def sleep(seconds: float) -> None:
        worker.now_s += seconds

    timer = KernelTimer(
        worker,  # pyright: ignore[reportArgumentType]
        rule,
        statistic=Statistic.GATED_MEDIAN,
        clock=lambda: worker.now_s,
        sleep=sleep,
    )
    return dict(timer.time(Candidate(key=str(n), kernel=k) for n, k in enumerate(kernels)))


def test_seconds_are_the_slope_without_the_empty_iteration(
    worker: ScriptedWorker, elementwise: Kernel
) -> None:
    outcome = run(worker, [elementwise], KernelRule(passes=2))["0"]
    assert isinstance(outcome, Timing)
    assert outcome.seconds() == pytest.approx(2.0)
    assert outcome.overhead_s == pytest.approx(1.0)
    assert outcome.slopes_s().size == 6
    assert worker.kept == {}


def test_next_child_of_the_worker_knows_the_floor(worker: ScriptedWorker, elementwise: Kernel) -> None:
    run(worker, [elementwise], KernelRule(passes=2))
    assert [boot.floor_s for boot in worker.boots] == [1e-5]


def test_visits_to_a_kernel_lie_apart(worker: ScriptedWorker, elementwise: Kernel) -> None:
    run(worker, [elementwise], KernelRule(passes=3, spacing_s=60))
    assert [entry for entry in worker.log if entry.startswith("visit")] == [
        "visit 1 at 1",
        "visit 1 at 62",
        "visit 1 at 123",
    ]


def test_other_batches_are_compiled_between_two_visits(worker: ScriptedWorker, elementwise: Kernel) -> None:
    run(worker, [elementwise] * 6, KernelRule(passes=2, spacing_s=30, batch_kernels=2))
    assert worker.log[:6] == [
        "compile 2",
        "visit 2 at 1",
        "compile 2",
        "visit 2 at 3",
        "compile 2",
        "visit 2 at 5",
    ]
    assert worker.log[6] == "visit 2 at 32"


def test_open_batches_are_bounded(worker: ScriptedWorker, elementwise: Kernel) -> None:
    run(worker, [elementwise] * 4, KernelRule(passes=2, spacing_s=30, batch_kernels=1, open_batches=2))
    assert [entry.split()[0] for entry in worker.log[:5]] == ["compile", "visit", "compile", "visit", "visit"]


def test_kernels_that_lack_quiet_rounds_are_visited_again_alone(
    worker: ScriptedWorker, elementwise: Kernel
) -> None:
    worker.loudness = [1.5, 1.0]
    outcome = run(worker, [elementwise], KernelRule(passes=1, extra_passes=3))["0"]
    assert isinstance(outcome, Timing)
    assert worker.visits == 2
    assert (outcome.slopes_s().size, outcome.quiet_share) == (3, 0.5)


def test_kernel_that_never_meets_quiet_is_too_loud_and_keeps_its_samples(
    worker: ScriptedWorker, elementwise: Kernel
) -> None:
    worker.loudness = [1.5]
    outcome = run(worker, [elementwise], KernelRule(passes=1, extra_passes=2))["0"]
    assert isinstance(outcome, Failure)
    assert outcome.reason is Reason.TOO_LOUD
    assert outcome.message == "none of 9 rounds was quiet; run 'kernelcast doctor'"
    assert len(outcome.samples) == 18


def test_loud_stretch_is_used_for_compiling(worker: ScriptedWorker, elementwise: Kernel) -> None:
    worker.loudness = [1.5, 1.0]
    run(worker, [elementwise] * 2, KernelRule(passes=2, batch_kernels=1))
    assert [entry.split()[0] for entry in worker.log[:3]] == ["compile", "visit", "compile"]


def test_failing_batch_is_halved_until_one_kernel_is_to_blame(
    worker: ScriptedWorker, elementwise: Kernel, transposed: Kernel
) -> None:
    bad = Failure(reason=Reason.CRASH, message="aborts")
    worker.failing = lambda request: bad if " dot(" in request.batch.text else None
    outcomes = run(worker, [elementwise, transposed, elementwise, elementwise], KernelRule(passes=1))
    assert outcomes["1"] == bad
    assert all(isinstance(outcomes[key], Timing) for key in ("0", "2", "3"))
    assert [e for e in worker.log if e.startswith("compile")] == [
        "compile 4", "compile 2", "compile 2", "compile 1", "compile 1",
    ]  # fmt: skip


def test_death_of_the_worker_costs_only_the_kernel_that_it_visited(
    worker: ScriptedWorker, elementwise: Kernel
) -> None:
    worker.dies_at_visit = 3
    outcomes = run(worker, [elementwise] * 2, KernelRule(passes=2, batch_kernels=1, spacing_s=30))
    assert sorted(type(o).__name__ for o in outcomes.values()) == ["Failure", "Timing"]
    assert [e for e in worker.log if e.startswith("compile")] == ["compile 1"] * 3


def test_in_place_and_large_kernels_are_alone(
    worker: ScriptedWorker, elementwise: Kernel, in_place: Kernel
) -> None:
    run(worker, [elementwise, in_place, elementwise], KernelRule(passes=1))
    assert sorted(e for e in worker.log if e.startswith("compile")) == ["compile 1", "compile 2"]
    worker.log.clear()
    run(worker, [elementwise] * 2, KernelRule(passes=1, batch_bytes=2047))
    assert [e for e in worker.log if e.startswith("compile")] == ["compile 1"] * 2


def test_kernel_as_short_as_nothing_has_no_slope(worker: ScriptedWorker, elementwise: Kernel) -> None:
    visit = worker._visit

    def short(request: TimePass) -> PassResult | Failure:
        answer = visit(request)
        assert isinstance(answer, PassResult)
        return replace(answer, samples={b: answer.samples[max(answer.samples)] for b in answer.samples})

    worker._visit = short  # pyright: ignore[reportAttributeAccessIssue]
    outcome = run(worker, [elementwise], KernelRule(passes=1))["0"]
    assert isinstance(outcome, Failure)
    assert outcome.reason is Reason.NO_SLOPE


def test_kernel_that_needs_more_memory_than_a_worker_has(worker: ScriptedWorker, elementwise: Kernel) -> None:
    worker.memory_limit_bytes = 3 * 2048 - 1
    outcome = run(worker, [elementwise], KernelRule())["0"]
    assert isinstance(outcome, Failure)
    assert outcome.reason is Reason.MEMORY
    assert worker.log == []


def test_tiles_are_refused(worker: ScriptedWorker, elementwise: Kernel) -> None:
    tile = Tile(levels=(("kernel", (8,)),))
    timer = KernelTimer(worker, KernelRule(), statistic=Statistic.GATED_MEDIAN)  # pyright: ignore[reportArgumentType]
    ((key, outcome),) = timer.time([Candidate(key="k", kernel=elementwise, tile=tile)])
    assert key == "k"
    assert isinstance(outcome, Failure)
    assert outcome.reason is Reason.UNSUPPORTED
    assert outcome.message.startswith("tile kernel[8]: XLA:CPU has no tiles")


def test_nothing_to_time(worker: ScriptedWorker) -> None:
    assert run(worker, [], KernelRule()) == {}
    assert worker.log == []
