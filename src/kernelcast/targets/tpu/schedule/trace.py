"""What a kernel does over time, free of any model of time: control flow never waits on a clock.

A trace is made once per listing; the DMA model replays it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Compute:
    """The core issues bundles.

    Attributes:
        cycles: how long.
    """

    cycles: int


class Direction(StrEnum):
    """Between which memories a transfer goes."""

    READ = "hbm-to-vmem"
    WRITE = "vmem-to-hbm"
    LOCAL = "within-the-core"


@dataclass(frozen=True, slots=True)
class Transfer:
    """The core hands a transfer to the DMA engine.

    Attributes:
        direction: of the bytes.
        granules: how much; a granule is the engine's unit.
        hbm_steps, hbm_stride: granules that lie together in HBM, and from the start of one such run to the
            next; equal where HBM is read or written without gaps.
        vmem_steps, vmem_stride: the same of the core's memory.
        flag: the synchronisation flag that counts its granules when they have arrived.
        is_described: whether the core wrote a descriptor to scalar memory before.
    """

    direction: Direction
    granules: int
    hbm_steps: int
    hbm_stride: int
    vmem_steps: int
    vmem_stride: int
    flag: int
    is_described: bool

    @property
    def run(self) -> int:
        """Granules that lie together on both sides before either jumps; all of them where none does."""
        return min(self.hbm_run, self.vmem_run)

    @property
    def hbm_run(self) -> int:
        """Granules between two jumps in HBM."""
        return self.granules if self.hbm_steps == self.hbm_stride else self.hbm_steps

    @property
    def vmem_run(self) -> int:
        """Granules between two jumps in the core's memory."""
        return self.granules if self.vmem_steps == self.vmem_stride else self.vmem_steps


@dataclass(frozen=True, slots=True)
class Wait:
    """The core waits until a flag counts at least so many granules.

    Attributes:
        flag: which.
        granules: how many.
    """

    flag: int
    granules: int


@dataclass(frozen=True, slots=True)
class Adjust:
    """The core adds to a flag, most often to take away what it waited for.

    Attributes:
        flag: which.
        granules: signed.
    """

    flag: int
    granules: int


Event = Compute | Transfer | Wait | Adjust


def merged(events: Iterable[Event]) -> Iterator[Event]:
    """The events with neighbouring stretches of computing made one."""
    cycles = 0
    for event in events:
        if isinstance(event, Compute):
            cycles += event.cycles
            continue
        if cycles:
            yield Compute(cycles)
            cycles = 0
        yield event
    if cycles:
        yield Compute(cycles)
