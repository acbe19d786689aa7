"""What the processor of this machine calls itself."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def chip_name() -> str:
    """Model name with family, model and stepping, since virtual machines hide the marketing name."""
    fields = cpu_fields()
    if "model name" not in fields:
        return platform.processor() or platform.machine()
    numbers = [fields.get(key, "?") for key in ("cpu family", "model", "stepping")]
    return f"{fields['model name']} (family {numbers[0]}, model {numbers[1]}, stepping {numbers[2]})"


def cpu_fields() -> dict[str, str]:
    """What the system says about the first processor; empty where it has no ``/proc/cpuinfo``."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8", errors="replace").split("\n\n", 1)[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}
