"""A model of the DMA engine: when a transfer that the core hands over has arrived.

One engine serves transfers in the order handed over. Each takes time of the engine by its bytes, by the runs
that it is broken into, and once for itself; its granules count on the flag some latency after the last byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelcast.targets.tpu.schedule.trace import Direction, Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConstants:
    """What the model of one chip's engine is made of. Where each number is from stands in ``constants.py``.

    Attributes:
        granule_bytes: the unit of sizes and strides.
        bytes_per_cycle: between HBM and the core's memory, without gaps.
        read_latency_cycles, write_latency_cycles: from the last byte to the flag.
        transfer_cycles: of the engine for every transfer.
        run_cycles: of the engine for every run of granules that lie together, if there are several.
        conflict_cycles: besides, for every run where the HBM stride is a multiple of ``conflict_bytes``.
        conflict_bytes: runs so far apart fall into the same HBM bank.
        issue_cycles: of the core for every transfer handed over.
    """

    granule_bytes: int
    bytes_per_cycle: float
    read_latency_cycles: float
    write_latency_cycles: float
    transfer_cycles: float
    run_cycles: float
    conflict_cycles: float
    conflict_bytes: int
    issue_cycles: float

    def occupied_cycles(self, transfer: Transfer) -> float:
        """How long the engine works on a transfer."""
        cycles = transfer.granules * self.granule_bytes / self.bytes_per_cycle + self.transfer_cycles
        if transfer.run < transfer.granules:
            runs = transfer.granules / transfer.run
            is_conflict = (
                transfer.hbm_run < transfer.granules
                and transfer.hbm_stride * self.granule_bytes % self.conflict_bytes == 0
            )
            cycles += runs * (self.run_cycles + (self.conflict_cycles if is_conflict else 0.0))
        return cycles

    def latency_cycles(self, transfer: Transfer) -> float:
        """From the last byte to the flag."""
        is_read = transfer.direction is Direction.READ
        return self.read_latency_cycles if is_read else self.write_latency_cycles
