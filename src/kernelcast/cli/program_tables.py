"""Tables about one program: its kernels predicted and measured, tuning candidates, replays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelcast.cli.output import duration, facts, percent, table
from kernelcast.core.estimate import Status
from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Failure, Timing
from kernelcast.fusion.plan import FusionPlan
from kernelcast.hlo.trips import TripCount
from kernelcast.jobs.as_json import encode_choice, outcome_to_json
from kernelcast.jobs.comparison import Ratio, time_ratio, whole_seconds
from kernelcast.jobs.ingest import IngestReport
from kernelcast.jobs.programs.measure import ProgramMeasurement
from kernelcast.jobs.programs.predict import ProgramEstimate
from kernelcast.jobs.tuning.replay import Replay
from kernelcast.jobs.tuning.result import TuningResult

# Longer tables hide what matters; the rest is one line.
_SHOWN_KERNELS = 25


def ingested(report: IngestReport) -> list[RenderableType]:
    """What a program holds."""
    cost = report.cost
    pairs: dict[str, object] = {
        "read from": report.origin,
        "stage": report.stage,
        "size": f"{report.instructions:,} instructions in {report.computations} computations",
        "opcodes": ", ".join(f"{n} {opcode}" for opcode, n in list(report.opcodes.items())[:12]),
        "parameters": shortened(report.parameters),
        "result": report.result,
        "donated": shortened([str(n) for n in report.donated]) or "none",
        "arithmetic": f"{cost.flops:.4g} operations, {cost.transcendentals:.4g} transcendentals",
        "memory": f"{cost.bytes_read / 1e6:.4g} MB read, {cost.bytes_written / 1e6:.4g} MB written",
    }
    if report.kernels:
        pairs["kernels"] = ", ".join(f"{n} {kind}" for kind, n in report.kernels.items())
    for loop in report.loops:
        pairs[f"loop %{loop.instruction}"] = f"{runs(loop.trips)} trips ({loop.trips.source})"
    if report.elided:
        pairs["left out"] = f"the values of {len(report.elided)} constants"
    if cost.unknown:
        pairs["unknown arithmetic"] = shortened(cost.unknown)
    return [facts(report.name, pairs)]


def shortened(names: Sequence[str], most: int = 8) -> str:
    """A list for one line."""
    more = f" … and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def predicted_kernels(name: str, estimate: ProgramEstimate, estimator: str) -> list[RenderableType]:
    """The kernels of a program by predicted share, the largest first."""
    ranked = sorted(estimate.kernels, key=lambda k: -_or_zero(k.total_s))
    total_s = sum(_or_zero(k.total_s) for k in ranked)
    rows = [
        [
            k.where,
            k.kernel.kind,
            runs(k.times),
            duration(k.seconds),
            percent(k.total_s / total_s),
            trust(k.status),
        ]
        for k in ranked[:_SHOWN_KERNELS]
    ]
    columns = {
        "kernel": "left", "kind": "left", "runs": "right", "predicted": "right", "share": "right",
        "trust": "left",
    }  # fmt: skip
    made = table(f"{name}: {len(ranked)} distinct kernels", columns, rows)
    lines = [f"[bold]predicted time of the program: {duration(estimate.seconds)}[/]  (by {estimator})"]
    if len(ranked) > _SHOWN_KERNELS:
        rest_s = sum(_or_zero(k.total_s) for k in ranked[_SHOWN_KERNELS:])
        lines.insert(0, f"and {len(ranked) - _SHOWN_KERNELS} more that take {percent(rest_s / total_s)}")
    if estimate.missing:
        missing = ", ".join(k.where for k in estimate.missing[:5])
        lines.append(f"unknown, since {len(estimate.missing)} kernels have no estimate: {missing}")
    if estimate.extrapolated_share > 0:
        lines.append(f"{percent(estimate.extrapolated_share)} of it is extrapolated beyond the training data")
    return [made, *lines]


def measured_kernels(name: str, found: ProgramMeasurement) -> list[RenderableType]:
    """The kernels of a program by measured share, then the whole beside their sum."""
    ranked = sorted(found.kernels, key=lambda k: -_or_zero(k.total_s))
    total_s = sum(_or_zero(k.total_s) for k in ranked) or math.nan
    rows = [
        [k.where, k.kernel.kind, runs(k.times), timed(k.outcome, k.seconds), percent(k.total_s / total_s)]
        for k in ranked[:_SHOWN_KERNELS]
    ]
    columns = {"kernel": "left", "kind": "left", "runs": "right", "measured": "right", "share": "right"}
    made = table(f"{name}: {len(ranked)} distinct kernels", columns, rows)
    lines = [
        f"[bold]whole program: {duration(found.whole_s)}[/]  (noise {noise(found)})",
        f"sum of its kernels: {duration(found.sum_s)}, {percent(found.sum_s / found.whole_s - 1)} off",
    ]
    if found.missing:
        missing = ", ".join(f"{k.where} ({k.outcome})" for k in found.missing[:5])
        lines.append(f"kernels without a time: {missing}")
    return [made, *lines]


def measured_json(name: str, found: ProgramMeasurement, identity: TargetIdentity) -> dict[str, Any]:
    """All raw samples of a measurement."""
    return {
        "program": name,
        "target": identity,
        "seconds": found.whole_s,
        "sum_of_kernels_seconds": found.sum_s,
        "coverage": found.coverage,
        "outcome": outcome_to_json(found.program.outcome),
        "control": outcome_to_json(found.control.outcome),
        "kernels": [
            {
                "where": k.where, "kind": k.kernel.kind, "runs": k.times.value, "seconds": k.seconds,
                "fingerprint": k.kernel.fingerprint, "outcome": outcome_to_json(k.outcome),
            }
            for k in found.kernels
        ],
    }  # fmt: skip


def tuning_table(result: TuningResult, path: Path) -> list[RenderableType]:
    """What was tried, the fastest first, and the verdict."""
    default = result.tried[0].outcome
    assert isinstance(default, Timing)
    made = candidates_table(result, default)
    judged = result.judgement
    lines: list[RenderableType] = [made, Text(judged.why, style="bold")]
    if judged.over_default is not None and judged.answer is not None:
        lines.append(f"gain over the default: {gain(judged.over_default)}")
        if judged.over_library_off is not None:
            lines.append(f"gain over the library-off default: {gain(judged.over_library_off)}")
    lines.append(f"noise (the default against itself): {gain(judged.control)}")
    lines.append(
        f"measured for {result.target.threads} thread on {result.target.chip}; "
        f"{result.device_s:.0f} s on the device, {result.model_s:.0f} s in the model; on the way "
        f"{result.kernels_timed} kernels were timed alone and {len(result.explored)} plans whole"
    )
    lines.append(f"written to {path}; `kernelcast replay {path}` measures it again")
    return lines


def candidates_table(result: TuningResult, default: Timing) -> Table:
    """The candidates of a tuning run by measured time."""
    rows: list[tuple[float, list[str]]] = []
    plans = 0
    for number, tried in enumerate(result.tried):
        label = str(tried.choice)
        if isinstance(tried.choice, FusionPlan):
            plans += 1
            label = f"plan {plans}" if tried.choice.space == result.space else f"plan {plans}, library off"
        label = "untouched again (A/A)" if number == 1 else label
        if isinstance(tried.outcome, Failure):
            rows.append((math.inf, [label, duration(tried.predicted_s), str(tried.outcome)[:60], "", ""]))
            continue
        seconds = whole_seconds(tried.outcome)
        ratio = time_ratio(tried.outcome, default).inverse
        error = f"{tried.output_error:.1g}" if math.isfinite(tried.output_error) else "–"
        rows.append((seconds, [label, duration(tried.predicted_s), duration(seconds), gain(ratio), error]))
    columns = {
        "candidate": "left", "predicted": "right", "measured": "right", "speed over default": "right",
        "output error": "right",
    }  # fmt: skip
    return table(result.program, columns, [row for _, row in sorted(rows, key=lambda r: r[0])])


def tuning_json(result: TuningResult, path: Path) -> dict[str, Any]:
    """The answer of a tuning run; the file has all else."""
    return {
        "program": result.program,
        "answer": encode_choice(result.answer),
        "judgement": result.judgement,
        "threads": result.target.threads,
        "device_seconds": result.device_s,
        "model_seconds": result.model_s,
        "file": path,
    }


def replay_table(found: Replay) -> list[RenderableType]:
    """What a tuning result is worth now."""
    rows = [["over the default", gain(found.over_default)]]
    if found.over_library_off is not None:
        rows.append(["over the library-off default", gain(found.over_library_off)])
    if found.recorded_over_default is not None:
        rows.append(["over the default, when it was tuned", gain(found.recorded_over_default)])
    rows.append(["noise (the default against itself)", gain(found.control)])
    rows.append(["output error", f"{found.output_error:.1g}"])
    made = table(found.program, {"gain": "left", "speed": "right"}, rows)
    return [made] if found.same_machine else [made, "tuned on another machine or with other settings"]


def replay_json(found: Replay) -> dict[str, Any]:
    """A replay with all raw samples."""
    return {
        "program": found.program,
        "answer": encode_choice(found.answer),
        "over_default": found.over_default,
        "over_library_off": found.over_library_off,
        "recorded_over_default": found.recorded_over_default,
        "control": found.control,
        "output_error": found.output_error,
        "same_machine": found.same_machine,
        "outcomes": [outcome_to_json(t.outcome) for t in found.timings],
    }


def gain(ratio: Ratio) -> str:
    """A speed ratio with its interval: ``1.25× [1.21, 1.30]``."""
    if math.isnan(ratio.value):
        return "–"
    interval = "" if math.isnan(ratio.lower) else f" [{ratio.lower:.2f}, {ratio.upper:.2f}]"
    return f"{ratio.value:.2f}×{interval}" + ("" if ratio.quiet else " loud")


def noise(found: ProgramMeasurement) -> str:
    """How far the A/A control lies from the default, and how wide the default's own times are."""
    own, control = found.default.outcome, found.control.outcome
    if not (isinstance(own, Timing) and isinstance(control, Timing)):
        return "unknown"
    ratio = time_ratio(control, own)
    return f"±{percent(abs(ratio.value - 1))}, quiet {percent(own.quiet_share)} of the time"


def runs(times: TripCount) -> str:
    """A trip count, marked where it was assumed."""
    mark = "?" if times.source == "assumed" else ""
    return f"{times.value:g}{mark}"


def timed(outcome: Timing | Failure, seconds: float) -> str:
    """A measured time, or why there is none."""
    return outcome.reason.value if isinstance(outcome, Failure) else duration(seconds)


def trust(status: Status) -> str:
    """How far an estimate may be trusted, in a word."""
    return status.name.lower()


def _or_zero(value: float) -> float:
    return value if math.isfinite(value) else 0.0
