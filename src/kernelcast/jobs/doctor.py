"""Is this machine fit for measuring? What was found, in numbers and in words."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

from kernelcast.data.durable import write_durably
from kernelcast.errors import TargetError
from kernelcast.targets.doctor import Examination, examine
from kernelcast.targets.pjrt.probes import Repeat
from kernelcast.targets.tpu.check import TpuCheck, check_tpu

# Below this share of quiet time a collection waits more than it measures; below the other it gets nowhere.
_FIT_SHARE, _USABLE_SHARE = 0.5, 0.05
# Kernels that differ by more than this between two measurements hide what a model could learn.
_FIT_SPREAD, _USABLE_SPREAD = 0.06, 0.15
_SHORT_S = 5e-6
_FOOTPRINT_EDGES = (1 << 20, 4 << 20, 16 << 20)


class Fitness(StrEnum):
    """Whether measurements here mean something."""

    FIT = "fit"
    USABLE = "usable"
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """What ``kernelcast doctor`` found.

    Attributes:
        examination: the measurements.
        fitness: the verdict.
        reasons: why it is not better, one sentence each; empty for a machine that is fit.
        disturbances: what may be behind the noise, one sentence each.
        tpu: whether kernels can be compiled for TPUs, a sentence.
    """

    examination: Examination
    fitness: Fitness
    reasons: tuple[str, ...]
    disturbances: tuple[str, ...]
    tpu: str

    @property
    def verdict(self) -> str:
        """The verdict as a sentence."""
        return {
            Fitness.FIT: "This machine is fit for measuring.",
            Fitness.USABLE: "This machine can be measured on with patience: "
            "noisy samples are dropped, so everything takes longer.",
            Fitness.UNFIT: "This machine is not fit for measuring: times taken here would not repeat.",
        }[self.fitness]

    def to_json(self) -> dict[str, Any]:
        """As plain values; ``flops_per_s`` and ``bytes_per_s`` at the top, where the roofline reads them."""
        peaks = self.examination.peaks
        fields: dict[str, Any] = {} if peaks is None else asdict(peaks)
        return {
            **fields,
            "sentinel_floor_s": min(core.floor_s for core in self.examination.cores),
            "fitness": self.fitness.value,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "disturbances": list(self.disturbances),
            "tpu": self.tpu,
            "cores": [_without_nan(asdict(core)) for core in self.examination.cores],
            "repeats": [
                {"footprint_bytes": r.footprint_bytes, "seconds": list(r.seconds), "spread": r.spread}
                for r in self.examination.repeats
            ],
            "surroundings": asdict(self.examination.surroundings),
        }

    def save(self, path: Path) -> None:
        """Writes ``to_json`` to a file."""
        write_durably(path, (json.dumps(self.to_json(), indent=2) + "\n").encode())


def doctor(cpus: Sequence[int] = (), *, listen_s: float = 5.0, repetitions: int = 3) -> DoctorReport:
    """Examines this machine; takes about 30 seconds on a quiet one.

    Args:
        cpus: to listen to; all that this process may use if none are given.
        listen_s: seconds on each of them.
        repetitions: of each probe kernel.

    Raises:
        TargetError: a CPU cannot be used, or the system has no CPU affinity.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise TargetError("measuring needs processes pinned to one CPU, which only Linux can do here")
    chosen = tuple(cpus) or tuple(sorted(os.sched_getaffinity(0)))
    return report_on(examine(chosen, listen_s=listen_s, repetitions=repetitions), check_tpu())


def report_on(examination: Examination, tpu: TpuCheck) -> DoctorReport:
    """The verdict on measurements, with its reasons, and what was found about the extra ``tpu``."""
    share = min(core.quiet_share for core in examination.cores)
    spread = max((r.spread for r in examination.repeats), default=math.inf)
    reasons: list[str] = []
    if share < _FIT_SHARE:
        reasons.append(f"the machine is quiet {share:.0%} of the time on its louder core")
    if spread >= _FIT_SPREAD:
        reasons.append(
            "no probe kernel could be timed twice"
            if math.isinf(spread)
            else f"the worst probe kernel differs by {spread:.0%} between repetitions"
        )
    if share >= _FIT_SHARE and spread < _FIT_SPREAD:
        fitness = Fitness.FIT
    elif share >= _USABLE_SHARE and spread < _USABLE_SPREAD:
        fitness = Fitness.USABLE
    else:
        fitness = Fitness.UNFIT
    return DoctorReport(
        examination=examination,
        fitness=fitness,
        reasons=tuple(reasons),
        disturbances=tuple(_disturbances(examination)),
        tpu=tpu.sentence,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Repeatability of the probes of one band.

    Attributes:
        name: of the band, for a table.
        median_spread, worst_spread: over its probes, as fractions.
        probes: how many.
    """

    name: str
    median_spread: float
    worst_spread: float
    probes: int


def bands(examination: Examination) -> list[Band]:
    """Repeatability by time and by footprint; bands without a probe are left out."""

    def seconds(repeat: Repeat) -> float:
        return sorted(repeat.seconds)[len(repeat.seconds) // 2]

    edges = (0, *_FOOTPRINT_EDGES, math.inf)
    groups = [
        ("below 5 µs", [r for r in examination.repeats if seconds(r) < _SHORT_S]),
        ("5 µs and more", [r for r in examination.repeats if seconds(r) >= _SHORT_S]),
        *(
            (_megabytes(low, high), [r for r in examination.repeats if low <= r.footprint_bytes < high])
            for low, high in pairwise(edges)
        ),
    ]
    found: list[Band] = []
    for name, probes in groups:
        spreads = sorted(r.spread for r in probes)
        if spreads:
            middle = spreads[len(spreads) // 2]
            found.append(Band(name=name, median_spread=middle, worst_spread=spreads[-1], probes=len(spreads)))
    return found


def _megabytes(low: float, high: float) -> str:
    if low == 0:
        return f"below {int(high) >> 20} MB"
    return f"{int(low) >> 20} MB and more" if math.isinf(high) else f"{int(low) >> 20}–{int(high) >> 20} MB"


def _disturbances(examination: Examination) -> list[str]:
    around = examination.surroundings
    found: list[str] = []
    for busy in around.busy[:5]:
        found.append(
            f"process {busy.process} ({busy.name}) uses {busy.cores:.0%} of a core: end it while measuring"
        )
    if around.busy and around.groups_sessions:
        found.append(
            "the scheduler shares the cores among sessions first (sched_autogroup_enabled is 1): "
            "nice does not help against another session, a value below 0 in /proc/<process>/autogroup does"
        )
    if around.load > len(around.cpus):
        found.append(f"load {around.load:.1f} on {len(around.cpus)} CPUs: more work than cores")
    if around.is_virtual:
        found.append("this is a virtual machine: other guests of its host may share the cores and the memory")
    changing = [governor for governor in around.governors if governor != "performance"]
    if changing:
        found.append(
            f"the clock governor is {', '.join(changing)}: set it to performance, or the clock changes"
        )
    if len(around.cpus) == 1:
        found.append("only one CPU: this program and its worker share it")
    return found


def _without_nan(fields: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in fields.items()}
