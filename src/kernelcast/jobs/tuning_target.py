"""What tuning asks of a target."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from kernelcast.core.identity import TargetIdentity
from kernelcast.targets.protocol import Fuses, TimesKernels, TimesPrograms


@runtime_checkable
class TuningTarget(Fuses, TimesKernels, TimesPrograms, Protocol):
    """A target that captures programs, times them under plans and kernel by kernel, and says who it is."""

    @property
    def identity(self) -> TargetIdentity:
        """What its times have in common."""
        ...
