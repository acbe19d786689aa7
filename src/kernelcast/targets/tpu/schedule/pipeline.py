"""How far a kernel's pipeline runs ahead, narrowed to fewer buffers than it was scheduled with.

A window's buffers take turns, each with a flag of its own beside the others' (same allocation). Today's
compiler lets up to six take turns. The kernels with published times behave as if two did: an older compiler
made them. To compare with those times, transfers that two buffers could not have held yet are held back until
the core has got far enough.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kernelcast.targets.tpu.schedule.trace import Transfer

_ALLOCATION_SHIFT = 24


def ring_of(flag: int) -> int:
    """Names the flags that take turns with this one."""
    return flag >> _ALLOCATION_SHIFT


@dataclass(slots=True)
class ReadRing:
    """Reads of one window: those under way, and those held back.

    Attributes:
        buffers: that may be filled or in use at a time.
        open_granules: by flag, what was handed over and not yet taken off the flag.
        held: in order.
    """

    buffers: int
    open_granules: dict[int, int] = field(default_factory=dict[int, int])
    held: deque[Transfer] = field(default_factory=deque[Transfer])

    def offer(self, transfer: Transfer) -> bool:
        """Whether a transfer may be handed over now; held back otherwise."""
        if self.held or not self._fits(transfer):
            self.held.append(transfer)
            return False
        self._open(transfer)
        return True

    def arrive(self, flag: int, granules: int) -> list[Transfer]:
        """The transfers to hand over when the core begins to wait until a flag has counted so many."""
        handed: list[Transfer] = []
        while self.held and (self._fits(self.held[0]) or self.open_granules.get(flag, 0) < granules):
            transfer = self.held.popleft()
            self._open(transfer)
            handed.append(transfer)
        return handed

    def take(self, flag: int, granules: int) -> None:
        """The core has used what it waited for."""
        if flag in self.open_granules:
            self.open_granules[flag] -= granules
            if self.open_granules[flag] <= 0:
                del self.open_granules[flag]

    def _fits(self, transfer: Transfer) -> bool:
        return transfer.flag in self.open_granules or len(self.open_granules) < self.buffers

    def _open(self, transfer: Transfer) -> None:
        self.open_granules[transfer.flag] = self.open_granules.get(transfer.flag, 0) + transfer.granules


@dataclass(slots=True)
class WriteRing:
    """Writes of one window: the arrivals that the next computation would have to wait for.

    Attributes:
        buffers: that may be filled or under way at a time.
        under_way: (flag, arrival) of the latest write of each buffer, oldest first.
    """

    buffers: int
    under_way: deque[tuple[int, float]] = field(default_factory=deque[tuple[int, float]])

    def begin(self, flag: int, arrival: float) -> float:
        """When there is a free buffer again, after a write that was just handed over."""
        if self.under_way and self.under_way[-1][0] == flag:
            self.under_way.pop()
        self.under_way.append((flag, arrival))
        return self.under_way.popleft()[1] if len(self.under_way) >= self.buffers else 0.0
