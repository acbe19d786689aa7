"""Collection on XLA:CPU: targets set up by a dataset's rule, anchors, and what an occasion notes down."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Failure, Timing
from kernelcast.data.rule import LabelRule
from kernelcast.data.schema import OccasionRow
from kernelcast.jobs.collection.anchors import time_anchors
from kernelcast.jobs.collection.collect import CollectTools
from kernelcast.targets.chip import chip_name
from kernelcast.targets.pjrt.kernel_timer import KernelRule
from kernelcast.targets.pjrt.time_kernels import PassRule
from kernelcast.targets.pjrt.xla_cpu import XlaCpu, XlaCpuOptions


def options_of(rule: LabelRule) -> XlaCpuOptions:
    """How the target measures under a dataset's rule."""
    visit = PassRule(wanted_rounds=rule.rounds_per_visit, tries=rule.tries_per_visit)
    kernels = KernelRule(
        gated_rounds=rule.gated_rounds, passes=rule.passes, extra_passes=rule.extra_passes,
        spacing_s=rule.spacing_s, visit=visit,
    )  # fmt: skip
    return XlaCpuOptions(kernels=kernels)


def cpu_identity() -> TargetIdentity:
    """The target that collections on this machine measure."""
    return XlaCpu().identity


def cpu_tools(rule: LabelRule, *, anchor_cpu: int) -> CollectTools:
    """What ``collect`` needs to measure on this machine."""
    options = options_of(rule)

    @contextmanager
    def timer_on(cpu: int, sleep: Callable[[float], None]) -> Generator[XlaCpu]:
        with XlaCpu(cpu=cpu, options=options, sleep=sleep) as target:
            yield target

    def anchors() -> Mapping[str, Timing | Failure]:
        # Visited at once: two ends of half an hour are apart enough.
        at_once = replace(options, kernels=replace(options.kernels, spacing_s=0.0))
        with XlaCpu(cpu=anchor_cpu, options=at_once) as target:
            return time_anchors(target)

    return CollectTools(timer_on=timer_on, anchors=anchors, occasion=occasion_now, clock=time.monotonic)


def occasion_now(seed: int) -> OccasionRow:
    """An occasion of this process that begins now."""
    started = datetime.now(UTC)
    names = ("kernelcast", "jax", "jaxlib", "numpy")
    return OccasionRow(
        occasion=f"{started:%Y%m%dT%H%M%SZ}-{os.getpid()}",
        started=started.isoformat(timespec="seconds"),
        machine=f"{chip_name()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}",
        versions=", ".join([f"python {platform.python_version()}", *(f"{n} {version(n)}" for n in names)]),
        load=os.getloadavg()[0],
        seed=seed,
    )
