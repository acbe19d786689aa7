"""The constants of the time model, chip by chip, and where each number is from.

Published: clocks and HBM bandwidths (Jouppi et al., "A Domain-Specific Supercomputer for Training Deep Neural
Networks", CACM 2020). Read off schedules: the granule, since 4,096 floats are 16. Fitted: the seven of
``FITTED``, together, on the runs of eight kernels that Google measured on one core of a TPU v3 (TpuGraphs,
``op_tuning``), by the method of ``jobs.studies.schedule_fit``; the convolution is the test, and reshapes have
no windows. Chosen by looking at those runs: ``conflict_bytes``, and ``MEASURED_BUFFERS``, the study's alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.targets.tpu.schedule.engine import EngineConstants


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocking:
    """How a chip's core goes through bundles.

    Attributes:
        hertz: bundles a second.
        delay_slots: bundles after a branch that are issued whether or not it is taken.
    """

    hertz: float
    delay_slots: int


CLOCKS: Mapping[str, Clocking] = {
    "tpu_v2": Clocking(hertz=0.70e9, delay_slots=1),
    "tpu_v3": Clocking(hertz=0.94e9, delay_slots=1),
}

FITTED = (
    "bytes_per_cycle",
    "read_latency_cycles",
    "write_latency_cycles",
    "transfer_cycles",
    "run_cycles",
    "conflict_cycles",
    "issue_cycles",
)
"""Names of the constants that are fitted."""

_V3 = EngineConstants(
    granule_bytes=1024,
    # Published: 900 GB/s for two cores is 479 bytes a cycle for one; kernels reach 92 % of it.
    bytes_per_cycle=440.0,
    read_latency_cycles=271.25,
    write_latency_cycles=135.0,
    transfer_cycles=1.75,
    run_cycles=2.95,
    conflict_cycles=0.2,
    conflict_bytes=16 << 10,
    issue_cycles=0.0,
)

ENGINES: Mapping[str, EngineConstants] = {
    "tpu_v3": _V3,
    # Not fitted, not validated: published 700 GB/s for two cores and 0.70 GHz, 92 % of it reached as on v3;
    # the rest as on v3.
    "tpu_v2": EngineConstants(
        granule_bytes=1024,
        bytes_per_cycle=460.0,
        read_latency_cycles=_V3.read_latency_cycles,
        write_latency_cycles=_V3.write_latency_cycles,
        transfer_cycles=_V3.transfer_cycles,
        run_cycles=_V3.run_cycles,
        conflict_cycles=_V3.conflict_cycles,
        conflict_bytes=_V3.conflict_bytes,
        issue_cycles=_V3.issue_cycles,
    ),
}

MEASURED_BUFFERS = 2
"""Buffers of a window that the measured runs behave as if they had: an older compiler made them."""
