"""The simulated time of a kernel from its final schedule."""

from __future__ import annotations

from dataclasses import dataclass

from kernelcast.core.timing import Clock, Failure, Reason
from kernelcast.targets.tpu.chip import TpuChip
from kernelcast.targets.tpu.schedule.constants import CLOCKS, ENGINES
from kernelcast.targets.tpu.schedule.execute import MOST_STEPS, trace_of
from kernelcast.targets.tpu.schedule.replay import Replay, replay


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTime:
    """What a kernel is expected to take on a chip that is not here.

    Attributes:
        seconds: simulated, never measured.
        replay: the cycles behind it and their parts, and what happened when.
        is_validated: whether times of this chip were compared with measured runs.
        clock: always ``simulated``.
    """

    seconds: float
    replay: Replay
    is_validated: bool
    clock: Clock = Clock.SIMULATED


def simulate(
    listing: str, chip: TpuChip, *, with_intervals: bool = False, most_steps: int = MOST_STEPS
) -> SimulatedTime | Failure:
    """The simulated time of the kernel that a listing schedules, or why there is none.

    Args:
        listing: of final bundles, as the compiler prints it.
        chip: that it was compiled for.
        with_intervals: also what core and DMA engine do when, for pictures.
        most_steps: see ``trace_of``.
    """
    if chip.name not in ENGINES:
        return Failure(
            reason=Reason.UNSUPPORTED,
            message=f"times of {chip.name} are not simulated, only those of {', '.join(ENGINES)}",
        )
    trace = trace_of(listing, delay_slots=CLOCKS[chip.name].delay_slots, most_steps=most_steps)
    if isinstance(trace, Failure):
        return trace
    done = replay(trace.events, ENGINES[chip.name], with_intervals=with_intervals)
    if done.starved:
        return Failure(
            reason=Reason.UNSUPPORTED,
            message=f"{done.starved} waits are for more than was handed over: the flags are not understood",
        )
    if not done.cycles > 0:
        return Failure(reason=Reason.UNSUPPORTED, message="the schedule takes no cycles")
    return SimulatedTime(
        seconds=done.cycles / CLOCKS[chip.name].hertz, replay=done, is_validated=chip.is_validated
    )
