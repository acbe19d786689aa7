"""``kernelcast evaluate additivity`` and ``tuning``: studies of plans, fixed in a file beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from kernelcast.cli.output import JsonOption, emit, facts, percent, progress, stderr, table
from kernelcast.cli.recording import RecordOption, RepositoryOption, record
from kernelcast.cli.study_options import CpuOption, JournalOption, SeedOption

if TYPE_CHECKING:
    from kernelcast.jobs.studies.tuning_report import TuningReport

# The programs of the first study of this target; a new study may tune at most three of them.
NOTE_PROGRAMS = frozenset({
    "nbody", "rbf", "stencil", "groupnorm_silu", "squared_differences", "rmsnorm_rotary", "double_softmax",
    "layernorm_backward", "scan_gradient", "transformer_train",
})  # fmt: skip
FROM_DEFAULT = {
    "nbody": "nbody/512", "rbf": "rbf/512", "groupnorm": "groupnorm_silu/b4-32x32",
    "softmax": "double_softmax/512x1024", "rmsrope": "rmsnorm_rotary/512x1024",
}  # fmt: skip


def additivity(
    design: Annotated[Path, typer.Option(help="File that says what is timed.")] = Path(
        "experiments/additivity.json"
    ),
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw the design into that file; time nothing.")
    ] = False,
    note: Annotated[
        list[str] | None, typer.Option(help="With --draw: a program that the memory factor is fitted on.")
    ] = None,
    new: Annotated[list[str] | None, typer.Option(help="With --draw: any other program.")] = None,
    plans_each: Annotated[int, typer.Option(min=2, help="With --draw: random plans of each program.")] = 40,
    program: Annotated[list[str] | None, typer.Option(help="Only these programs of the design.")] = None,
    terms: Annotated[
        Path | None, typer.Option(help="File for the target's terms, for a folder of checkpoints.")
    ] = None,
    journal: JournalOption = Path("out/additivity.jsonl"),
    seed: SeedOption = 0,
    cpu: CpuOption = None,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Do sums of kernel times rank plans as whole programs do?"""
    from kernelcast import zoo
    from kernelcast.errors import KernelcastError
    from kernelcast.jobs.records import additivity_figures, records
    from kernelcast.jobs.studies.additivity import measure_additivity
    from kernelcast.jobs.studies.additivity_design import AdditivityDesign, draw_design
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    with XlaCpu(cpu=cpu) as target:
        if draw:
            if not new:
                raise typer.BadParameter("--draw needs at least one --new program")
            found = draw_design(
                [zoo.find(n) for n in note or ()],
                [zoo.find(n) for n in new],
                target,
                plans_each=plans_each,
                seed=seed,
            )
            found.write(design)
            sizes = {name: len(plans) for name, plans in found.plans.items()}
            emit(sizes, as_json=as_json, render=facts(str(design), dict(sizes)))
            return
        fixed = AdditivityDesign.read(design)
        wanted = program or fixed.programs
        unknown = sorted(set(wanted) - set(fixed.programs))
        if unknown:
            raise KernelcastError(f"{design} has no {', '.join(unknown)}; it has {', '.join(fixed.programs)}")
        with progress() as display:
            task = display.add_task("programs", total=len(wanted))
            report = measure_additivity(
                fixed,
                [zoo.find(name) for name in wanted],
                target,
                journal=journal,
                seed=seed,
                progress=lambda name, done, total: display.update(task, description=name, completed=done),
            )
    if terms is not None and report.terms is not None:
        report.terms.write(terms)
    columns = {
        "program": "left", "plans": "right", "τ": "right", "τ of halves": "right", "regret": "right",
        "slope": "right", "error": "right", "repeats": "right", "quiet": "right",
    }  # fmt: skip
    rows = [
        [
            r.program, str(r.plans), f"{r.tau:.2f}", f"{r.repeat_tau:.2f}", f"{r.regret:.3f}",
            f"{r.slope:.2f}", percent(r.abs_error), percent(r.repeat_error), percent(r.quiet_share),
        ]
        for r in (*report.note, *report.new)
    ]  # fmt: skip
    emit(
        report,
        as_json=as_json,
        render=[
            table("additivity", columns, rows),
            f"medians: τ {report.median('tau'):.2f}, regret {report.median('regret'):.3f}, error "
            f"{percent(report.median('abs_error'))}; of programs not used for the memory factor: τ "
            f"{report.median('tau', report.new):.2f}, regret {report.median('regret', report.new):.3f}",
            f"memory factor: {report.factor.scale:.3f} · 2^({report.factor.slope:.3f} · "
            "doublings above 4 MiB)",
        ],
    )
    record(
        "kernelcast evaluate additivity",
        repository,
        lambda made: records(
            additivity_figures(report), made, seeds=[fixed.seed, seed], split="experiments/additivity.json"
        ),
        wanted=record_results,
    )


def tuning(
    design: Annotated[Path, typer.Option(help="File that says what is tuned.")] = Path(
        "experiments/tuning.json"
    ),
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw the design into that file; tune nothing.")
    ] = False,
    count: Annotated[int, typer.Option(min=1, help="With --draw: programs to start un-fused.")] = 10,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder of a checkpoint or of several; the bundled ones if not given.")
    ] = None,
    program: Annotated[
        list[str] | None, typer.Option(help="Only these programs of the design, in both parts.")
    ] = None,
    unfused_start: Annotated[bool, typer.Option(help="Tune from the un-fused plan.")] = True,
    from_default: Annotated[bool, typer.Option(help="Tune from the default.")] = True,
    long_seconds: Annotated[float, typer.Option(min=1, help="Device budget without the model.")] = 300.0,
    short_seconds: Annotated[float, typer.Option(min=1, help="Device budget beside the model.")] = 30.0,
    default_seconds: Annotated[float, typer.Option(min=1, help="Device budget from the default.")] = 60.0,
    steps: Annotated[int, typer.Option(min=1, help="Steps of every chain of the model's search.")] = 1500,
    journal: JournalOption = Path("out/tuning.jsonl"),
    results: Annotated[
        Path | None, typer.Option(help="Folder for the results of tuning from the default, for replays.")
    ] = None,
    split: Annotated[Path, typer.Option(help="The split that the model was trained with.")] = Path(
        "experiments/split-family.json"
    ),
    cpu: CpuOption = None,
    seed: SeedOption = 0,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """What the model recovers from un-fused plans, and what tuning gains over the compiler's defaults."""
    from kernelcast import zoo
    from kernelcast.jobs.estimators import named_estimator
    from kernelcast.jobs.records import records, tuning_figures
    from kernelcast.jobs.studies.tuning_design import TuningDesign, draw_programs
    from kernelcast.jobs.studies.tuning_study import StudyOptions, TuningStudy, run_study
    from kernelcast.split import read_split
    from kernelcast.targets.pjrt.program_timer import ProgramRule
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu, XlaCpuOptions

    console = stderr()
    quick_rule = ProgramRule(gated_rounds=2, rounds=4, rounds_per_request=2)
    if draw:
        with XlaCpu(cpu=cpu, options=XlaCpuOptions(programs=quick_rule)) as target:
            chosen = draw_programs(
                [p.variants[0] for p in zoo.programs()],
                target,
                count=count,
                at_most={"note": 3},
                group_of=lambda p: "note" if p.id.split("/")[0] in NOTE_PROGRAMS else zoo.find(p.id).family,
                seed=seed,
                progress=lambda name, slowdown: console.print(
                    f"{name}: un-fused {slowdown:.2f}× the default"
                ),
            )
        found = TuningDesign(unfused_start=chosen, from_default=FROM_DEFAULT, seed=seed)
        found.write(design)
        emit(found, as_json=as_json, render=facts(str(design), {"un-fused start": " ".join(chosen)}))
        return
    fixed = TuningDesign.read(design)
    estimator = named_estimator(checkpoint)
    families = read_split(split)
    estimator.check_split(families)
    wanted = lambda name: not program or name in program  # noqa: E731
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
    with XlaCpu(cpu=cpu) as target, XlaCpu(cpu=cpu, options=XlaCpuOptions(programs=quick_rule)) as quick:
        study = TuningStudy(
            target=target,
            quick=quick,
            estimator=estimator.estimator,
            estimator_name=estimator.name,
            options=StudyOptions(
                long_s=long_seconds, short_s=short_seconds, default_s=default_seconds, model_steps=steps
            ),
            seed=seed,
            results=results,
            progress=lambda doing: console.print(doing),
        )
        report = run_study(
            study,
            unfused_start=[zoo.find(n) for n in fixed.unfused_start if unfused_start and wanted(n)],
            from_default={
                word: zoo.find(n) for word, n in fixed.from_default.items() if from_default and wanted(n)
            },
            journal=journal,
        )
    parts = {row.program: families.part_of(zoo.find(row.program).family) for row in report.unfused_start}
    emit(report, as_json=as_json, render=tuning_tables(report, parts))
    record(
        "kernelcast evaluate tuning",
        repository,
        lambda made: records(
            tuning_figures(report), made, seeds=[seed], split=f"experiments/tuning.json, {estimator.name}"
        ),
        wanted=record_results,
    )


def tuning_tables(report: TuningReport, parts: Mapping[str, str]) -> list[RenderableType]:
    """Both parts of a tuning study."""
    from kernelcast.cli.program_tables import gain
    from kernelcast.jobs.studies.tuning_report import CONDITIONS

    found: list[RenderableType] = []
    if report.unfused_start:
        columns = {"program": "left", "its family": "left", "un-fused": "right"}
        columns |= dict.fromkeys((*CONDITIONS, "A/A"), "right")
        rows = [
            [
                row.program, parts[row.program], f"{row.start.value:.2f}",
                *(f"{row.found[c].value:.3f}" if c in row.found else "–" for c in CONDITIONS),
                f"{row.control.value:.3f}",
            ]
            for row in report.unfused_start
        ]  # fmt: skip
        found.append(table("time over the default's, started un-fused", columns, rows))
        found.extend(
            f"{c}: {report.recovered(c)} of {len(report.unfused_start)} recovered" for c in CONDITIONS
        )
    if report.from_default:
        columns = {"program": "left"} | dict.fromkeys(
            ("over default", "over library-off", "over the better", "A/A"), "right"
        )
        rows = [
            [
                row.program, gain(row.over_default),
                gain(row.over_library_off) if row.over_library_off is not None else "–",
                gain(row.over_best_default), f"{row.control.value:.3f}",
            ]
            for row in report.from_default
        ]  # fmt: skip
        found.append(table("gains, started from the default", columns, rows))
    return found
