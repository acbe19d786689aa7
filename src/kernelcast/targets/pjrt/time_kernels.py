"""Requests that compile a batch of kernels and time them, gated by the sentinel.

Rounds of a short and a long loop next to each other; the target's statistic makes the label of them. One
run minus the cost of a call would carry the noise of a call, and low percentiles of differences are biased,
so the label is minimum minus minimum, which is no percentile of differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import jax

from kernelcast.core.timing import Reason, Sample
from kernelcast.targets import client
from kernelcast.targets.pjrt.batch import BatchText
from kernelcast.targets.pjrt.device import Device
from kernelcast.targets.pjrt.imposed import compile_as, reason_of
from kernelcast.targets.sentinel import against_own_quiet
from kernelcast.targets.worker import Failed

# A long loop lasts at least this: shorter ones drown in the noise of a call (±1 µs).
LOOP_S = 3e-4
# More runs than this do not make the loop of an empty branch (0.03 µs a run) longer than it must be.
_MOST_RUNS = 16_384
# Long over short loop.
_RATIO = 5
# Kernels of which that many make a long loop (up to 0.1 µs each) get more rounds: what is left of their time
# after the empty iteration is taken off has several times the relative error.
_TINY_RUNS = 2_500
_ROUNDS_OF_TINY = 3
# From here on a kernel is timed with few rounds a visit, so that they take about a second together.
SLOW_S = 12e-3
_SLOW_TRIES = 4
_SLOW_VISIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRule:
    """How one visit to a kernel goes.

    Attributes:
        wanted_rounds: gated rounds after which a kernel is done for this visit.
        tries: rounds at most.
        wait_s: seconds to wait for quiet before a round, at most.
        limit_s: seconds after which no further kernel is started; what was measured comes back.
    """

    wanted_rounds: int = 3
    tries: int = 8
    wait_s: float = 0.1
    limit_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledBatch:
    """A batch that the worker keeps.

    Attributes:
        handle: by which later requests name it.
        temporary_bytes: what its executable allocates besides inputs.
        seconds: that the compile took.
    """

    handle: int
    temporary_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """The worker's side of a batch; ``run`` calls it for (branch, runs), as ``Device.timed`` does."""

    run: Callable[[int, int], tuple[float, float]]
    empty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileBatch:
    """Compiles a batch, checks that the final module is the one asked for, runs each branch once."""

    batch: BatchText

    def run(self, device: Device) -> CompiledBatch:
        begin = device.clock()
        executable, _ = compile_as(self.batch.carrier, self.batch.text)
        kept = _Batch(run=_timed_runs(device, executable, self.batch), empty=self.batch.kernels)
        return CompiledBatch(
            handle=device.keep(kept),
            temporary_bytes=executable.temporary_bytes,
            seconds=device.clock() - begin,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """What one visit gave.

    Attributes:
        samples: per branch asked for, and for the empty one, in order taken; fewer rounds than wanted, or
            none, on a loud machine.
        runs: of each of these branches' long loop.
        floor_s: the sentinel's floor at the end; loudness was taken against the floor of its moment.
        quiet_share: of the sentinel readings since the worker started.
        seconds: that the visit took.
    """

    samples: dict[int, tuple[Sample, ...]]
    runs: dict[int, int]
    floor_s: float
    quiet_share: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePass:
    """Visits the given branches of a kept batch, and the empty branch first.

    Attributes:
        runs: of the long loops, as found by an earlier visit: samples of all visits get the same lengths.
    """

    handle: int
    branches: tuple[int, ...]
    runs: Mapping[int, int]
    rule: PassRule

    def run(self, device: Device) -> PassResult:
        begin = device.clock()
        batch = device.kept(self.handle, _Batch)
        samples: dict[int, tuple[Sample, ...]] = {}
        runs = dict(self.runs)
        for branch in (batch.empty, *self.branches):
            if samples and device.clock() - begin > self.rule.limit_s:
                break
            if branch not in runs:
                runs[branch] = _runs_of_long_loop(batch, branch)
            samples[branch] = _visit(device, batch, branch, runs[branch], self.rule)
        return PassResult(
            samples=samples,
            runs=runs,
            floor_s=device.sentinel.floor_s,
            quiet_share=device.sentinel.quiet_share,
            seconds=device.clock() - begin,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Frees kept things."""

    handles: tuple[int, ...]

    def run(self, device: Device) -> None:
        for handle in self.handles:
            device.drop(handle)


def _timed_runs(
    device: Device, executable: client.Executable, batch: BatchText
) -> Callable[[int, int], tuple[float, float]]:
    """(branch, runs) → seconds of one call, and how crowded the core was."""
    arrays = [device.input(flat) for flat in batch.inputs]

    def run(branch: int, runs: int) -> tuple[float, float]:
        arguments = [device.number(runs), device.number(branch), *arrays]
        try:
            return device.timed(lambda: executable.execute(arguments))
        except jax.errors.JaxRuntimeError as error:
            raise Failed(reason_of(error, Reason.RUN), str(error)) from error

    return run


def _visit(device: Device, batch: _Batch, branch: int, runs: int, rule: PassRule) -> tuple[Sample, ...]:
    """Rounds of (short loop, long loop) until enough were quiet."""
    short = max(1, runs // _RATIO)
    sentinel = device.sentinel
    samples: list[Sample] = []
    tries, wanted = rule.tries, rule.wanted_rounds
    if runs >= _TINY_RUNS:
        tries, wanted = _ROUNDS_OF_TINY * tries, _ROUNDS_OF_TINY * wanted
    for number in range(rule.tries * _ROUNDS_OF_TINY):
        if number >= tries or gated_rounds(against_own_quiet(samples)) >= wanted:
            break
        sentinel.wait(rule.wait_s)
        batch.run(branch, 1)  # brings the kernel's data into the caches
        before = sentinel.loudness()
        short_s, crowding = batch.run(branch, short)
        between = sentinel.loudness()
        loudness = max(before, between, crowding)
        samples.append(Sample(runs=short, seconds=short_s, loudness=loudness, round=number))
        long_s, crowding = batch.run(branch, runs)
        after = sentinel.loudness()
        loudness = max(between, after, crowding)
        samples.append(Sample(runs=runs, seconds=long_s, loudness=loudness, round=number))
        if long_s / runs > SLOW_S:
            round_s = long_s + short_s + long_s / runs
            tries = max(1, min(_SLOW_TRIES, int(_SLOW_VISIT_S / round_s)))
    return tuple(samples)


def gated_rounds(samples: Iterable[Sample]) -> int:
    """Number of rounds all of whose samples are quiet."""
    quiet: dict[int, bool] = {}
    for sample in samples:
        quiet[sample.round] = quiet.get(sample.round, True) and sample.gated
    return sum(quiet.values())


def _runs_of_long_loop(batch: _Batch, branch: int) -> int:
    """How many runs make a loop that lasts ``LOOP_S``.

    The loop is grown until it does, by the seconds in which this process ran: a guess from one disturbed run
    would leave a short kernel with two runs. Nor is a first call believed: the first dot of a process takes
    a millisecond in its library, whatever its size.
    """

    def seconds(branch: int, runs: int) -> float:
        wall_s, crowding = batch.run(branch, runs)
        return wall_s / crowding

    call_s = min(seconds(batch.empty, 1) for _ in range(5))
    runs = 2
    while runs < _MOST_RUNS:
        loop_s = min(seconds(branch, runs) for _ in range(2)) - call_s
        if loop_s < 4 * LOOP_S:  # only then is one more cheap
            loop_s = min(loop_s, seconds(branch, runs) - call_s)
        if loop_s >= 0.7 * LOOP_S:
            break
        wanted = runs * LOOP_S / max(loop_s, 1e-6)
        runs = min(_MOST_RUNS, int(min(runs * 8, max(runs * 1.5, wanted))))
    return runs
