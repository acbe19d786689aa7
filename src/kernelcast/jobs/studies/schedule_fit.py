"""Fits the constants of the DMA model on measured runs by coordinate descent, without chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kernelcast.jobs.studies.schedule_runs import KernelRuns, Run
from kernelcast.targets.tpu.schedule.constants import FITTED
from kernelcast.targets.tpu.schedule.engine import EngineConstants
from kernelcast.targets.tpu.schedule.replay import replay

# Longer traces take most of the time and say little more.
MOST_EVENTS = 6000

FIRST_STEPS = {
    "bytes_per_cycle": 10.0,
    "read_latency_cycles": 20.0,
    "write_latency_cycles": 20.0,
    "transfer_cycles": 1.0,
    "run_cycles": 0.4,
    "conflict_cycles": 0.6,
    "issue_cycles": 1.0,
}
_LEAST = {"bytes_per_cycle": 100.0}
_ROUNDS, _HALVINGS = 30, 4

START = EngineConstants(
    granule_bytes=1024,
    bytes_per_cycle=450.0,
    read_latency_cycles=300.0,
    write_latency_cycles=100.0,
    transfer_cycles=4.0,
    run_cycles=1.0,
    conflict_cycles=2.0,
    conflict_bytes=16 << 10,
    issue_cycles=2.0,
)
"""Round numbers near what the published figures suggest."""


def replayed_s(run: Run, engine: EngineConstants, *, buffers: int | None, hertz: float) -> float:
    """The simulated seconds of a run; NaN where the replay does not understand its flags."""
    done = replay(run.events, engine, buffers=buffers)
    return math.nan if done.starved else done.cycles / hertz


def fit(kernels: Sequence[KernelRuns], *, hertz: float, buffers: int | None) -> EngineConstants:
    """The constants with the least mean over kernels of the mean |log(simulated / measured)|.

    Convolutions and kernels without windows are left out, and so are traces of more than ``MOST_EVENTS``.

    Args:
        hertz: of the core; not fitted.
        buffers: see ``replay``.
    """
    used = [
        [run for run in kernel.runs if len(run.events) <= MOST_EVENTS]
        for kernel in kernels
        if kernel.has_windows and not kernel.is_convolution
    ]

    def loss(engine: EngineConstants) -> float:
        means: list[float] = []
        for runs in used:
            errors = [
                abs(math.log(replayed_s(run, engine, buffers=buffers, hertz=hertz) / run.measured_s))
                for run in runs
            ]
            known = [error for error in errors if not math.isnan(error)]
            if known:
                means.append(sum(known) / len(known))
        return sum(means) / len(means)

    best, least, steps = START, loss(START), dict(FIRST_STEPS)
    halvings = 0
    for _ in range(_ROUNDS):
        before = least
        for name in FITTED:
            for sign in (1, -1):
                moved = max(_LEAST.get(name, 0.0), getattr(best, name) + sign * steps[name])
                trial = replace(best, **{name: round(moved, 6)})
                if trial != best and (value := loss(trial)) < least - 1e-6:
                    best, least = trial, value
                    break
        if least == before:
            if halvings == _HALVINGS:
                break
            steps, halvings = {name: step / 2 for name, step in steps.items()}, halvings + 1
    return best
