"""``kernelcast doctor``: is this machine fit for measuring?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcast.cli.choices import integers
from kernelcast.cli.output import JsonOption, duration, emit, percent, stderr, table


def doctor(
    cpus: Annotated[str, typer.Option(help="Processors to listen to, e.g. 0,1; all if not given.")] = "",
    out: Annotated[Path | None, typer.Option(help="File for the report, as JSON.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measures how noisy this machine is and what it can do; says whether times taken here mean anything."""
    from kernelcast.jobs.doctor import bands
    from kernelcast.jobs.doctor import doctor as examine

    with stderr().status("listening to this machine"):
        report = examine(tuple(integers(cpus, "--cpus")))
    if out is not None:
        report.save(out)
    found = report.examination
    cores = [
        [
            str(c.cpu), duration(c.floor_s), percent(c.quiet_share), f"{c.typical_loud:.2f}×",
            duration(c.longest_loud_s),
        ]
        for c in found.cores
    ]  # fmt: skip
    core_columns = {
        "CPU": "right", "sentinel": "right", "quiet": "right", "when loud": "right", "longest loud": "right",
    }  # fmt: skip
    repeats = [
        [b.name, str(b.probes), percent(b.median_spread), percent(b.worst_spread)] for b in bands(found)
    ]
    lines = [f"[bold]{report.verdict}[/]", *(f"· {line}" for line in (*report.reasons, *report.disturbances))]
    if found.peaks is not None:
        lines.append(
            f"peaks of one thread: {found.peaks.flops_per_s / 1e9:.1f} GFLOP/s, "
            f"{found.peaks.bytes_per_s / 1e9:.1f} GB/s"
        )
    lines.append(report.tpu)
    emit(
        report.to_json(),
        as_json=as_json,
        render=[
            table("noise of each core", core_columns, cores),
            table(
                "how well kernels repeat",
                {"kernels": "left", "probes": "right", "median spread": "right", "worst": "right"},
                repeats,
            ),
            *lines,
        ],
    )
