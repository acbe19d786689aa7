"""What tuning asks of a target."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from kernelcast.core.identity import TargetIdentity
from kernelcast.targets.protocol import Fuses, TimesPrograms


@runtime_checkable
class TuningTarget(Fuses, TimesPrograms, Protocol):
    """A target that captures programs, times them under plans, and says whose times they are."""

    @property
    def identity(self) -> TargetIdentity:
        """What its times have in common."""
        ...
