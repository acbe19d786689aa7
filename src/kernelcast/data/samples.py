"""Raw samples as columns, and back."""

from __future__ import annotations

from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.data.schema import SampleColumns


def to_columns(outcome: Timing | Failure) -> SampleColumns:
    """The outcome as columns; a failure keeps the samples that it had."""
    timed = outcome if isinstance(outcome, Timing) else None
    failed = outcome if isinstance(outcome, Failure) else None
    return SampleColumns(
        clock=timed.clock.value if timed else "",
        method=timed.method if timed else "",
        cache=timed.cache if timed else "",
        overhead_s=timed.overhead_s if timed else 0.0,
        runs=[s.runs for s in outcome.samples],
        seconds=[s.seconds for s in outcome.samples],
        loudness=[s.loudness for s in outcome.samples],
        round=[s.round for s in outcome.samples],
        failure=failed.reason.value if failed else "",
        message=failed.message if failed else "",
    )


def from_columns(columns: SampleColumns) -> Timing | Failure:
    """The outcome that was stored; seconds and loudness come back rounded to float32."""
    samples = tuple(
        Sample(runs=runs, seconds=seconds, loudness=loudness, round=round_)
        for runs, seconds, loudness, round_ in zip(
            columns.runs, columns.seconds, columns.loudness, columns.round, strict=True
        )
    )
    if columns.failure:
        return Failure(reason=Reason(columns.failure), message=columns.message, samples=samples)
    return Timing(
        samples=samples,
        clock=Clock(columns.clock),
        method=columns.method,
        cache=columns.cache,
        overhead_s=columns.overhead_s,
    )
