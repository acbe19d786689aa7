"""Kernels whose times tell what a machine can do and how well it repeats itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelcast.core.analytical import Peaks
from kernelcast.core.kernel import Kernel, Kind
from kernelcast.core.timing import Timing
from kernelcast.hlo.text import parse
from kernelcast.targets.pjrt.device import Device
from kernelcast.targets.pjrt.xla_cpu import XlaCpu
from kernelcast.targets.protocol import Candidate

# Elements of the element-wise probes: from the first-level cache to main memory (8 bytes each).
_ELEMENTS = (256, 4_096, 32_768, 262_144, 1_048_576, 4_194_304)
_DOT_SIZE = 256
_COPY_ELEMENTS = 1_572_864

_ELEMENTWISE = """HloModule probe

%work {{
  %x = f32[{n}]{{0}} parameter(0)
  %tanh = f32[{n}]{{0}} tanh(%x)
  ROOT %product = f32[{n}]{{0}} multiply(%tanh, %x)
}}

ENTRY %main {{
  %x = f32[{n}]{{0}} parameter(0)
  ROOT %kernel = f32[{n}]{{0}} fusion(%x), kind=kLoop, calls=%work
}}
"""
_ADD = """HloModule probe

ENTRY %main {{
  %x = f32[{n}]{{0}} parameter(0)
  %y = f32[{n}]{{0}} parameter(1)
  ROOT %sum = f32[{n}]{{0}} add(%x, %y)
}}
"""
_DOT = """HloModule probe

ENTRY %main {{
  %x = f32[{n},{n}]{{1,0}} parameter(0)
  %y = f32[{n},{n}]{{1,0}} parameter(1)
  ROOT %product = f32[{n},{n}]{{1,0}} dot(%x, %y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """How well the time of one probe repeats.

    Attributes:
        seconds: its labels, one per repetition, each compiled anew.
        footprint_bytes: what it reads and writes.
    """

    seconds: tuple[float, ...]
    footprint_bytes: int

    @property
    def spread(self) -> float:
        """(largest − smallest) / median of the labels."""
        return (max(self.seconds) - min(self.seconds)) / float(np.median(self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Listens to the machine: sentinel readings for some seconds, as loudness."""

    seconds: float

    def run(self, device: Device) -> Loudness:
        end = device.clock() + self.seconds
        readings: list[float] = []
        while device.clock() < end:
            readings.append(device.sentinel.loudness())
        return Loudness(readings=np.asarray(readings), floor_s=device.sentinel.floor_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loudness:
    """Readings in the order taken, against the floor of their moment; the floor at the end."""

    readings: np.ndarray
    floor_s: float


def repeats(target: XlaCpu, *, times: int) -> list[Repeat]:
    """Each element-wise probe, timed anew so many times; without those that gave too few labels."""
    kernels = {n: _kernel(_ELEMENTWISE.format(n=n)) for n in _ELEMENTS}
    labels: dict[int, list[float]] = {n: [] for n in _ELEMENTS}
    for _ in range(times):
        for key, outcome in target.time_kernels(Candidate(key=str(n), kernel=k) for n, k in kernels.items()):
            if isinstance(outcome, Timing):
                labels[int(key)].append(outcome.seconds(target.options.label))
    return [Repeat(seconds=tuple(s), footprint_bytes=8 * n) for n, s in labels.items() if len(s) > 1]


def peaks(target: XlaCpu) -> Peaks | None:
    """What one thread can do at most, by a matrix product and an addition of arrays of 18 MiB in all.

    None on a machine too loud to tell.
    """
    kernels = {"dot": _kernel(_DOT.format(n=_DOT_SIZE)), "add": _kernel(_ADD.format(n=_COPY_ELEMENTS))}
    seconds = {
        key: outcome.seconds(target.options.label)
        for key, outcome in target.time_kernels(Candidate(key=k, kernel=v) for k, v in kernels.items())
        if isinstance(outcome, Timing)
    }
    if len(seconds) < len(kernels):
        return None
    return Peaks(
        flops_per_s=2 * _DOT_SIZE**3 / seconds["dot"], bytes_per_s=3 * 4 * _COPY_ELEMENTS / seconds["add"]
    )


def _kernel(text: str) -> Kernel:
    return Kernel(program=parse(text), kind=Kind.LOOP)
