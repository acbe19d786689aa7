"""``kernelcast predict``, ``measure``, ``tune`` and ``replay``: what is asked about one program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcast.cli.output import JsonOption, emit, stderr

ProgramArgument = Annotated[
    str, typer.Argument(help="A zoo program, or the path of HLO, StableHLO, an exported function or a dump.")
]
CheckpointOption = Annotated[
    Path | None, typer.Option(help="Folder of a checkpoint or of several; the bundled ones if not given.")
]
CpuOption = Annotated[int | None, typer.Option(help="Processor to measure on; the last one if not given.")]
SeedOption = Annotated[int, typer.Option(help="Of everything random.")]


def ingest(
    program: ProgramArgument,
    stage: Annotated[
        str | None, typer.Option(help="unoptimised or optimised, where the source has both.")
    ] = None,
    module: Annotated[str | None, typer.Option(help="Name or number of a module of a dump folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Reads a program and says what is in it, without running anything."""
    from kernelcast.cli.program_tables import ingested
    from kernelcast.hlo.sources import Stage
    from kernelcast.jobs.ingest import ingest as run

    if stage is not None and stage not in tuple(Stage):
        raise typer.BadParameter(f"--stage is one of {', '.join(Stage)}, got {stage}")
    report = run(program, stage=None if stage is None else Stage(stage), module=module)
    emit(report, as_json=as_json, render=ingested(report))


def predict(
    program: ProgramArgument,
    checkpoint: CheckpointOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predicts the time of a program and of each of its kernels, without running anything."""
    from kernelcast.cli.program_tables import predicted_kernels
    from kernelcast.jobs.estimators import named_estimator
    from kernelcast.jobs.programs.named_program import final_module
    from kernelcast.jobs.programs.predict import predict_program
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    estimator = named_estimator(checkpoint)
    with XlaCpu() as target:
        module = final_module(program, target.capture)
    estimate = predict_program(module, estimator.estimator, terms=estimator.terms)
    result = {
        "program": program,
        "seconds": estimate.seconds,
        "memory_factor": estimate.factor,
        "overhead_s": estimate.overhead_s,
        "extrapolated_share": estimate.extrapolated_share,
        "estimator": estimator.name,
        "kernels": [
            {
                "where": k.where, "kind": k.kernel.kind, "runs": k.times.value, "runs_source": k.times.source,
                "seconds": k.seconds, "status": k.status, "fingerprint": k.kernel.fingerprint,
            }
            for k in estimate.kernels
        ],
    }  # fmt: skip
    emit(result, as_json=as_json, render=predicted_kernels(program, estimate, estimator.name))


def measure(
    program: ProgramArgument,
    plan: Annotated[
        Path | None, typer.Option(help="File with a plan, or a result of `tune`; the default if not given.")
    ] = None,
    cpu: CpuOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Times a program whole and kernel by kernel on this machine."""
    from kernelcast.cli.program_tables import measured_json, measured_kernels
    from kernelcast.jobs.programs.measure import measure_program
    from kernelcast.jobs.programs.named_program import named_program
    from kernelcast.jobs.tuning.plan_file import read_choice
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    chosen = read_choice(plan) if plan is not None else None
    named = named_program(program, seed=seed)
    with XlaCpu(cpu=cpu) as target:
        space = target.space(named.stablehlo)
        with stderr().status(f"timing {named.name}"):
            found = measure_program(space, target, plan=chosen, inputs=named.inputs)
        identity = target.identity
    emit(
        measured_json(named.name, found, identity),
        as_json=as_json,
        render=measured_kernels(named.name, found),
    )


def tune(
    program: ProgramArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File of the result, for `kernelcast replay`.")],
    checkpoint: CheckpointOption = None,
    start: Annotated[
        str, typer.Option(help="Where the search starts: default, unfused or random.")
    ] = "default",
    steps: Annotated[int, typer.Option(min=0, help="Steps of every chain of the search.")] = 1000,
    chains: Annotated[int, typer.Option(min=1, help="Chains searched side by side.")] = 16,
    candidates: Annotated[int, typer.Option(min=1, help="Plans timed on the device, at most.")] = 8,
    device_seconds: Annotated[float, typer.Option(min=1, help="Budget of the device.")] = 30.0,
    cpu: CpuOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Searches a faster fusion plan with the model, and decides on the device among the best.

    The answer is never slower than the compiler's default beyond the noise: else it is the default.
    """
    from kernelcast.cli.program_tables import tuning_json, tuning_table
    from kernelcast.jobs.estimators import named_estimator
    from kernelcast.jobs.programs.named_program import named_program
    from kernelcast.jobs.tuning.autotune import TuningOptions, autotune
    from kernelcast.jobs.tuning.plan_search import SearchOptions, Start
    from kernelcast.jobs.tuning.result_file import write_tuning
    from kernelcast.search.anneal import AnnealingOptions
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    if start not in tuple(Start):
        raise typer.BadParameter(f"--start is one of {', '.join(Start)}, got {start}")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"--out: the folder {out.parent} does not exist")
    options = TuningOptions(
        search=SearchOptions(
            start=Start(start), chains=chains, annealing=AnnealingOptions(steps=steps, pool=256)
        ),
        candidates=candidates,
        device_s=device_seconds,
    )
    estimator = named_estimator(checkpoint)
    named = named_program(program, seed=seed)
    if named.donated:
        stderr().print(
            f"parameters {', '.join(map(str, named.donated))} are donated by the program; "
            "both the default and the candidates copy them here"
        )
    with XlaCpu(cpu=cpu) as target, stderr().status(f"tuning {named.name}"):
        result = autotune(
            target,
            estimator.estimator,
            program=named.name,
            stablehlo=named.stablehlo,
            estimator_name=estimator.name,
            options=options,
            seed=seed,
            inputs=named.inputs,
        )
    write_tuning(result, out)
    emit(tuning_json(result, out), as_json=as_json, render=tuning_table(result, out))


def replay(
    result: Annotated[Path, typer.Argument(help="A file that `kernelcast tune` wrote.")],
    device_seconds: Annotated[float, typer.Option(min=1, help="Budget of the device.")] = 30.0,
    cpu: CpuOption = None,
    as_json: JsonOption = False,
) -> None:
    """Applies the plan of a tuning result to its program again and measures it beside the default."""
    from kernelcast.cli.program_tables import replay_json, replay_table
    from kernelcast.jobs.tuning.replay import replay as run
    from kernelcast.jobs.tuning.result_file import read_tuning
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu

    stored = read_tuning(result)
    with XlaCpu(cpu=cpu) as target, stderr().status(f"replaying {stored.program}"):
        found = run(stored, target, device_s=device_seconds)
    emit(replay_json(found), as_json=as_json, render=replay_table(found))
