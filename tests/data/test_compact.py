"""Compacting: fewer files, the same data."""

from pathlib import Path

from kernelcast.core.identity import TargetIdentity
from kernelcast.data.compact import compact
from kernelcast.data.manifest import PARTS
from kernelcast.data.rule import LabelRule
from kernelcast.data.schema import KernelRow, MeasurementRow, OccurrenceRow, SampleColumns, SurveyRow
from kernelcast.data.store import Dataset, Writer, verify

TARGET = TargetIdentity(kind="xla-cpu", chip="test", compiler="jaxlib 0.0")
SAMPLES = SampleColumns(
    clock="wall", method="m", cache="warm", overhead_s=0.0, runs=[1], seconds=[1.0], loudness=[1.0],
    round=[0], failure="", message="",
)  # fmt: skip


def kernel(number: int) -> KernelRow:
    return KernelRow(
        fingerprint=f"f{number}", skeleton=f"s{number % 2}", kind="loop", nodes=1, text=f"text {number}"
    )


def measurement(number: int) -> MeasurementRow:
    return MeasurementRow(
        occasion="o", kernel=f"f{number}", tile="", target="t", input_policy="p", samples=SAMPLES
    )


def occurrence(number: int) -> OccurrenceRow:
    return OccurrenceRow(program="p", plan="d", kernel=f"f{number}", calls=1, times=1.0, trip_source="exact")


def fill(folder: Path) -> Writer:
    writer = Writer.open(folder, target=TARGET, rule=LabelRule())
    for number in (3, 0, 2, 1):
        writer.commit([kernel(number)], [occurrence(number)])
    writer.commit([measurement(2)], [SurveyRow(program="p", seed=0, random_plans=1, problem="")])
    writer.commit([measurement(1)])
    return writer


def test_compacting_keeps_every_row_in_few_parts(tmp_path: Path) -> None:
    with fill(tmp_path) as writer:
        compact(writer, prune=False)
    assert len(list((tmp_path / PARTS).iterdir())) == 4
    assert verify(tmp_path) == []
    dataset = Dataset.open(tmp_path)
    assert [row.fingerprint for row in dataset.rows(KernelRow)] == ["f0", "f2", "f1", "f3"]
    assert [row.kernel for row in dataset.rows(MeasurementRow)] == ["f2", "f1"]
    assert dataset.count(OccurrenceRow) == 4
    assert dataset.count(SurveyRow) == 1


def test_pruning_drops_texts_that_nobody_measured(tmp_path: Path) -> None:
    with fill(tmp_path) as writer:
        compact(writer, prune=True)
    assert verify(tmp_path) == []
    dataset = Dataset.open(tmp_path)
    assert [row.fingerprint for row in dataset.rows(KernelRow)] == ["f2", "f1"]
    assert dataset.count(OccurrenceRow) == 4
    assert dataset.count(SurveyRow) == 0
