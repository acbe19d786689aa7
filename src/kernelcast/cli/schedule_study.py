"""``kernelcast evaluate schedule``: simulated times against measured runs of a real TPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from kernelcast.cli.output import JsonOption, emit, progress, table
from kernelcast.cli.recording import RecordOption, RepositoryOption, record
from kernelcast.cli.study_options import CpuOption, JournalOption

if TYPE_CHECKING:
    from kernelcast.jobs.studies.schedule import Agreement, ScheduleReport


def schedule(
    data: Annotated[Path, typer.Argument(help="Folder of TpuGraphs' op_tuning: <kernel>.json and .hlo.")],
    journal: JournalOption = Path("out/schedule.jsonl"),
    cpu: CpuOption = None,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """How far simulated times of TPU v3 kernels are from measured ones."""
    from kernelcast.jobs.records import records
    from kernelcast.jobs.schedule_records import schedule_figures
    from kernelcast.jobs.studies.schedule import judge_schedules
    from kernelcast.jobs.studies.schedule_runs import scheduled_runs
    from kernelcast.targets.tpu import libtpu
    from kernelcast.targets.tpu.xla_tpu import XlaTpu

    with XlaTpu("tpu_v3", cpu=cpu) as target, progress() as display:
        task = display.add_task("kernels")
        kernels = scheduled_runs(
            data,
            target,
            journal=journal,
            compiler=f"libtpu {libtpu.installed_version()}",
            progress=lambda name, done, total: display.update(
                task, description=name, completed=done, total=total
            ),
        )
        report = judge_schedules(
            kernels, progress=lambda stage: display.update(task, description=stage, total=None)
        )
    emit(report, as_json=as_json, render=_rendered(report))
    record(
        "kernelcast evaluate schedule",
        repository,
        lambda made: records(schedule_figures(report), made),
        wanted=record_results,
    )


def _rendered(report: ScheduleReport) -> list[RenderableType]:
    columns = {"kernel": "left", "runs": "right"}
    shown = {
        "simulated": report.narrowed,
        "as scheduled": report.as_scheduled,
        "left out": report.left_out,
        "analytical": report.analytical,
    }
    columns |= dict.fromkeys((f"{name}: τ / MAPE" for name in shown), "right")
    rows = [
        [kernel.name, str(kernel.runs), *(_cell(agreement, kernel.name) for agreement in shown.values())]
        for kernel in report.narrowed.kernels
    ]
    fitted = "\n".join(f"fitted: {report.fitted}".split(", "))
    return [
        table("simulated times of TPU v3 against measured runs", columns, rows),
        *(f"{name}: {_summary(agreement)}" for name, agreement in shown.items()),
        f"fitted anew: {_summary(report.refitted)}",
        f"fitted on loops, tried on products: {_summary(report.fitted_on_loops)}",
        f"fitted on products, tried on loops: {_summary(report.fitted_on_products)}",
        fitted,
        *(f"{name}: {why}" for name, problems in report.problems.items() for why in problems),
    ]


def _cell(agreement: Agreement, name: str) -> str:
    row = next((k for k in agreement.kernels if k.name == name), None)
    return f"{row.tau:.3f} / {row.mape:.1f} %" if row else "none"


def _summary(agreement: Agreement) -> str:
    return (
        f"mean τ {agreement.tau_mean:.3f}, near the best {agreement.tau_near_best_mean:.3f}, "
        f"mean MAPE {agreement.mape_mean:.1f} %"
    )
