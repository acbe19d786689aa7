"""Measures how noisy this machine is, and what it can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelcast.core.analytical import Peaks
from kernelcast.core.timing import GATE, Failure
from kernelcast.errors import TargetError
from kernelcast.targets.pjrt.options import XlaCpuOptions
from kernelcast.targets.pjrt.probes import Listen, Repeat, peaks, repeats
from kernelcast.targets.pjrt.xla_cpu import XlaCpu
from kernelcast.targets.surroundings import Surroundings, look_around

# The probes of the peaks last milliseconds each; on a busy machine few of their rounds are left alone.
_VISITS_FOR_PEAKS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreNoise:
    """How quiet one core is.

    Attributes:
        cpu: its number.
        floor_s: of the sentinel there.
        quiet_share: fraction of the sentinel's readings that were quiet.
        typical_loud: median loudness of the readings that were not; NaN where all were quiet.
        longest_loud_s: longest stretch without a quiet reading.
    """

    cpu: int
    floor_s: float
    quiet_share: float
    typical_loud: float
    longest_loud_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found.

    Attributes:
        surroundings: of the measurements.
        cores: one entry per CPU listened to.
        repeats: how well kernels of several sizes repeat on the first of them.
        peaks: of one thread; None where the machine was too loud to tell.
    """

    surroundings: Surroundings
    cores: tuple[CoreNoise, ...]
    repeats: tuple[Repeat, ...]
    peaks: Peaks | None


def examine(cpus: Sequence[int], *, listen_s: float = 5.0, repetitions: int = 3) -> Examination:
    """Listens to each of the CPUs, then times probes on the first.

    Args:
        cpus: that this process may use.
        listen_s: seconds on each.
        repetitions: of each probe, compiled anew.

    Raises:
        TargetError: a CPU cannot be used.
    """
    surroundings = look_around()
    cores = tuple(_listen(cpu, listen_s) for cpu in cpus)
    floor_s = min(core.floor_s for core in cores)
    options = XlaCpuOptions(floor_s=floor_s)
    options = replace(options, kernels=replace(options.kernels, passes=1, extra_passes=2))
    with XlaCpu(cpu=cpus[0], options=options) as target:
        found = tuple(repeats(target, times=repetitions))
    patient = replace(options.kernels, gated_rounds=1, extra_passes=_VISITS_FOR_PEAKS)
    with XlaCpu(cpu=cpus[0], options=replace(options, kernels=patient)) as target:
        found_peaks = peaks(target)
    return Examination(surroundings=surroundings, cores=cores, repeats=found, peaks=found_peaks)


def _listen(cpu: int, seconds: float) -> CoreNoise:
    with XlaCpu(cpu=cpu) as target:
        heard = target.worker.ask(Listen(seconds=seconds), limit_s=10 * seconds + 60)
    if isinstance(heard, Failure):
        raise TargetError(f"listening to CPU {cpu} failed: {heard}")
    quiet = heard.readings <= GATE
    # A reading with its warm-up takes about 1.4 times the floor when quiet; stretches are told in seconds.
    reading_s = seconds / len(heard.readings)
    return CoreNoise(
        cpu=cpu,
        floor_s=heard.floor_s,
        quiet_share=float(quiet.mean()),
        typical_loud=float(np.median(heard.readings[~quiet])) if not quiet.all() else float("nan"),
        longest_loud_s=_longest_run(~quiet) * reading_s,
    )


def _longest_run(flags: np.ndarray) -> int:
    """Length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return int((edges[1::2] - edges[::2]).max(initial=0))
