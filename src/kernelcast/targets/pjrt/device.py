"""What a worker of the CPU target holds: the sentinel, input arrays, compiled executables."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import numpy as np

from kernelcast.core.kernel import Kernel, Kind
from kernelcast.core.timing import Reason
from kernelcast.hlo.text import parse
from kernelcast.hlo.xla import text_to_proto
from kernelcast.targets import client
from kernelcast.targets.inputs import make_input
from kernelcast.targets.pjrt.batch import batch_text
from kernelcast.targets.pjrt.batch_inputs import FlatInput
from kernelcast.targets.sentinel import Sentinel
from kernelcast.targets.worker import Failed, Worker

# Input arrays kept for later batches; beyond it those used longest ago go.
_INPUT_CACHE_BYTES = 1 << 30
# Bound by computing, with one number as result: a kernel that writes an array is up to 15 % slower or faster
# by where the allocator puts that array (loads that follow stores 4 KiB apart).
_SENTINEL_TEXT = """HloModule sentinel

%add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%work {
  %x = f32[1024]{0} parameter(0)
  %zero = f32[] constant(0)
  %exponential = f32[1024]{0} exponential(%x)
  ROOT %total = f32[] reduce(%exponential, %zero), dimensions={0}, to_apply=%add
}

ENTRY %main {
  %x = f32[1024]{0} parameter(0)
  ROOT %kernel = f32[] fusion(%x), kind=kLoop, calls=%work
}
"""
# About 50 µs on a 2.6 GHz Sapphire Rapids core. Fixed, so that floors of several processes can be compared.
_SENTINEL_RUNS = 110
# A child whose floor is known need not look for it.
_SETTLE_AGAIN_S = 0.1

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBoot:
    """Starts the worker's device.

    Attributes:
        floor_s: the sentinel's floor as known from earlier workers on this machine, or None.
        settle_s: seconds of sentinel readings before the first request.
    """

    floor_s: float | None = None
    settle_s: float = 1.0

    def start(self) -> Device:
        client.prepare_measuring()
        return Device(floor_s=self.floor_s, settle_s=self.settle_s)


def remember_floor(worker: Worker[Device], floor_s: float) -> None:
    """Starts the next child of a worker, should this one die, with the floor that it has found."""
    worker.replace_boot(DeviceBoot(floor_s=floor_s, settle_s=_SETTLE_AGAIN_S))


class Device:
    """The state that the requests of one worker share."""

    def __init__(
        self,
        *,
        floor_s: float | None = None,
        settle_s: float = 1.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.clock = clock
        self._kept: dict[int, object] = {}
        self._next_handle = 0
        self._inputs: OrderedDict[FlatInput, jax.Array] = OrderedDict()
        self._numbers: dict[int, jax.Array] = {}
        loop = self._sentinel_loop()
        self.sentinel = Sentinel(
            lambda: loop(_SENTINEL_RUNS), warm=lambda: (loop(1), loop(1)), clock=clock, floor_s=floor_s
        )
        self.sentinel.settle(settle_s)

    def timed(self, work: Callable[[], object]) -> tuple[float, float]:
        """Wall seconds of some work, and their ratio to the seconds in which this process ran.

        All its threads count, since XLA hands part of a program to another one. The ratio tells what the
        sentinel cannot: that another process had the core in the middle of the work.
        """
        ran = time.process_time()
        begin = self.clock()
        work()
        seconds = self.clock() - begin
        return seconds, max(1.0, seconds / max(time.process_time() - ran, 1e-9))

    def keep(self, thing: object) -> int:
        """A handle by which later requests find the thing."""
        self._next_handle += 1
        self._kept[self._next_handle] = thing
        return self._next_handle

    def kept(self, handle: int, kind: type[_Kept]) -> _Kept:
        """What a handle stands for."""
        thing = self._kept.get(handle)
        if not isinstance(thing, kind):
            raise Failed(
                Reason.RUN, f"handle {handle} holds {type(thing).__name__}, expected {kind.__name__}"
            )
        return thing

    def drop(self, handle: int) -> None:
        """Forgets a kept thing; its memory is freed."""
        self._kept.pop(handle, None)

    def number(self, value: int) -> jax.Array:
        """An int32 scalar on the device."""
        if value not in self._numbers:
            self._numbers[value] = client.to_device(np.asarray(value, np.int32))
        return self._numbers[value]

    def input(self, flat: FlatInput) -> jax.Array:
        """The array that a flat input of a batch describes; shared between batches."""
        if flat not in self._inputs:
            values = make_input(flat.element_type, (flat.elements,), flat.spec, seed=flat.slot)
            self._inputs[flat] = client.to_device(values)
            while len(self._inputs) > 1 and sum(a.nbytes for a in self._inputs.values()) > _INPUT_CACHE_BYTES:
                self._inputs.popitem(last=False)
        self._inputs.move_to_end(flat)
        return self._inputs[flat]

    def _sentinel_loop(self) -> Callable[[int], object]:
        """Runs the sentinel's kernel so many times."""
        batch = batch_text([Kernel(program=parse(_SENTINEL_TEXT), kind=Kind.LOOP)])
        proto = text_to_proto(batch.text)
        executable = client.compile_program(batch.carrier, transform=lambda _: proto)
        branch = self.number(0)
        arrays = [self.input(flat) for flat in batch.inputs]
        return lambda runs: executable.execute([self.number(runs), branch, *arrays])
