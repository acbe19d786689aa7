"""Fast stand-ins for what a collection works with; also run as a program that tests kill.

Usage: python collection_fakes.py FOLDER [VISIT_S]
"""

import hashlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.data.rule import LabelRule
from kernelcast.data.schema import KernelRow, OccasionRow, OccurrenceRow, PlanRow, ProgramRow
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.jobs.collection.collect import (
    CollectProgress,
    CollectReport,
    CollectSettings,
    CollectTools,
    collect,
)
from kernelcast.jobs.collection.survey import Survey
from kernelcast.targets.protocol import Candidate, TimesKernels

TARGET = TargetIdentity(kind="fake", chip="test", compiler="none 0")
RULE = LabelRule(gated_rounds=3, passes=2, extra_passes=2, spacing_s=0.0)
SETTINGS = CollectSettings(random_plans=2, cpus=(0, 1), commit_period_s=0.02)
_NAMES = itertools.count()


def negate(size: int) -> Kernel:
    return kernel_from_text(
        f"HloModule k\n\nENTRY e {{\n  a = f32[{size}]{{0}} parameter(0)\n"
        f"  ROOT r = f32[{size}]{{0}} negate(a)\n}}\n"
    )


def kernel_row(kernel: Kernel) -> KernelRow:
    return KernelRow(
        fingerprint=kernel.fingerprint, skeleton=kernel.skeleton, kind=kernel.kind.value, nodes=2,
        text=kernel.text,
    )  # fmt: skip


def fate(fingerprint: str) -> str:
    """What happens to a kernel, by its fingerprint alone: some crash, some are always loud."""
    number = hashlib.blake2b(fingerprint.encode()).digest()[0]
    return "crash" if number < 20 else "loud" if number < 40 else "timed"


class FakeSource:
    """A program with ``kernels`` kernels, of which it shares some with its neighbours."""

    def __init__(self, number: int, kernels: int = 12) -> None:
        self.id = f"program-{number}/base"
        self._sizes = range(1 + number * kernels, 5 + (number + 1) * kernels)

    def survey(self, *, seed: int, random_plans: int) -> Survey | Failure:
        if self.id == "program-3/base":
            return Failure(reason=Reason.COMPILE, message="does not compile")
        plans = ["untouched", *(f"plan{seed}.{n}" for n in range(random_plans))]
        kernels = [negate(size) for size in self._sizes]
        return Survey(
            program=ProgramRow(
                program=self.id, name=self.id.split("/")[0], family="fake", variant="base", source="test",
                licence="Apache-2.0", space="0",
            ),
            plans=[
                PlanRow(program=self.id, plan=p, encoded="", how="random" if number else "default")
                for number, p in enumerate(plans)
            ],
            occurrences=[
                OccurrenceRow(
                    program=self.id, plan=plans[number % len(plans)], kernel=k.fingerprint, calls=1,
                    times=1.0,
                    trip_source="exact",
                )
                for number, k in enumerate(kernels)
            ],
            kernels=[kernel_row(k) for k in kernels],
        )  # fmt: skip


class FakeTimer:
    """Times kernels by their fate, a few at a time."""

    def __init__(self, visit_s: float, sleep: Callable[[float], None]) -> None:
        self._visit_s = visit_s
        self._sleep = sleep

    def time_kernels(self, candidates: Iterable[Candidate]) -> Iterator[tuple[str, Timing | Failure]]:
        remaining = iter(candidates)
        while batch := list(itertools.islice(remaining, 4)):
            self._sleep(self._visit_s)
            for candidate in batch:
                yield candidate.key, self._outcome(candidate.kernel)

    def _outcome(self, kernel: Kernel) -> Timing | Failure:
        what = fate(kernel.fingerprint)
        if what == "crash":
            return Failure(reason=Reason.CRASH, message="the worker died of SIGSEGV")
        return timing(1e-6, rounds=4, loudness=1.5 if what == "loud" else 1.01)


def timing(seconds: float, *, rounds: int = 2, loudness: float = 1.0) -> Timing:
    samples = tuple(
        Sample(runs=runs, seconds=1e-4 + runs * seconds, loudness=loudness, round=round_)
        for round_ in range(rounds)
        for runs in (10, 50)
    )
    return Timing(samples=samples, clock=Clock.WALL, method="loop-slope")


def fake_occasion(seed: int) -> OccasionRow:
    name = f"{os.getpid()}-{next(_NAMES)}"
    started = "2026-01-01T00:00:00+00:00"
    return OccasionRow(occasion=name, started=started, machine="test", versions="", load=0.0, seed=seed)


def tools(visit_s: float = 0.0) -> CollectTools:
    @contextmanager
    def timer_on(cpu: int, sleep: Callable[[float], None]) -> Iterator[TimesKernels]:
        yield FakeTimer(visit_s, sleep)

    return CollectTools(
        timer_on=timer_on,
        anchors=lambda: {"anchor": timing(1e-6)},
        occasion=fake_occasion,
        clock=time.monotonic,
    )


def run(
    folder: Path,
    *,
    visit_s: float = 0.0,
    programs: int = 8,
    settings: CollectSettings = SETTINGS,
    seen: list[CollectProgress] | None = None,
) -> CollectReport:
    return collect(
        folder,
        [FakeSource(number) for number in range(programs)],
        target=TARGET,
        rule=RULE,
        tools=tools(visit_s),
        settings=settings,
        watch=seen.append if seen is not None else lambda _: None,
    )


if __name__ == "__main__":
    print("begin", flush=True)
    report = run(Path(sys.argv[1]), visit_s=float(sys.argv[2]), programs=16)
    sys.exit(130 if report.was_interrupted else 0)
