"""``kernelcast evaluate``: the studies behind the docs' figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcast.cli.choices import chosen_variants, integers, usable_cpus
from kernelcast.cli.output import JsonOption, duration, emit, facts, percent, progress, table
from kernelcast.cli.plan_studies import additivity, tuning
from kernelcast.cli.recording import RecordOption, RepositoryOption, record
from kernelcast.cli.schedule_study import schedule
from kernelcast.cli.study_options import CpuOption, JournalOption, ProgramOption, SeedOption
from kernelcast.cli.tile_studies import measured_tiles, tile_speed, tiles
from kernelcast.cli.tpu_studies import tpu_programs

app = typer.Typer(help="The studies behind the figures in the docs.", no_args_is_help=True)

app.command()(additivity)
app.command()(tuning)
app.command()(schedule)
app.command()(tiles)
app.command()(measured_tiles)
app.command()(tile_speed)
app.command()(tpu_programs)


@app.command()
def roundtrip(
    data: Annotated[Path, typer.Argument(help="Folder with hlo/*.zip and tpu_hlo/*.hlo.")],
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Reads, writes and reads again a folder of HLO texts, with XLA's parser as the judge."""
    from kernelcast.jobs.records import records, roundtrip_figures
    from kernelcast.jobs.studies.roundtrip import roundtrip as run

    with progress() as display:
        task = display.add_task("texts")
        report = run(data, progress=lambda done, total: display.update(task, completed=done, total=total))
    rows = [
        [name, str(c.tried), str(c.same), percent(c.same_fraction), str(c.refused_by_xla)]
        for name, c in (
            ("modules", report.modules),
            ("whole programs", report.whole_programs),
            ("TPU", report.tpu),
        )
    ]
    columns = {"texts": "left", "tried": "right", "same": "right", "share": "right", "XLA refuses": "right"}
    rejected = report.rejected
    emit(
        report,
        as_json=as_json,
        render=[
            table("round trip", columns, rows),
            f"of {rejected.tried} texts that XLA rejects: {rejected.refused_by_reader} refused by the "
            f"reader, {rejected.refused_by_verifier} by the verifier, {rejected.refused_by_xla} by XLA's "
            f"parser, {rejected.accepted_by_xla} accepted, "
            f"{len(rejected.crashes)} crashed the child",
            f"{report.speed.instructions_per_s:,.0f} instructions/s on {report.speed.file}, time per "
            f"instruction {report.speed.slowdown:.2f}× that of {report.speed.smaller_file}",
        ],
    )
    record(
        "kernelcast evaluate roundtrip",
        repository,
        lambda made: records(roundtrip_figures(report), made),
        wanted=record_results,
    )


@app.command()
def plans(
    program: ProgramOption = None,
    journal: JournalOption = Path("out/plans-tried.jsonl"),
    plans_each: Annotated[int, typer.Option(min=0, help="Random plans of each program.")] = 4,
    seed: SeedOption = 0,
    cpu: CpuOption = None,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Imposes the default and random plans on every zoo program and compares all outputs."""
    from kernelcast import zoo
    from kernelcast.jobs.records import plans_figures, records
    from kernelcast.jobs.studies.plans_tried import try_plans
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    # One variant stands for each program: its plans are what differs.
    variants = chosen_variants(program) if program else [p.variants[0] for p in zoo.programs()]
    with XlaCpu(cpu=cpu) as target, progress() as display:
        task = display.add_task("programs", total=len(variants))
        report = try_plans(
            variants,
            target,
            journal=journal,
            plans_each=plans_each,
            seed=seed,
            progress=lambda name, done, total: display.update(task, description=name, completed=done),
        )
    emit(
        report,
        as_json=as_json,
        render=facts(
            "imposed plans",
            {
                "programs": f"{report.programs}, {len(report.not_captured)} not captured",
                "default identical to the compiler's": f"{report.identical} of {report.programs}",
                "default built anew, equal outputs": f"{report.rebuilt_equal} of {report.programs}",
                "distinct plans compiled, run, compared": report.tried,
                "wrong values": len(report.wrong_values),
                "other failures": f"{dict(report.failures)} ({percent(report.failed_fraction)})",
                **{f"wrong: {name}": why for name, why in report.wrong_values.items()},
                **{f"not identical: {name}": why for name, why in report.not_identical.items()},
                **{f"not equal: {name}": why for name, why in report.not_equal.items()},
                **{f"not captured: {name}": why for name, why in report.not_captured.items()},
            },
        ),
    )
    record(
        "kernelcast evaluate plans",
        repository,
        lambda made: records(plans_figures(report), made, seeds=[seed]),
        wanted=record_results,
    )


@app.command()
def oracle(
    dataset: Annotated[Path, typer.Argument(help="Folder of a dataset.")],
    out: Annotated[
        Path, typer.Argument(help="Folder of the second measurement; gone on with if it is there.")
    ],
    kernels: Annotated[int, typer.Option(min=2, help="Kernels to measure again.")] = 400,
    minutes: Annotated[float | None, typer.Option(help="Begin no kernel after so many minutes.")] = None,
    cpus: Annotated[str, typer.Option(help="Processors to time on, e.g. 0,1.")] = "",
    seed: SeedOption = 0,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Measures kernels of a dataset again: how well labels repeat, which no model can beat."""
    from kernelcast.cli.collect_display import collect_display
    from kernelcast.data.store import Dataset
    from kernelcast.jobs.collection.collect import CollectSettings
    from kernelcast.jobs.collection.cpu_tools import cpu_identity, cpu_tools
    from kernelcast.jobs.collection.oracle import measure_again
    from kernelcast.jobs.records import oracle_figures, records

    chosen = usable_cpus(cpus)
    first = Dataset.open(dataset, target=cpu_identity())
    settings = CollectSettings(seed=seed, budget_s=None if minutes is None else 60 * minutes, cpus=chosen)
    tools = cpu_tools(first.manifest.rule, anchor_cpu=chosen[0])
    with collect_display() as watch:
        report = measure_again(first, out, kernels=kernels, tools=tools, settings=settings, watch=watch)
    rows = [
        [b.name, str(b.kernels), f"{b.mape:.1f} %", f"{b.median:.1f} %", f"{b.p90:.1f} %", f"{b.tau:.3f}"]
        for b in (*report.bands, *report.footprints)
        if b.kernels
    ]
    columns = {
        "kernels": "left", "count": "right", "MAPE": "right", "median": "right", "90th": "right",
        "τ": "right",
    }  # fmt: skip
    emit(
        report,
        as_json=as_json,
        render=[
            table(f"{report.drawn} kernels measured again", columns, rows),
            f"dropped {percent(report.dropped_share)}: {dict(report.drops)}; quiet share "
            f"{percent(report.quiet_share)}, first {percent(report.first_quiet_share)}; occasions begun at "
            f"least {duration(report.least_gap_s)} apart",
        ],
    )
    record(
        "kernelcast evaluate oracle",
        repository,
        lambda made: records(oracle_figures(report), made, seeds=[seed]),
        wanted=record_results,
    )
    if report.was_interrupted:
        raise typer.Exit(130)


@app.command()
def fusion(
    dataset: Annotated[Path, typer.Argument(help="Folder of a dataset.")],
    checkpoints: Annotated[Path, typer.Argument(help="Folder that `kernelcast train` wrote.")],
    peaks: Annotated[
        Path | None,
        typer.Option(help="File that `kernelcast doctor --out` wrote, for the roofline; none without it."),
    ] = None,
    split: Annotated[Path, typer.Option(help="The split that the models were trained with.")] = Path(
        "experiments/split-family.json"
    ),
    oracle_dataset: Annotated[
        Path | None, typer.Option("--oracle", help="Folder of a second measurement.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Of the boosted trees, comma-separated.")] = "0,1,2,3,4",
    out: Annotated[Path | None, typer.Option(help="File for all rows, as JSON.")] = None,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """The errors of all models and baselines on programs of families that did not train."""
    from kernelcast.jobs.estimators import checkpoints_by_model
    from kernelcast.jobs.learning.evaluate_fusion import evaluate_fusion
    from kernelcast.jobs.learning.fusion_table import write_table
    from kernelcast.jobs.learning.peaks_file import read_peaks
    from kernelcast.jobs.records import fusion_figures, records

    numbers = integers(seeds, "--seeds")
    found = evaluate_fusion(
        dataset,
        split,
        checkpoints=checkpoints_by_model(checkpoints),
        peaks=None if peaks is None else read_peaks(peaks),
        seeds=numbers,
        oracle_folder=oracle_dataset,
    )
    if out is not None:
        write_table(out, found)
    columns = {
        "model": "left", "kernels": "left", "seeds": "right", "MAPE ≥ 5 µs": "right", "over seeds": "right",
        "MAPE < 5 µs": "right", "τ ≥ 5 µs": "right",
    }  # fmt: skip
    rows = [
        [
            s.model, s.population, str(s.seeds), f"{s.mape_ge5us:.1f} %",
            f"{s.mape_ge5us_range[0]:.1f}–{s.mape_ge5us_range[1]:.1f}", f"{s.mape_lt5us:.1f} %",
            f"{s.tau_ge5us:.3f}",
        ]
        for s in found.summaries
    ]  # fmt: skip
    simulated = f", simulated times of {found.target[1]}" if found.is_simulated else ""
    emit(
        found,
        as_json=as_json,
        render=[
            table(f"fusion task{simulated}, medians over programs", columns, rows),
            f"{found.train_kernels:,} kernels trained, {found.validation_kernels:,} validated, "
            f"{found.test_kernels:,} tested, of which {found.without_analytical:,} left out because the "
            "analytical model of the target's compiler gives no cost",
        ],
    )
    record(
        "kernelcast evaluate fusion",
        repository,
        lambda made: records(fusion_figures(found), made, seeds=found.seeds, split=found.split),
        wanted=record_results,
    )


@app.command()
def programs(
    program: ProgramOption = None,
    part: Annotated[
        str, typer.Option(help="Without --program: variants of this part of the split.")
    ] = "test",
    split: Annotated[Path, typer.Option(help="The split that the model was trained with.")] = Path(
        "experiments/split-family.json"
    ),
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder of a checkpoint or of several; the bundled ones if not given.")
    ] = None,
    journal: JournalOption = Path("out/program-times.jsonl"),
    seed: SeedOption = 0,
    cpu: CpuOption = None,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Predicted and measured times of whole programs, as the compiler itself makes them."""
    from kernelcast import zoo
    from kernelcast.jobs.estimators import named_estimator
    from kernelcast.jobs.programs.memory_factor import NO_FACTOR
    from kernelcast.jobs.programs.overheads import measure_overheads
    from kernelcast.jobs.programs.target_terms import TargetTerms
    from kernelcast.jobs.records import program_time_figures, records
    from kernelcast.jobs.studies.program_times import compare_program_times
    from kernelcast.split import read_split
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    families = read_split(split)
    variants = (
        chosen_variants(program)
        if program
        else [v for v in zoo.variants() if families.part_of(v.family) == part]
    )
    estimator = named_estimator(checkpoint)
    estimator.check_split(families)
    with XlaCpu(cpu=cpu) as target, progress() as display:
        terms = estimator.terms or TargetTerms(
            target=target.identity.digest, factor=NO_FACTOR, overheads=measure_overheads(target)
        )
        task = display.add_task("programs", total=len(variants))
        report = compare_program_times(
            variants,
            target,
            estimator.estimator,
            terms,
            estimator_name=estimator.name,
            journal=journal,
            seed=seed,
            progress=lambda name, done, total: display.update(task, description=name, completed=done),
        )
    columns = {
        "program": "left",
        "predicted": "right",
        "measured": "right",
        "error": "right",
        "noise": "right",
    }
    rows = [
        [
            r.program, duration(r.predicted_s), duration(r.measured_s), f"{100 * r.error:+.0f} %",
            percent(r.noise),
        ]
        for r in report.programs
    ]  # fmt: skip
    emit(
        report,
        as_json=as_json,
        render=[
            table("whole programs", columns, rows),
            f"median error {percent(report.abs_error_median)}",
            *(f"{name}: {why}" for name, why in report.problems.items()),
        ],
    )
    record(
        "kernelcast evaluate programs",
        repository,
        lambda made: records(
            program_time_figures(report), made, seeds=[seed], split=f"{families.digest}, {estimator.name}"
        ),
        wanted=record_results,
    )
