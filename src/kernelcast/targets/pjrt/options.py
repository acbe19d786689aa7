"""How XLA:CPU is measured: rules, allocator, limits, and the CPU that does it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from kernelcast.core.timing import Statistic
from kernelcast.errors import TargetError
from kernelcast.targets.pjrt.kernel_timer import KernelRule
from kernelcast.targets.pjrt.program_timer import ProgramRule

# glibc gives freed blocks above 32 MiB back at once, and each run maps and page-faults them again (28 ms
# instead of 8–11 ms for a program with 64 MiB of temporary memory). Huge pages make times repeat better.
_MALLOC = {"mmap_threshold": 4 << 30, "trim_threshold": 8 << 30, "hugetlb": 1}


def _half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaCpuOptions:
    """How the target measures.

    Attributes:
        kernels: batches and visits of kernels.
        programs: rounds of whole programs.
        label: the statistic that makes one number of the samples. Of the two, min − min repeats better: two
            processes on two cores, 160 kernels, two visits each, at a load of 10: mean difference 1.9 % at
            ≥ 5 µs and 2.9 % below, against 2.7 % and 3.2 % for the median of slopes.
        raised_allocator: keep freed memory in the process instead of giving it back; False leaves glibc's
            stock settings, and is another target identity.
        memory_limit_bytes: resident memory at which a worker is killed; half of the machine's.
        floor_s: the sentinel's floor as ``doctor`` found it on this machine; None finds it anew.
    """

    kernels: KernelRule = field(default_factory=KernelRule)
    programs: ProgramRule = field(default_factory=ProgramRule)
    label: Statistic = Statistic.GATED_MIN_DIFFERENCE
    raised_allocator: bool = True
    memory_limit_bytes: int = field(default_factory=_half_of_memory)
    floor_s: float | None = None

    @property
    def allocator(self) -> tuple[str, ...]:
        """Settings of the allocator that differ from glibc's own."""
        return tuple(f"malloc.{name}={value}" for name, value in _MALLOC.items() if self.raised_allocator)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that a worker's libraries read when they load."""
        return {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "",  # the caller's flags would make other code under the same identity
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "GLIBC_TUNABLES": ":".join(f"glibc.{setting}" for setting in self.allocator),
        }


def usable_cpu(cpu: int | None) -> int:
    """The given CPU, or the last that this process may use.

    Raises:
        TargetError: this process may not use it, or the system has no CPU affinity.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise TargetError("measuring needs processes pinned to one CPU, which only Linux can do here")
    usable = sorted(os.sched_getaffinity(0))
    if cpu is not None and cpu not in usable:
        raise TargetError(f"CPU {cpu} cannot be used; this process may use {usable}")
    return usable[-1] if cpu is None else cpu
