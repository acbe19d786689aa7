"""``kernelcast evaluate tpu-programs``: how much of whole programs the TPU target reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcast.cli.choices import chosen_variants
from kernelcast.cli.output import JsonOption, emit, percent, progress, table
from kernelcast.cli.recording import RecordOption, RepositoryOption, record
from kernelcast.cli.study_options import CpuOption, ProgramOption, SeedOption


def tpu_programs(
    program: ProgramOption = None,
    target: Annotated[str, typer.Option(help="tpu_v3, or tpu_v2, which is not validated.")] = "tpu_v3",
    plans_each: Annotated[int, typer.Option(min=0, help="Random plans of each program.")] = 2,
    design: Annotated[
        Path, typer.Option(help="Study whose programs' defaults are counted in the figure.")
    ] = Path("experiments/tuning.json"),
    seed: SeedOption = 0,
    cpu: CpuOption = None,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Compiles programs for a TPU, simulates kernels, imposes defaults and random plans; runs nothing."""
    from kernelcast import zoo
    from kernelcast.jobs.records import records, tpu_program_figures
    from kernelcast.jobs.studies.tpu_programs import study_programs
    from kernelcast.jobs.studies.tuning_design import TuningDesign
    from kernelcast.targets.tpu.xla_tpu import XlaTpu

    ten = TuningDesign.read(design).unfused_start
    # One variant stands for each program: its kernels are what differs.
    variants = chosen_variants(program) if program else [p.variants[0] for p in zoo.programs()]
    with XlaTpu(target, cpu=cpu) as compiler, progress() as display:
        task = display.add_task("programs", total=len(variants))
        report = study_programs(
            variants,
            compiler,
            plans_each=plans_each,
            seed=seed,
            progress=lambda name, done, total: display.update(task, description=name, completed=done),
        )
    columns = {
        "program": "left", "kernels": "right", "windows": "right", "simulated": "right", "of cycles": "right",
        "default is a plan": "left", "plans": "right", "failed": "left",
    }  # fmt: skip
    rows = [
        [
            p.name, str(p.kernels), str(p.windows), str(p.simulated), percent(p.cycle_share),
            "yes" if p.is_default_in_space else "no", str(p.tried),
            ", ".join(f"{count} {reason}" for reason, count in p.failures.items()),
        ]
        for p in report.programs
    ]  # fmt: skip
    emit(
        report,
        as_json=as_json,
        render=[
            table(f"programs on {target}; times are simulated, {compiler.chip.validation}", columns, rows),
            *(f"{name} does not compile: {why}" for name, why in report.not_compiled.items()),
        ],
    )
    record(
        "kernelcast evaluate tpu-programs",
        repository,
        lambda made: records(tpu_program_figures(report, target, ten), made, seeds=[seed]),
        wanted=record_results,
    )
