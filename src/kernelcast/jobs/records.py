"""From the reports of studies to the records that the docs print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from kernelcast.jobs.collection.collect import CollectReport
from kernelcast.jobs.collection.oracle import OracleReport
from kernelcast.jobs.comparison import Ratio
from kernelcast.jobs.learning.fusion_table import FusionTable
from kernelcast.jobs.learning.tile_scores import TOPS
from kernelcast.jobs.learning.tile_table import DEFAULT, TileTable
from kernelcast.jobs.studies.additivity import AdditivityReport
from kernelcast.jobs.studies.measured_tiles import MeasuredTiles
from kernelcast.jobs.studies.plans_tried import PlansReport
from kernelcast.jobs.studies.program_times import ProgramTimesReport
from kernelcast.jobs.studies.roundtrip import RoundtripReport
from kernelcast.jobs.studies.tile_speed import TileSpeed
from kernelcast.jobs.studies.tpu_programs import TpuProgramsReport
from kernelcast.jobs.studies.tuning_report import CONDITIONS, MODEL, TuningReport
from kernelcast.report.provenance import Provenance
from kernelcast.report.results import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A named number with its noise, before it is known where it was made."""

    name: str
    value: float
    unit: str
    noise: str


def records(
    figures: Iterable[Figure], made: Provenance, *, seeds: Iterable[int] = (), split: str = "none"
) -> list[Record]:
    """Records of the figures that exist; a NaN is a figure that this run could not give."""
    seeds = tuple(seeds)
    return [
        made.record(f.name, f.value, f.unit, seeds=seeds, split=split, noise=f.noise)
        for f in figures
        if math.isfinite(f.value)
    ]


def roundtrip_figures(report: RoundtripReport) -> Iterator[Figure]:
    """How HLO text is read and written."""
    speed = report.speed
    yield Figure(
        name="hlo.roundtrip.modules_fraction",
        value=report.modules.same_fraction,
        unit="fraction",
        noise=f"exact; {report.modules.tried} modules, of which XLA refuses {report.modules.refused_by_xla}",
    )
    yield Figure(
        name="hlo.read.instructions_per_s",
        value=speed.instructions_per_s,
        unit="1/s",
        noise=f"best of 5 on {speed.instructions:,} instructions; time per instruction {speed.slowdown:.2f}× "
        f"that of a text of {speed.smaller_instructions:,}",
    )


def plans_figures(report: PlansReport) -> Iterator[Figure]:
    """What became of imposed plans."""
    failures = ", ".join(f"{n} {why}" for why, n in report.failures.items()) or "no other failure"
    noise = f"{report.programs} programs, {len(report.not_captured)} not captured; {failures}"
    for name, value, unit in (
        ("cpu.reimposed_default_identical_fraction", report.identical_fraction, "fraction"),
        ("cpu.plans.tried", report.tried, "count"),
        ("cpu.plans.wrong_values", len(report.wrong_values), "count"),
        ("cpu.plans.failed_fraction", report.failed_fraction, "fraction"),
    ):
        yield Figure(name=name, value=value, unit=unit, noise=noise)


def tpu_program_figures(report: TpuProgramsReport, target: str, ten: Iterable[str]) -> Iterator[Figure]:
    """How much of whole programs a TPU target reaches.

    Args:
        ten: programs of a study whose defaults are counted.
    """
    programs, named = report.programs, tuple(ten)
    tried = sum(p.tried for p in programs)
    failed = sum(sum(p.failures.values()) for p in programs)
    yield Figure(
        name=f"{target}.programs_simulated",
        value=sum(p.is_simulated for p in programs),
        unit="count",
        noise=f"exact; {len(programs)} programs compile, {len(report.not_compiled)} do not",
    )
    if set(named) <= {p.name for p in programs}:
        yield Figure(
            name=f"{target}.default_in_space_of_{len(named)}",
            value=report.default_in_space(named),
            unit="count",
            noise=f"exact; of all {len(programs)}: {sum(p.is_default_in_space for p in programs)}",
        )
    yield Figure(
        name=f"{target}.plans_failed_fraction",
        value=failed / tried if tried else math.nan,
        unit="fraction",
        noise=f"{tried} random plans",
    )


def additivity_figures(report: AdditivityReport) -> Iterator[Figure]:
    """How well sums of kernels rank plans: medians over programs, and every program by itself."""
    programs = [*report.note, *report.new]
    spread = f"{len(programs)} programs, {len(report.new)} of them not used for the memory factor"
    fitted = f"fitted on {len(report.note)} programs"
    repeat = f"whole programs repeat within {100 * report.median('repeat_error'):.1f} %"
    for name, value, unit, noise in (
        ("tau_median", report.median("tau"), "fraction",
         f"{spread}; split-half τ of whole programs {report.median('repeat_tau'):.2f}"),
        ("regret_median", report.median("regret"), "ratio", spread),
        ("abs_error_median", 100 * report.median("abs_error"), "%", f"{spread}; {repeat}"),
        ("new_programs.tau_median", report.median("tau", report.new), "fraction", spread),
        ("new_programs.regret_median", report.median("regret", report.new), "ratio", spread),
        ("memory_factor.scale", report.factor.scale, "ratio", fitted),
        ("memory_factor.slope", report.factor.slope, "fraction", fitted),
    ):  # fmt: skip
        yield Figure(name=f"cpu.additivity.{name}", value=value, unit=unit, noise=noise)
    for row in programs:
        noise = f"split-half τ {row.repeat_tau:.2f}, repeats within {100 * row.repeat_error:.1f} %"
        for name, value, unit in (
            ("plans", row.plans, "count"),
            ("tau", row.tau, "fraction"),
            ("repeat_tau", row.repeat_tau, "fraction"),
            ("regret", row.regret, "ratio"),
            ("slope", row.slope, "ratio"),
            ("abs_error", 100 * row.abs_error, "%"),
            ("repeat_error", 100 * row.repeat_error, "%"),
        ):
            full = f"cpu.additivity.program.{record_word(row.program)}.{name}"
            yield Figure(name=full, value=value, unit=unit, noise=noise)


def oracle_figures(report: OracleReport) -> Iterator[Figure]:
    """How well labels repeat."""
    long, short = report.bands
    noise = (
        f"{report.drawn} kernels, {100 * report.dropped_share:.1f} % dropped, share of quiet "
        f"samples {report.quiet_share:.2f} (first {report.first_quiet_share:.2f}), "
        f"occasions begun at least {report.least_gap_s / 60:.0f} min apart"
    )
    for name, value, unit in (
        ("mape_ge5us", long.mape, "%"),
        ("mape_lt5us", short.mape, "%"),
        ("tau_ge5us", long.tau, "fraction"),
        ("median_ge5us", long.median, "%"),
        ("kernels_ge5us", long.kernels, "count"),
        ("kernels_lt5us", short.kernels, "count"),
    ):
        yield Figure(name=f"cpu.oracle.{name}", value=value, unit=unit, noise=noise)


def fusion_figures(table: FusionTable) -> Iterator[Figure]:
    """The fusion task's table: medians over programs of each model, and every program of each."""
    kind, chip = table.target
    on_cpu = kind == "xla-cpu"
    place, split = ("cpu.fusion", "family_split") if on_cpu else (f"{record_word(chip)}.fusion", "random")
    clock = "simulated times; " if table.is_simulated else ""
    for row in table.summaries:
        population = split if row.population == "all" else row.population
        population = f"{split}.{population}" if on_cpu and population != split else population
        low, high = row.mape_ge5us_range
        noise = (
            f"{clock}{row.seeds} seeds, MAPE ≥ 5 µs {low:.1f}–{high:.1f} % over them; "
            f"{row.programs} programs; {100 * row.extrapolated_share:.0f} % extrapolated"
        )
        for name, value, unit in (
            ("mape_ge5us_median", row.mape_ge5us, "%"),
            ("mape_lt5us_median", row.mape_lt5us, "%"),
            ("tau_median", row.tau_ge5us, "fraction"),
        ):
            full = f"{place}.{population}.{name}.{row.model}"
            yield Figure(name=full, value=value, unit=unit, noise=noise)
    for row in table.rows:
        if row.population == "all":
            for name, value, unit, count in (
                ("mape_ge5us", row.mape_ge5us, "%", row.kernels_ge5us),
                ("tau_ge5us", row.tau_ge5us, "fraction", row.kernels_ge5us),
                ("mape_lt5us", row.mape_lt5us, "%", row.kernels_lt5us),
            ):
                full = f"{place}.{split}.program.{name}.{record_word(row.program)}.{row.model}"
                yield Figure(name=full, value=value, unit=unit, noise=f"{clock}{count} kernels")


def tile_figures(table: TileTable, *, split_name: str) -> Iterator[Figure]:
    """The tile task's table: means over programs of each model, and every program of each."""
    start = f"tile.{record_word(table.target)}.{record_word(split_name)}"
    clock = "simulated times" if table.is_simulated else "measured times"
    for row in table.summaries:
        population = "" if row.population == "all" else f".{row.population}"
        low, high = row.tau_range
        noise = f"{clock}; {row.seeds} seeds; {row.programs} programs, {row.kernels} kernels"
        spread = f"{noise}; τ {low:.3f}–{high:.3f} over seeds"
        for name, value, unit, told in (
            ("tau_mean", row.tau_mean, "fraction", spread),
            ("tau_median", row.tau_median, "fraction", spread),
            ("ape", row.ape_mean, "%", noise),
            ("ape_median", row.ape_median, "%", noise),
            *((f"top_{k}_error", error, "%", noise) for k, error in zip(TOPS, row.top_errors, strict=True)),
        ):
            yield Figure(name=f"{start}{population}.{name}.{row.model}", value=value, unit=unit, noise=told)
    for row in table.rows:
        if row.population == "all" and row.model != DEFAULT:
            for name, value, unit in (("tau", row.score.tau, "fraction"), ("ape", row.score.ape, "%")):
                full = f"{start}.program.{name}.{record_word(row.program)}.{row.model}"
                yield Figure(name=full, value=value, unit=unit, noise=f"{clock}; {row.score.kernels} kernels")
    for row in table.differences:
        yield Figure(
            name=f"{start}.tau_difference.{row.first}.{row.second}",
            value=row.mean,
            unit="fraction",
            noise=f"{clock}; 95 % bootstrap interval over programs {row.lower:+.3f} to {row.upper:+.3f}",
        )


def measured_tile_figures(found: MeasuredTiles, *, chip: str) -> Iterator[Figure]:
    """How well rankers that learned from simulated times order tiles by measured ones."""
    if found.judged:
        noise = f"measured times, {len(found.judged)} kernels, {sum(k.runs for k in found.judged)} runs"
        for model in found.judged[0].tau:
            yield Figure(
                name=f"tile.{chip}.measured.tau_mean.{model}",
                value=found.tau_mean(model),
                unit="fraction",
                noise=f"{noise}; τ by kernel {_range([k.tau[model] for k in found.judged])}",
            )
    for kernel in found.kernels:
        for model, tau in kernel.tau.items():
            full = f"tile.{chip}.measured.kernel.tau.{record_word(kernel.name)}.{model}"
            yield Figure(name=full, value=tau, unit="fraction", noise=f"measured times, {kernel.runs} runs")


def tile_speed_figures(found: TileSpeed) -> Iterator[Figure]:
    """How fast tiles are learned from and ranked."""
    yield Figure(
        name="tpugraphs.pairs_per_s",
        value=found.pairs_per_s,
        unit="1/s",
        noise=f"median of 5 epochs; {found.kernels} kernels of {found.nodes_mean:.1f} nodes, 10 × 10 a batch",
    )
    yield Figure(
        name="tile.rank_5800_tiles_s",
        value=found.rank_s,
        unit="s",
        noise=f"median of 5, warm; a convolution of {found.ranked_nodes} nodes",
    )


def tuning_figures(report: TuningReport) -> Iterator[Figure]:
    """What the model recovers from un-fused plans, and what tuning gains over the defaults."""
    rows = report.unfused_start
    start = "cpu.tune.unfused_start"
    if rows:
        spread = f"{len(rows)} programs; A/A {_range([row.control.value for row in rows])}"
        recovered = report.recovered(MODEL)
        yield Figure(name=f"{start}.recovered_of_10", value=recovered, unit="count", noise=spread)
        for condition in CONDITIONS:
            name = f"{start}.recovered.{condition.replace('-', '_')}"
            yield Figure(name=name, value=report.recovered(condition), unit="count", noise=spread)
    for row in rows:
        for name, ratio in {"unfused": row.start, **row.found}.items():
            full = f"{start}.program.{record_word(row.program)}.{name.replace('-', '_')}"
            yield Figure(name=full, value=ratio.value, unit="ratio", noise=_noise(ratio, row.control))
    for row in report.from_default:
        for name, ratio in (
            ("gain", row.over_default),
            ("gain_over_library_off", row.over_library_off),
            ("gain_over_best_default", row.over_best_default),
        ):
            if ratio is not None:
                noise = _noise(ratio, row.control)
                yield Figure(name=f"cpu.tune.{name}.{row.name}", value=ratio.value, unit="ratio", noise=noise)


def _noise(ratio: Ratio, control: Ratio) -> str:
    loud = "" if ratio.quiet else ", loud rounds included"
    return f"90 % interval {ratio.lower:.3f}–{ratio.upper:.3f}, A/A {control.value:.3f}{loud}"


def _range(values: Iterable[float]) -> str:
    found = list(values)
    return f"{min(found):.3f}–{max(found):.3f}"


def program_time_figures(report: ProgramTimesReport) -> Iterator[Figure]:
    """How far predicted times of whole programs lie from measured ones."""
    noise = float(np.median([row.noise for row in report.programs])) if report.programs else math.nan
    yield Figure(
        name="cpu.program_time.abs_error_median",
        value=100 * report.abs_error_median,
        unit="%",
        noise=f"{len(report.programs)} programs, {len(report.problems)} without a time; "
        f"median |A/A − 1| {100 * noise:.1f} %",
    )
    for row in report.programs:
        yield Figure(
            name=f"cpu.program_time.program.{record_word(row.program)}",
            value=100 * row.error,
            unit="%",
            noise=f"|A/A − 1| {100 * row.noise:.1f} %, {100 * row.extrapolated_share:.0f} % extrapolated",
        )


def collect_figures(report: CollectReport, *, labelled: int) -> Iterator[Figure]:
    """The size of a dataset, and how fast it grew."""
    progress = report.progress
    noise = f"share of quiet samples {progress.quiet_share:.2f} over {progress.elapsed_s / 60:.0f} min"
    yield Figure(name="dataset.kernels", value=labelled, unit="count", noise=noise)
    if progress.finished:  # a run that found nothing left to do has no rate
        yield Figure(name="collect.kernels_per_s", value=progress.kernels_per_s, unit="1/s", noise=noise)


def record_word(name: str) -> str:
    """A program's id as one word of a record's name.

    >>> record_word("rbf/256-wide")
    'rbf_256-wide'
    """
    return name.lower().replace("/", "_").replace(".", "_")
