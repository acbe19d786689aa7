"""Times a stream of kernels on one worker: grouped into batches, each visited several times, minutes apart.

What disturbs a shared machine lasts up to minutes; only visits that lie apart meet it in different states. So
executables are kept and visited again, and other batches are compiled in between.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Statistic, Timing
from kernelcast.targets.pjrt.batch import BatchText, batch_text
from kernelcast.targets.pjrt.batch_inputs import unsupported
from kernelcast.targets.pjrt.device import Device, remember_floor
from kernelcast.targets.pjrt.time_kernels import (
    CompileBatch,
    Drop,
    PassResult,
    PassRule,
    TimePass,
    gated_rounds,
)
from kernelcast.targets.protocol import Candidate
from kernelcast.targets.sentinel import against_own_quiet
from kernelcast.targets.worker import Worker

_log = logging.getLogger(__name__)

METHOD = "loop-slope"
# Rounds of different visits must not be taken for one.
_ROUNDS_PER_VISIT = 1000
# A visit with fewer quiet rounds than this fell into a loud stretch.
_LOUD_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRule:
    """How kernels are batched and how often they are visited.

    Attributes:
        gated_rounds: quiet rounds that a kernel needs over all visits.
        passes: visits that every kernel gets.
        extra_passes: further visits for kernels that lack quiet rounds.
        spacing_s: seconds between two visits to a kernel, at least.
        batch_kernels: kernels in one executable, at most.
        batch_bytes: bytes of the inputs of one executable; a kernel that needs more is alone.
        open_batches: batches compiled and not yet finished, at most.
        open_bytes: bytes of their inputs, at most.
        compile_limit_s: seconds after which a compile is given up.
        visit_limit_s: seconds after which a visit is given up; above ``visit.limit_s``, where no further
            kernel is started.
        visit: how one visit goes.
    """

    gated_rounds: int = 3
    passes: int = 2
    extra_passes: int = 4
    spacing_s: float = 0.0
    batch_kernels: int = 24
    batch_bytes: int = 64 << 20
    open_batches: int = 96
    open_bytes: int = 2 << 30
    compile_limit_s: float = 60.0
    visit_limit_s: float = 90.0
    visit: PassRule = field(default_factory=PassRule)


@dataclass(slots=True)
class _Measured:
    """A candidate and what its visits gave; each sample with the sentinel's floor at its visit."""

    candidate: Candidate
    visits: int = 0
    runs: int | None = None
    samples: list[tuple[float, Sample]] = field(default_factory=list[tuple[float, Sample]])


@dataclass(slots=True)
class _Open:
    """A batch that is not finished. Its executable is lost when the worker's generation changes."""

    batch: BatchText
    measured: list[_Measured]
    due: float
    handle: int = 0
    generation: int = -1
    visits: int = 0
    unfinished: list[int] = field(default_factory=list[int])
    empty_runs: int | None = None
    empty: list[tuple[float, Sample]] = field(default_factory=list[tuple[float, Sample]])


class KernelTimer:
    """Times kernels on one worker.

    Attributes:
        floor_s: the lowest floor of the sentinel so far; infinite before the first visit.
        quiet_share: fraction of the sentinel's readings that were quiet, at the last visit.
    """

    def __init__(
        self,
        worker: Worker[Device],
        rule: KernelRule,
        *,
        statistic: Statistic,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.floor_s = math.inf
        self.quiet_share = math.nan
        self._worker = worker
        self._rule = rule
        self._statistic = statistic
        self._clock = clock
        self._sleep = sleep
        self._open: list[_Open] = []
        self._retries: deque[list[_Measured]] = deque()
        self._loud = False

    def time(self, candidates: Iterable[Candidate]) -> Iterator[tuple[str, Timing | Failure]]:
        """(key, outcome) as they become final; candidates are drawn as they are needed."""
        groups = _groups(candidates, self._rule)
        while True:
            due = min(self._open, key=lambda open_: open_.due, default=None)
            is_due = due is not None and due.due <= self._clock()
            # A compile is no worse for noise, so loud stretches are for compiling.
            if self._has_room() and (self._loud or not is_due):
                group = self._retries.popleft() if self._retries else next(groups, None)
                if group is not None:
                    yield from self._start(group)
                    continue
            if due is None:
                return
            self._sleep(max(0.0, due.due - self._clock()))
            yield from self._visit(due)

    def _has_room(self) -> bool:
        held_bytes = sum(open_.batch.input_bytes for open_ in self._open)
        return len(self._open) < self._rule.open_batches and held_bytes < self._rule.open_bytes

    def _start(self, group: list[_Measured]) -> Iterator[tuple[str, Timing | Failure]]:
        """Compiles a new batch; yields the candidates that cannot be timed."""
        measured: list[_Measured] = []
        for one in group:
            failure = self._refused(one.candidate)
            if failure is None:
                measured.append(one)
            else:
                yield one.candidate.key, failure
        if not measured:
            return
        open_ = _Open(
            batch=batch_text([one.candidate.kernel for one in measured]),
            measured=measured,
            due=self._clock(),
            unfinished=list(range(len(measured))),
        )
        self._open.append(open_)
        self._loud = False
        failure = self._compile(open_)
        if failure is not None:
            yield from self._give_up(open_, failure)

    def _refused(self, candidate: Candidate) -> Failure | None:
        """Why a candidate is not even tried, or None."""
        if candidate.tile is not None:
            message = f"tile {candidate.tile}: XLA:CPU has no tiles to choose; give the kernel without one"
            return Failure(reason=Reason.UNSUPPORTED, message=message)
        needed, limit = _bytes_needed(candidate.kernel), self._worker.memory_limit_bytes
        if needed > limit:
            message = f"inputs and outputs need {needed >> 20} MiB, a worker may use {limit >> 20} MiB"
            return Failure(reason=Reason.MEMORY, message=message)
        return unsupported(candidate.kernel)

    def _compile(self, open_: _Open) -> Failure | None:
        answer = self._worker.ask(CompileBatch(batch=open_.batch), limit_s=self._rule.compile_limit_s)
        if isinstance(answer, Failure):
            return answer
        open_.handle, open_.generation = answer.handle, self._worker.generation
        return None

    def _give_up(self, open_: _Open, failure: Failure) -> Iterator[tuple[str, Timing | Failure]]:
        """Halves a batch that failed, until the one kernel that is to blame stands alone."""
        self._open.remove(open_)
        if open_.generation == self._worker.generation:
            self._worker.ask(Drop(handles=(open_.handle,)), limit_s=self._rule.compile_limit_s)
        left = [open_.measured[branch] for branch in open_.unfinished]
        if len(left) == 1:
            yield left[0].candidate.key, failure
            return
        _log.info("a batch of %d kernels failed (%s); halving it", len(left), failure)
        middle = len(left) // 2
        self._retries.extend((left[:middle], left[middle:]))

    def _visit(self, open_: _Open) -> Iterator[tuple[str, Timing | Failure]]:
        """Times the unfinished kernels of a batch once more; yields those that are final."""
        if open_.generation != self._worker.generation:
            failure = self._compile(open_)
            if failure is not None:
                yield from self._give_up(open_, failure)
                return
        empty_branch = len(open_.measured)
        known = {branch: open_.measured[branch].runs for branch in open_.unfinished}
        known[empty_branch] = open_.empty_runs
        request = TimePass(
            handle=open_.handle,
            branches=tuple(open_.unfinished),
            runs={branch: runs for branch, runs in known.items() if runs is not None},
            rule=self._rule.visit,
        )
        answer = self._worker.ask(request, limit_s=self._rule.visit_limit_s)
        if isinstance(answer, Failure):
            yield from self._give_up(open_, answer)
            return
        self._record(open_, answer)
        for branch in list(open_.unfinished):
            one = open_.measured[branch]
            if self._is_final(one):
                open_.unfinished.remove(branch)
                yield one.candidate.key, self._outcome(one, open_)
        open_.due = self._clock() + self._rule.spacing_s
        if not open_.unfinished:
            self._open.remove(open_)
            self._worker.ask(Drop(handles=(open_.handle,)), limit_s=self._rule.compile_limit_s)

    def _record(self, open_: _Open, result: PassResult) -> None:
        if result.floor_s < self.floor_s:
            self.floor_s = result.floor_s
            remember_floor(self._worker, self.floor_s)
        self.quiet_share = result.quiet_share
        empty_branch = len(open_.measured)
        open_.empty.extend(_numbered(result, empty_branch, open_.visits))
        open_.empty_runs = result.runs[empty_branch]
        open_.visits += 1
        rounds = quiet = 0
        for branch in result.samples.keys() - {empty_branch}:
            one = open_.measured[branch]
            one.samples.extend(_numbered(result, branch, one.visits))
            one.runs = result.runs[branch]
            one.visits += 1
            rounds += len(result.samples[branch]) // 2
            quiet += gated_rounds(against_own_quiet(result.samples[branch]))
        self._loud = quiet < _LOUD_SHARE * rounds

    def _is_final(self, one: _Measured) -> bool:
        rule = self._rule
        if one.visits < rule.passes:
            return False
        enough = gated_rounds(self._comparable(one.samples)) >= rule.gated_rounds
        return enough or one.visits >= rule.passes + rule.extra_passes

    def _outcome(self, one: _Measured, open_: _Open) -> Timing | Failure:
        samples = self._comparable(one.samples)
        timing = Timing(
            samples=samples,
            clock=Clock.WALL,
            method=METHOD,
            overhead_s=_seconds_of_empty(self._comparable(open_.empty), self._statistic),
        )
        rounds = timing.slopes_s().size
        if rounds == 0:
            message = f"none of {len(samples) // 2} rounds was quiet; run 'kernelcast doctor'"
            return Failure(reason=Reason.TOO_LOUD, message=message, samples=samples)
        seconds = timing.seconds(self._statistic)
        if not seconds > 0:
            message = f"the label of {rounds} quiet rounds would be {seconds:.3g} s"
            return Failure(reason=Reason.NO_SLOPE, message=message, samples=samples)
        return timing

    def _comparable(self, samples: Iterable[tuple[float, Sample]]) -> tuple[Sample, ...]:
        """Samples of several visits, loudness against the lowest floor, which an early one did not know."""
        return against_own_quiet(
            replace(s, loudness=s.loudness * floor_s / self.floor_s) for floor_s, s in samples
        )


def _groups(candidates: Iterable[Candidate], rule: KernelRule) -> Iterator[list[_Measured]]:
    """Kernels that go into one executable: as many as fit; an in-place kernel alone, with its own buffer."""
    group: list[_Measured] = []
    group_bytes = 0
    for candidate in candidates:
        bytes_ = _parameter_bytes(candidate.kernel)
        if candidate.kernel.aliases or bytes_ > rule.batch_bytes:
            yield [_Measured(candidate=candidate)]
            continue
        if group and (len(group) == rule.batch_kernels or group_bytes + bytes_ > rule.batch_bytes):
            yield group
            group, group_bytes = [], 0
        group.append(_Measured(candidate=candidate))
        group_bytes += bytes_
    if group:
        yield group


def _parameter_bytes(kernel: Kernel) -> int:
    return sum(p.shape.byte_size for p in kernel.program.entry_computation.parameters)


def _bytes_needed(kernel: Kernel) -> int:
    """Bytes of the inputs, once as the caller's array and once on the device, and of the outputs."""
    return 2 * _parameter_bytes(kernel) + kernel.root.shape.byte_size


def _numbered(result: PassResult, branch: int, visit: int) -> list[tuple[float, Sample]]:
    """Samples with round numbers that are unique over visits, and the floor that their loudness refers to."""
    return [
        (result.floor_s, replace(sample, round=sample.round + visit * _ROUNDS_PER_VISIT))
        for sample in result.samples[branch]
    ]


def _seconds_of_empty(samples: tuple[Sample, ...], statistic: Statistic) -> float:
    """Seconds of an empty iteration, by the statistic that kernels are labelled with; if no round was quiet,
    the median of all."""
    timing = Timing(samples=samples, clock=Clock.WALL, method=METHOD)
    if timing.slopes_s().size == 0:
        return max(0.0, float(np.median(timing.slopes_s(gated=False))))
    return max(0.0, timing.seconds(statistic))
