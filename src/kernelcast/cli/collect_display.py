"""The progress of a collection on stderr."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from kernelcast.cli.output import percent, stderr
from kernelcast.jobs.collection.collect import CollectProgress

# Where stderr is a file, a line of progress is written so often.
_LINE_PERIOD_S = 30.0


@contextmanager
def collect_display() -> Generator[Callable[[CollectProgress], None]]:
    """A function that shows where a collection stands: in place on a terminal, line by line elsewhere."""
    console = stderr()
    if sys.stderr.isatty():
        with Live(console=console, transient=True, refresh_per_second=2) as live:
            yield lambda progress: live.update(Text(describe(progress)))
        return
    last_s = -math.inf
    last_stage = ""

    def show(progress: CollectProgress) -> None:
        nonlocal last_s, last_stage
        if progress.stage != last_stage or time.monotonic() - last_s >= _LINE_PERIOD_S:
            last_s, last_stage = time.monotonic(), progress.stage
            console.print(Text(describe(progress)), soft_wrap=True)

    yield show


def describe(progress: CollectProgress) -> str:
    """One line: what is done, how fast, how quiet, what failed, what is left."""
    if progress.stage == "survey":
        return f"survey: {progress.detail}, {progress.left} programs left"
    failures = ", ".join(f"{count} {reason}" for reason, count in progress.failures.items()) or "none"
    return (
        f"{progress.stage} {progress.detail}: {progress.finished} finished, {progress.left} left, "
        f"{progress.kernels_per_s:.1f}/s, quiet {percent(progress.quiet_share)}, failures: {failures}; "
        f"{_clock(progress.elapsed_s)} gone, {_clock(progress.left_s)} to go"
    )


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds; ``–`` where unknown."""
    if not math.isfinite(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
