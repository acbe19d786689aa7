"""A fixed piece of work, timed again and again to tell whether the machine is quiet.

Shared hosts run at full speed or, for stretches up to seconds, 1.4–2 times slower, and no counter says which.
A sample counts only when the sentinel ran at its best speed just before and just after it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from kernelcast.core.timing import GATE, Sample

# The floor is the reading of this rank, not the very smallest: a few freak readings are below what a quiet
# machine gives again (0.2 % of 340,000 readings apart on a quiet two-core host).
_FLOOR_RANK = 20
# Two quiet readings in a row end a wait: loud bursts come with single quiet readings in between.
_QUIET_IN_A_ROW = 2
_READING_TRIES = 3
# Wall over processor seconds of a reading that was interrupted; undisturbed ones are below 1.01.
_INTERRUPTED = 1.2
# Wide vector instructions lower the core's clock, and it stays low for up to a millisecond: after such a
# kernel the sentinel is 10–14 % slower on a quiet machine. Loud stretches begin at 40 %.
_LOWEST_CLOCK = 1.2


class Sentinel:
    """Readings of one piece of work against the best ever seen.

    The floor is of all time: a floor over recent readings drifts up in a long loud stretch, and then lets
    every sample pass.

    Attributes:
        readings: how many so far.
        quiet_readings: how many of them were quiet.
    """

    def __init__(
        self,
        work: Callable[[], object],
        *,
        warm: Callable[[], object],
        clock: Callable[[], float] = time.perf_counter,
        processor_clock: Callable[[], float] = time.process_time,
        floor_s: float | None = None,
    ) -> None:
        """
        Args:
            work: always the same, bound by computing and not by memory, about 50 µs long.
            warm: brings code and data of ``work`` back into the caches, untimed.
            clock: wall seconds.
            processor_clock: seconds in which this process ran.
            floor_s: a floor that an earlier sentinel with the same work found on this machine.
        """
        self._work = work
        self._warm = warm
        self._clock = clock
        self._processor_clock = processor_clock
        self._known_floor_s = floor_s
        self._smallest_s: list[float] = []  # heap of negated readings: the largest of the smallest on top
        self.readings = 0
        self.quiet_readings = 0

    @property
    def floor_s(self) -> float:
        """Seconds of the work on a quiet machine, as far as seen; valid after the first reading."""
        floor_s = -self._smallest_s[0]
        return floor_s if self._known_floor_s is None else min(floor_s, self._known_floor_s)

    @property
    def quiet_share(self) -> float:
        """Fraction of the readings that were quiet; NaN before the first."""
        return self.quiet_readings / self.readings if self.readings else float("nan")

    def loudness(self) -> float:
        """One reading over the floor: about 1 on a quiet machine.

        A reading during which another process had the core is taken again: it says nothing about how fast the
        core is, and whether a sample itself was interrupted is seen by the sample's own clocks.
        """
        reading_s, was_interrupted = self._reading()
        for _ in range(_READING_TRIES - 1):
            if was_interrupted:
                reading_s, was_interrupted = self._reading()
        if len(self._smallest_s) < _FLOOR_RANK:
            heapq.heappush(self._smallest_s, -reading_s)
        elif reading_s < -self._smallest_s[0]:
            heapq.heapreplace(self._smallest_s, -reading_s)
        loudness = reading_s / self.floor_s
        self.readings += 1
        self.quiet_readings += loudness <= GATE
        return loudness

    def _reading(self) -> tuple[float, bool]:
        """Wall seconds of the work, and whether this process was off the core for part of them."""
        self._warm()
        ran = self._processor_clock()
        begin = self._clock()
        self._work()
        reading_s = self._clock() - begin
        return reading_s, reading_s > _INTERRUPTED * (self._processor_clock() - ran)

    def settle(self, seconds: float) -> None:
        """Takes readings for so long, to find the floor, and starts counting the quiet ones anew."""
        end = self._clock() + seconds
        while self._clock() < end or len(self._smallest_s) < _FLOOR_RANK:
            self.loudness()
        self.readings = self.quiet_readings = 0

    def wait(self, limit_s: float) -> bool:
        """Whether the machine became quiet within the limit; returns as soon as it is."""
        end = self._clock() + limit_s
        in_a_row = 0
        while True:
            in_a_row = in_a_row + 1 if self.loudness() <= GATE else 0
            if in_a_row == _QUIET_IN_A_ROW:
                return True
            if self._clock() >= end:
                return False


def against_own_quiet(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Samples whose loudness is 1 where the machine was as quiet as it ever was around these samples.

    What is timed has itself an effect on the sentinel, through the core's clock: that part is taken out, up
    to 20 %, separately for samples with many and with few runs.

    Args:
        samples: of one kernel or program, loudness against the sentinel's floor.
    """
    samples = tuple(samples)
    quietest: dict[int, float] = {}
    for sample in samples:
        quietest[sample.runs] = min(quietest.get(sample.runs, _LOWEST_CLOCK), sample.loudness)
    return tuple(replace(s, loudness=s.loudness / max(1.0, quietest[s.runs])) for s in samples)
