"""Replays a trace under a model of the DMA engine: what the core and the engine do at which cycle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from kernelcast.targets.tpu.schedule.engine import EngineConstants
from kernelcast.targets.tpu.schedule.pipeline import ReadRing, WriteRing, ring_of
from kernelcast.targets.tpu.schedule.trace import Adjust, Compute, Direction, Event, Transfer, Wait


class Activity(StrEnum):
    """What an interval of a timeline shows."""

    COMPUTE = "compute"
    WAITING = "waiting"
    READ = "read"
    WRITE = "write"
    LOCAL = "local"


_ACTIVITIES = {
    Direction.READ: Activity.READ,
    Direction.WRITE: Activity.WRITE,
    Direction.LOCAL: Activity.LOCAL,
}


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of one activity, in cycles from the start of the kernel.

    Attributes:
        activity: of the core, or of the DMA engine.
        start, end: cycles.
        granules: transferred; 0 for what the core does.
    """

    activity: Activity
    start: float
    end: float
    granules: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A trace in time, in cycles of the core.

    Attributes:
        cycles: from the first bundle to the last.
        compute_cycles: in which the core issued bundles. waiting_cycles: in which it waited for a flag.
        engine_cycles: in which the DMA engine was busy, most often beside the core.
        bytes_read, bytes_written: from and to HBM.
        starved: waits for more than was ever handed over, and reads that were held back to the end; 0 in a
            trace that is understood.
        intervals: empty unless asked for.
    """

    cycles: float
    compute_cycles: float
    waiting_cycles: float
    engine_cycles: float
    bytes_read: int
    bytes_written: int
    starved: int
    intervals: tuple[Interval, ...]


def replay(
    events: Iterable[Event],
    engine: EngineConstants,
    *,
    buffers: int | None = None,
    with_intervals: bool = False,
) -> Replay:
    """The trace in time.

    Args:
        buffers: of a window that take turns at most (see ``pipeline``); None for as many as scheduled.
        with_intervals: also what happened when, for pictures.

    >>> from kernelcast.targets.tpu.schedule.constants import ENGINES
    >>> replay([Compute(10), Compute(5)], ENGINES["tpu_v3"]).cycles
    15.0
    """
    if buffers is not None and buffers < 1:
        raise ValueError(f"a window has at least one buffer, got {buffers}")
    state = _State(engine=engine, buffers=buffers, intervals=[] if with_intervals else None)
    for event in events:
        match event:
            case Compute(cycles=cycles):
                state.compute(cycles)
            case Transfer():
                state.issue(event)
            case Wait(flag=flag, granules=granules):
                state.wait(flag, granules)
            case Adjust(flag=flag, granules=granules):
                state.adjust(flag, granules)
    return Replay(
        cycles=state.now,
        compute_cycles=state.computed,
        waiting_cycles=state.waited,
        engine_cycles=state.busy,
        bytes_read=state.granules_moved[Direction.READ] * engine.granule_bytes,
        bytes_written=state.granules_moved[Direction.WRITE] * engine.granule_bytes,
        starved=state.starved + sum(len(ring.held) for ring in state.reads.values()),
        intervals=tuple(state.intervals or ()),
    )


@dataclass(slots=True, kw_only=True)
class _State:
    """Core, engine and flags while a trace is replayed; times in cycles.

    Attributes:
        now: of the core. free: when the engine has served all that it was handed.
        flags: for each the (arrival, granules) of what was handed over and not taken off yet.
    """

    engine: EngineConstants
    buffers: int | None
    intervals: list[Interval] | None
    now: float = 0.0
    free: float = 0.0
    computed: float = 0.0
    waited: float = 0.0
    busy: float = 0.0
    starved: int = 0
    granules_moved: dict[Direction, int] = field(default_factory=lambda: dict.fromkeys(Direction, 0))
    flags: dict[int, deque[tuple[float, int]]] = field(default_factory=dict[int, deque[tuple[float, int]]])
    reads: dict[int, ReadRing] = field(default_factory=dict[int, ReadRing])
    writes: dict[int, WriteRing] = field(default_factory=dict[int, WriteRing])

    def compute(self, cycles: float) -> None:
        self._show(Activity.COMPUTE, self.now, self.now + cycles)
        self.now += cycles
        self.computed += cycles

    def issue(self, transfer: Transfer) -> None:
        """The core hands a transfer over."""
        self.compute(self.engine.issue_cycles)
        if self.buffers is None or transfer.direction is Direction.LOCAL:
            self._serve(transfer)
        elif transfer.direction is Direction.READ:
            ring = self.reads.setdefault(ring_of(transfer.flag), ReadRing(buffers=self.buffers))
            if ring.offer(transfer):
                self._serve(transfer)
        else:
            ring = self.writes.setdefault(ring_of(transfer.flag), WriteRing(buffers=self.buffers))
            self._wait_until(ring.begin(transfer.flag, self._serve(transfer)))

    def wait(self, flag: int, granules: int) -> None:
        """The core waits until the flag has counted so many."""
        ring = self.reads.get(ring_of(flag))
        for transfer in ring.arrive(flag, granules) if ring else ():
            self._serve(transfer)
        latest, counted = 0.0, 0
        for arrival, arrived in self.flags.get(flag, ()):
            if counted >= granules:
                break
            latest, counted = max(latest, arrival), counted + arrived
        self.starved += counted < granules
        self._wait_until(latest)

    def adjust(self, flag: int, granules: int) -> None:
        """The core counts a flag up, or takes off what arrived first."""
        arrivals = self.flags.setdefault(flag, deque())
        if granules > 0:
            arrivals.append((self.now, granules))
        left = -granules
        if left > 0 and (ring := self.reads.get(ring_of(flag))):
            ring.take(flag, left)
        while left > 0 and arrivals:
            arrival, arrived = arrivals.popleft()
            if arrived > left:
                arrivals.appendleft((arrival, arrived - left))
            left -= arrived

    def _serve(self, transfer: Transfer) -> float:
        """The engine serves a transfer after all before it; when it counts on its flag."""
        start = max(self.now, self.free)
        self.free = start + self.engine.occupied_cycles(transfer)
        self.busy += self.free - start
        self.granules_moved[transfer.direction] += transfer.granules
        arrival = self.free + self.engine.latency_cycles(transfer)
        self.flags.setdefault(transfer.flag, deque()).append((arrival, transfer.granules))
        self._show(_ACTIVITIES[transfer.direction], start, self.free, transfer.granules)
        return arrival

    def _wait_until(self, time: float) -> None:
        if time > self.now:
            self._show(Activity.WAITING, self.now, time)
            self.waited += time - self.now
            self.now = time

    def _show(self, activity: Activity, start: float, end: float, granules: int = 0) -> None:
        if self.intervals is not None and end > start:
            self.intervals.append(Interval(activity, start, end, granules))
