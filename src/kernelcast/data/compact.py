"""Makes a dataset small: few parts in place of the many that a collection writes, like texts side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from kernelcast.data.schema import (
    ROW_TYPES,
    KernelRow,
    MeasurementRow,
    OccurrenceRow,
    PlanRow,
    Row,
    SurveyRow,
)
from kernelcast.data.store import Dataset, Writer

# Bounds the memory that writing a part takes; one part of this many texts holds about 40 MB.
_ROWS_PER_PART = 20_000


def compact(writer: Writer, *, prune: bool) -> None:
    """Rewrites a dataset with few parts, atomically; what is measured stays as it is.

    Args:
        prune: leave out the texts of kernels that were never attempted. Their occurrences stay, so that
            splits and sums over a plan still know of them; the surveys go, so that collecting again brings
            the texts back.
    """
    dataset = writer.dataset()
    measured = {kernel for (kernel,) in dataset.columns(MeasurementRow, "kernel")}
    keep: dict[type[Row], Callable[[Row], bool]] = {}
    if prune:
        keep[KernelRow] = lambda row: cast(KernelRow, row).fingerprint in measured
        keep[SurveyRow] = lambda _: False
    writer.rewrite(part for row_type in ROW_TYPES for part in _parts(dataset, row_type, keep.get(row_type)))


def _parts(
    dataset: Dataset, row_type: type[Row], keep: Callable[[Row], bool] | None
) -> Iterator[Sequence[Row]]:
    rows = [row for row in dataset.rows(row_type) if keep is None or keep(row)]
    order = _ORDER.get(row_type)
    if order is not None:
        rows.sort(key=order)
    for start in range(0, len(rows), _ROWS_PER_PART):
        yield rows[start : start + _ROWS_PER_PART]


def _kernel_order(row: Row) -> tuple[str, ...]:
    kernel = cast(KernelRow, row)
    return (kernel.kind, kernel.skeleton, kernel.text)


def _plan_order(row: Row) -> tuple[str, ...]:
    plan = cast(PlanRow | OccurrenceRow, row)
    return (plan.program, plan.plan)


# Alike rows next to each other compress several times better. Measurements keep the order of time, in which
# the first of a kernel is its label.
_ORDER: dict[type[Row], Callable[[Row], tuple[str, ...]]] = {
    KernelRow: _kernel_order,
    PlanRow: _plan_order,
    OccurrenceRow: _plan_order,
}
