"""``kernelcast demo``: the model beside the machine on a real program, then a program made faster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.rule import Rule

from kernelcast.cli.output import duration, percent, picture, stderr, stdout, table
from kernelcast.data.durable import write_durably

if TYPE_CHECKING:
    from kernelcast.jobs.programs.side_by_side import SideBySide

_SHOWN_KERNELS = 16
_QUIET_ENOUGH = 0.3


def demo(
    model: Annotated[
        str, typer.Option(help="Zoo program to predict and to measure.")
    ] = "transformer_train/b4",
    tuned: Annotated[
        str, typer.Option(help="Zoo program to tune from its default.")
    ] = "rmsnorm_rotary/512x1024",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder of a checkpoint; the bundled one if not given.")
    ] = None,
    device_seconds: Annotated[float, typer.Option(min=1, help="Device budget of the tuning.")] = 25.0,
    picture_file: Annotated[
        Path | None, typer.Option("--picture", help="SVG file for what is printed.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
) -> None:
    """Predicts and measures the kernels of a real model, then tunes a memory-bound program."""
    from kernelcast import zoo
    from kernelcast.cli.program_tables import candidates_table, gain
    from kernelcast.core.timing import Timing
    from kernelcast.jobs.estimators import named_estimator
    from kernelcast.jobs.programs.named_program import named_program
    from kernelcast.jobs.programs.side_by_side import side_by_side
    from kernelcast.jobs.tuning.autotune import TuningOptions, autotune
    from kernelcast.jobs.tuning.plan_search import SearchOptions
    from kernelcast.search.anneal import AnnealingOptions
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu
    from kernelcast.targets.protocol import DeviceBudget

    console, status = stdout(record=picture_file is not None), stderr()
    estimator = named_estimator(checkpoint)
    variant, named = zoo.find(model), named_program(tuned, seed=seed)
    with XlaCpu() as target:
        identity = target.identity
        console.print(
            f"[bold]Kernelcast[/] on {identity.chip}, {identity.threads} thread, {identity.compiler}"
        )
        console.print(f"model: {estimator.name}")
        console.print(Rule(f"1 · {variant.id}: what the model says, and what the machine says"))
        with status.status(f"timing {variant.id} and its kernels"):
            budget = DeviceBudget(limit_s=device_seconds)
            pair = side_by_side(
                variant, target, estimator.estimator, terms=estimator.terms, budget=budget, seed=seed
            )
        for item in predicted_and_measured(pair):
            console.print(item)
        console.print(Rule(f"2 · {named.name}: a faster fusion plan, from the compiler's default"))
        options = TuningOptions(
            search=SearchOptions(annealing=AnnealingOptions(steps=400, pool=256)), device_s=device_seconds
        )
        with status.status(f"tuning {named.name}"):
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
    default, judged = result.tried[0].outcome, result.judgement
    assert isinstance(default, Timing)
    console.print(candidates_table(result, default))
    console.print(judged.why, style="bold")
    if judged.answer is not None and judged.over_default is not None:
        console.print(f"gain over the default             {gain(judged.over_default)}", style="bold green")
        if judged.over_library_off is not None:
            console.print(f"gain over the library-off default {gain(judged.over_library_off)}", style="green")
        error = next(t.output_error for t in result.tried if t.choice == result.answer)
        console.print(f"outputs agree with the default's within {error:.1g} of the largest magnitude")
    console.print(f"noise: the default against itself {gain(judged.control)}")
    if picture_file is not None:
        write_durably(picture_file, picture(console, "kernelcast demo").encode())


def predicted_and_measured(pair: SideBySide) -> list[RenderableType]:
    """A program's kernels and its whole, side by side."""
    from kernelcast.core.timing import Failure

    total_s = sum(k.total_s for k in pair.kernels)
    shown = pair.kernels[:_SHOWN_KERNELS]
    rows = [
        [
            k.where, k.kernel.kind, f"{k.times.value:g}", duration(k.predicted_s), duration(k.measured_s),
            signed(k.error), percent(k.total_s / total_s),
        ]
        for k in shown
    ]  # fmt: skip
    columns = {
        "kernel": "left", "kind": "left", "runs": "right", "predicted": "right", "measured": "right",
        "error": "right", "share": "right",
    }  # fmt: skip
    rest = sum(k.total_s for k in pair.kernels[_SHOWN_KERNELS:])
    measured = pair.measurement
    lines: list[RenderableType] = [table("", columns, rows)]
    if len(pair.kernels) > len(shown):
        lines.append(f"and {len(pair.kernels) - len(shown)} more kernels that take {percent(rest / total_s)}")
    lines.append(f"order of the kernels: Kendall's τ {pair.tau:.2f} between predicted and measured")
    lines.append(
        f"[bold]whole program: predicted {duration(pair.predicted_s)}, "
        f"measured {duration(measured.whole_s)}: "
        f"{signed(pair.error)}[/]"
    )
    outcome = measured.default.outcome
    if not isinstance(outcome, Failure) and outcome.quiet_share < _QUIET_ENOUGH:
        lines.append(
            f"[yellow]this machine was quiet for {percent(outcome.quiet_share)} of the samples only: other "
            "work slows the program down, and `kernelcast doctor` says what disturbs it[/]"
        )
    if pair.control is not None:
        lines.append(
            f"noise: the program against itself {pair.control.value:.3f}× "
            f"[{pair.control.lower:.3f}, {pair.control.upper:.3f}]; "
            f"sum of its measured kernels {duration(measured.sum_s)}"
        )
    return lines


def signed(fraction: float) -> str:
    """A relative error with its sign."""
    return f"{100 * fraction:+.0f} %" if fraction == fraction else "–"
