"""``kernelcast collect`` and ``kernelcast train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcast.cli.choices import Task, chosen_variants, integers, usable_cpus
from kernelcast.cli.output import JsonOption, emit, facts, percent, stderr, table
from kernelcast.cli.recording import RecordOption, RepositoryOption, record

CpusOption = Annotated[str, typer.Option("--cpus", help="Processors to time on, e.g. 0,1; all if not given.")]
MinutesOption = Annotated[
    float | None, typer.Option(help="Begin no kernel after so many minutes; all are timed if not given.")
]


def collect(
    out: Annotated[Path, typer.Argument(help="Folder of the dataset; an existing one is gone on with.")],
    program: Annotated[
        list[str] | None, typer.Option(help="Zoo program or variant, may be repeated; all if not given.")
    ] = None,
    random_plans: Annotated[int, typer.Option(min=0, help="Random plans of each program.")] = 10,
    kernels_per_program: Annotated[int, typer.Option(min=1, help="Kernels of one program, at most.")] = 400,
    minutes: MinutesOption = None,
    cpus: CpusOption = "",
    passes: Annotated[int, typer.Option(min=1, help="Visits to each kernel.")] = 2,
    spacing: Annotated[float, typer.Option(min=0, help="Seconds between two visits, at least.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the plans and the order.")] = 0,
    drop_damaged: Annotated[
        bool, typer.Option("--drop-damaged", help="Take damaged parts out first and collect them again.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="At the end, merge the parts and drop texts of kernels never timed."),
    ] = False,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Draws plans of zoo programs and times their kernels; may be stopped and run again at any time."""
    from kernelcast.cli.collect_display import collect_display
    from kernelcast.data.compact import compact
    from kernelcast.data.outcomes import labels
    from kernelcast.data.rule import LabelRule
    from kernelcast.data.store import Dataset, Writer
    from kernelcast.jobs.collection.collect import CollectSettings
    from kernelcast.jobs.collection.collect import collect as run
    from kernelcast.jobs.collection.cpu_tools import cpu_identity, cpu_tools
    from kernelcast.jobs.collection.zoo_source import ZooSource
    from kernelcast.jobs.records import collect_figures, records
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    rule = LabelRule(passes=passes, spacing_s=spacing)
    chosen = usable_cpus(cpus)
    settings = CollectSettings(
        seed=seed,
        random_plans=random_plans,
        kernels_per_program=kernels_per_program,
        budget_s=None if minutes is None else 60 * minutes,
        cpus=chosen,
        drop_damaged=drop_damaged,
    )
    variants = chosen_variants(program)
    with XlaCpu(cpu=chosen[0]) as capture, collect_display() as watch:
        report = run(
            out,
            [ZooSource(variant, capture) for variant in variants],
            target=cpu_identity(),
            rule=rule,
            tools=cpu_tools(rule, anchor_cpu=chosen[0]),
            settings=settings,
            watch=watch,
        )
    if prune and not report.was_interrupted:
        with Writer.open(out, target=cpu_identity(), rule=rule) as writer:
            compact(writer, prune=True)
    progress = report.progress
    emit(
        report,
        as_json=as_json,
        render=facts(
            str(out),
            {
                "kernels in the dataset": f"{report.total:,}",
                "finished now": f"{progress.finished:,} ({progress.kernels_per_s:.1f}/s)",
                "failed now": ", ".join(f"{n} {why}" for why, n in progress.failures.items()) or "none",
                "left": f"{progress.left:,}",
                "quiet share": percent(progress.quiet_share),
                "programs": f"{report.programs} surveyed, {len(report.problems)} left out",
                **{f"left out: {name}": why for name, why in report.problems.items()},
            },
        ),
    )
    labelled = len(labels(Dataset.open(out)).fingerprints)
    record(
        "kernelcast collect",
        repository,
        lambda made: records(collect_figures(report, labelled=labelled), made, seeds=[seed]),
        wanted=record_results,
    )
    if report.was_interrupted:
        raise typer.Exit(130)


def train(
    dataset: Annotated[
        Path, typer.Argument(help="Folder of a dataset, or of a TpuGraphs tile collection as unpacked.")
    ],
    out: Annotated[Path, typer.Argument(help="Folder for checkpoints, one per model and seed.")],
    split: Annotated[
        Path | None,
        typer.Option(
            help="File that says which families train; experiments/split-family.json if not given. A "
            "TpuGraphs collection has parts of its own."
        ),
    ] = None,
    task: Annotated[Task, typer.Option(help="What the dataset's times are of.")] = Task.FUSION,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="May be repeated: gnn, gnn_static, gnn_offset, lstm of the fusion task, rank, mse, lstm of "
            "the tile task; all of the task if not given."
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="Comma-separated.")] = "0,1,2,3,4",
    as_json: JsonOption = False,
) -> None:
    """Trains models on a dataset; finished seeds are kept when run again."""
    from kernelcast.jobs.learning.train import MODELS, TILE_MODELS, train_models, train_tile_models
    from kernelcast.jobs.learning.train_published import holds_collection, train_published_models
    from kernelcast.model.trained import Epoch

    console = stderr()

    def watch(name: str, seed: int, epoch: Epoch) -> None:
        console.print(
            f"{name} seed {seed} epoch {epoch.number}: training {epoch.train_loss:.4f}, "
            f"validation {epoch.validation_error:.4f}"
        )

    chosen = integers(seeds, "--seeds")
    if task is Task.TILE and holds_collection(dataset):
        if split is not None:
            raise typer.BadParameter(
                f"--split: {dataset} is a TpuGraphs collection, whose parts are its split"
            )
        results = train_published_models(
            dataset, models=model or list(TILE_MODELS), seeds=chosen, out=out, watch=watch
        )
    else:
        run, known = (train_tile_models, TILE_MODELS) if task is Task.TILE else (train_models, MODELS)
        results = run(
            dataset,
            split or Path("experiments/split-family.json"),
            models=model or list(known),
            seeds=chosen,
            out=out,
            watch=watch,
        )
    emit(
        results,
        as_json=as_json,
        render=table(
            f"{len(results)} checkpoints",
            {
                "model": "left",
                "seed": "right",
                "epochs": "right",
                "1 − τ" if task is Task.TILE else "mean |log error|": "right",
                "folder": "left",
            },
            [
                [r.model, str(r.seed), str(r.epochs), f"{r.validation_error:.4f}", str(r.folder)]
                for r in results
            ],
        ),
    )
