"""From the study of simulated TPU times to the figures that the docs print."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernelcast.jobs.records import Figure
from kernelcast.jobs.studies.schedule import LEAST_RUNS, Agreement, ScheduleReport


def schedule_figures(report: ScheduleReport) -> Iterator[Figure]:
    """Simulated times against measured runs of a TPU v3; names without more words are of ``simulate``."""
    scheduled = report.as_scheduled
    yield from _agreement("tpu_v3.schedule", scheduled, "simulated, as many buffers as scheduled")
    convolution = scheduled.convolution
    if convolution is not None:
        noise = f"simulated; {convolution.runs} runs that nothing was fitted on"
        yield Figure(
            name="tpu_v3.schedule.conv_heldout_tau", value=convolution.tau, unit="fraction", noise=noise
        )
        yield Figure(name="tpu_v3.schedule.conv_heldout_mape", value=convolution.mape, unit="%", noise=noise)
    yield Figure(
        name="tpu_v3.schedule.tau_within_2x",
        value=scheduled.tau_near_best_mean,
        unit="fraction",
        noise="simulated; runs within 2× of the best, mean over the kernels of the mean τ",
    )
    for name, agreement, noise in (
        ("tpu_v3.schedule.narrowed", report.narrowed, "simulated, two buffers"),
        ("tpu_v3.schedule.loko", report.left_out, "simulated, two buffers; fitted on the other kernels"),
        ("tpu_v3.schedule.fitted_on_loops", report.fitted_on_loops, "simulated, two buffers; on products"),
        ("tpu_v3.schedule.fitted_on_products", report.fitted_on_products, "simulated, two buffers; on loops"),
        (
            "tpu_v3.analytical",
            report.analytical,
            "the compiler's own cycles, scaled by one factor in hindsight",
        ),
    ):
        separator = "_" if name.endswith("loko") else "."
        yield from _agreement(name, agreement, noise, separator=separator)


def _agreement(name: str, agreement: Agreement, noise: str, *, separator: str = ".") -> Iterator[Figure]:
    often = [k for k in agreement.kernels if k.runs >= LEAST_RUNS]
    windowed = [k for k in agreement.kernels if k.has_windows]
    for word, value, unit, counted in (
        ("tau_mean", agreement.tau_mean, "fraction", often),
        ("mape", agreement.mape_mean, "%", windowed),
    ):
        if math.isfinite(value):
            runs = f"{noise}; {len(counted)} kernels, {sum(k.runs for k in counted)} runs"
            yield Figure(name=f"{name}{separator}{word}", value=value, unit=unit, noise=runs)
