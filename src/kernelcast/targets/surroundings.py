"""What else goes on on this machine, as far as the system tells: what may disturb measurements."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernelcast.targets.chip import chip_name, cpu_fields

# Processes that use less than this fraction of a core are not worth naming.
_BUSY_FRACTION = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyProcess:
    """Another process that uses a core.

    Attributes:
        cores: how much of cores it used on average.
    """

    process: int
    name: str
    cores: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The machine while it was looked at.

    Attributes:
        chip: model of the processor.
        cpus: that this process may use.
        load: runnable processes, average of the last minute.
        busy: other processes that used cores, the busiest first.
        governors: of the CPUs' clocks; empty where the system hides them.
        is_virtual: whether this is a virtual machine, whose host may be shared.
        memory_bytes: of the machine.
        groups_sessions: whether the scheduler shares the cores among sessions first, so that ``nice`` has no
            effect between them.
    """

    chip: str
    cpus: tuple[int, ...]
    load: float
    busy: tuple[BusyProcess, ...]
    governors: tuple[str, ...]
    is_virtual: bool
    memory_bytes: int
    groups_sessions: bool


def look_around(
    *,
    seconds: float = 1.0,
    own: frozenset[int] = frozenset(),
    sleep: Callable[[float], None] = time.sleep,
) -> Surroundings:
    """The surroundings, other processes watched for so long.

    Args:
        own: processes that are not to be named, beside this one.
    """
    before = _processor_seconds()
    sleep(seconds)
    after = _processor_seconds()
    busy = [
        BusyProcess(process=process, name=name, cores=(used - before[process][1]) / seconds)
        for process, (name, used) in after.items()
        if process in before and process not in own and process != os.getpid()
    ]
    return Surroundings(
        chip=chip_name(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        load=os.getloadavg()[0],
        busy=tuple(sorted((b for b in busy if b.cores >= _BUSY_FRACTION), key=lambda b: -b.cores)),
        governors=_governors(),
        is_virtual="hypervisor" in cpu_fields().get("flags", "").split(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        groups_sessions=_groups_sessions(),
    )


def _processor_seconds() -> dict[int, tuple[str, float]]:
    """Name and processor seconds so far of each process."""
    found: dict[int, tuple[str, float]] = {}
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended between the two lines above
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        found[int(entry.name)] = (name, (int(fields[11]) + int(fields[12])) / ticks_per_s)
    return found


def _groups_sessions() -> bool:
    try:
        return Path("/proc/sys/kernel/sched_autogroup_enabled").read_text(encoding="ascii").strip() == "1"
    except OSError:  # a kernel without it
        return False


def _governors() -> tuple[str, ...]:
    paths = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return tuple(sorted({path.read_text(encoding="ascii").strip() for path in paths}))
