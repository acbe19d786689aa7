"""Where a number comes from: commit, machine, versions, date."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from kernelcast.report.results import Record

_LIBRARIES = ("kernelcast", "jax", "jaxlib", "numpy", "equinox", "optax", "lightgbm", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What all records of one run share.

    Attributes:
        command: the command line, without paths of this machine.
    """

    command: str
    commit: str
    machine: str
    versions: Mapping[str, str]
    date: str

    def record(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        seeds: Iterable[int] = (),
        split: str = "none",
        noise: str,
    ) -> Record:
        """A record of this run."""
        return Record(
            name=name,
            value=value,
            unit=unit,
            command=self.command,
            commit=self.commit,
            machine=self.machine,
            versions=self.versions,
            seeds=tuple(seeds),
            split=split,
            noise=noise,
            date=self.date,
        )


def provenance(command: str, *, repository: Path, now: datetime) -> Provenance:
    """The provenance of a run that starts now in a checkout.

    Args:
        command: as a reader would type it, e.g. ``kernelcast evaluate additivity --record``.
        repository: root of the checkout; outside one the commit is ``unknown``.
    """
    return Provenance(
        command=command,
        commit=commit_of(repository),
        machine=machine(),
        versions=versions(),
        date=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def commit_of(repository: Path) -> str:
    """The short commit of a checkout, with ``+changes`` where tracked files differ from it."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(repository), *arguments],
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    commit = git("rev-parse", "--short=12", "HEAD")
    if commit is None:
        return "unknown"
    return f"{commit}+changes" if git("status", "--porcelain", "--untracked-files=no") else commit


def machine() -> str:
    """Processor model and number of CPUs, e.g. ``Some CPU @ 2.00GHz, 2 CPUs``."""
    return f"{processor()}, {os.cpu_count()} CPUs"


def processor() -> str:
    """The processor's model name as the system reports it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Python and of the installed libraries that change results. Imports none of them."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
