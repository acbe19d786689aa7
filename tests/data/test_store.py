"""The dataset store: what is committed stays, whatever happens while the next thing is written."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.data import durable
from kernelcast.data.manifest import MANIFEST, PARTS, read_manifest
from kernelcast.data.rule import LabelRule
from kernelcast.data.samples import from_columns, to_columns
from kernelcast.data.schema import KernelRow, MeasurementRow
from kernelcast.data.store import Dataset, Writer, verify
from kernelcast.errors import SchemaError, StoreError

TARGET = TargetIdentity(kind="xla-cpu", chip="test", compiler="jaxlib 0.0")
RULE = LabelRule()


def kernel_row(number: int) -> KernelRow:
    name = f"{number:032x}"
    return KernelRow(
        fingerprint=name, skeleton=name[::-1], kind="loop", nodes=3, text=f"HloModule k{number}\n"
    )


def measurement_row(number: int, outcome: Timing | Failure) -> MeasurementRow:
    return MeasurementRow(
        occasion="o1", kernel=f"{number:032x}", tile="", target=TARGET.digest,
        input_policy=RULE.input_policy, samples=to_columns(outcome),
    )  # fmt: skip


def timing(seconds: float = 1e-3) -> Timing:
    samples = (
        Sample(runs=10, seconds=seconds, loudness=1.0, round=0),
        Sample(runs=50, seconds=5 * seconds, loudness=1.02, round=0),
    )
    return Timing(samples=samples, clock=Clock.WALL, method="loop-slope", overhead_s=3e-8)


def test_what_is_committed_is_read_back(tmp_path: Path) -> None:
    failure = Failure(reason=Reason.CRASH, message="signal 6")
    with Writer.open(tmp_path / "d", target=TARGET, rule=RULE) as writer:
        writer.commit(
            [kernel_row(1), kernel_row(2)], [measurement_row(1, timing()), measurement_row(2, failure)]
        )
        writer.commit([kernel_row(3)], [])
        writer.commit([], [])
    dataset = Dataset.open(tmp_path / "d", target=TARGET)
    assert list(dataset.rows(KernelRow)) == [kernel_row(1), kernel_row(2), kernel_row(3)]
    assert dataset.count(KernelRow) == 3
    first, second = (from_columns(row.samples) for row in dataset.rows(MeasurementRow))
    assert isinstance(first, Timing)
    assert first.seconds() == pytest.approx(timing().seconds(), rel=1e-6)
    assert first.overhead_s == 3e-8
    assert second == failure
    assert next(iter(dataset.columns(KernelRow, "fingerprint", "nodes"))) == (f"{1:032x}", 3)
    assert verify(tmp_path / "d") == []


def test_an_empty_dataset_has_no_rows(tmp_path: Path) -> None:
    Writer.open(tmp_path, target=TARGET, rule=RULE).__exit__(None, None, None)
    dataset = Dataset.open(tmp_path)
    assert list(dataset.rows(KernelRow)) == []
    assert verify(tmp_path) == []


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**31 - 1),
            st.floats(2.0**-30, 1024, width=32),
            st.floats(1, 100, width=32) | st.just(float("inf")),
            st.integers(0, 2**15 - 1),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_samples_survive_columns(values: list[tuple[int, float, float, int]]) -> None:
    outcome = Timing(
        samples=tuple(Sample(runs=r, seconds=s, loudness=x, round=n) for r, s, x, n in values),
        clock=Clock.WALL,
        method="loop-slope",
    )
    assert from_columns(to_columns(outcome)) == outcome


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE):
        with pytest.raises(StoreError, match=rf"being written by another process \(id {os.getpid()}\)"):
            Writer.open(tmp_path, target=TARGET, rule=RULE)
        Dataset.open(tmp_path)
    Writer.open(tmp_path, target=TARGET, rule=RULE).__exit__(None, None, None)


def test_another_target_rule_or_schema_is_refused_with_both_names(tmp_path: Path) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit([kernel_row(1)])
    other = TargetIdentity(kind="xla-cpu", chip="other", compiler="jaxlib 0.0")
    with pytest.raises(SchemaError, match=rf"{TARGET.digest}.*{other.digest}"):
        Writer.open(tmp_path, target=other, rule=RULE)
    with pytest.raises(SchemaError, match=r"\(chip: test, not other\)"):
        Dataset.open(tmp_path, target=other)
    with pytest.raises(SchemaError, match=r"gated_rounds=3.*gated_rounds=5"):
        Writer.open(tmp_path, target=TARGET, rule=LabelRule(gated_rounds=5))
    body = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**body, "schema": "kernelcast-dataset-0"}))
    with pytest.raises(SchemaError, match=r"kernelcast-dataset-0.*kernelcast-dataset-1"):
        Dataset.open(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not whole JSON"),
        (b"\xff\x00", "not whole JSON"),
        (b"{", "not whole JSON"),
        (b"[]", "holds list"),
        (None, "has no manifest.json"),
    ],
)
def test_a_foreign_folder_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(StoreError, match=message):
        Dataset.open(tmp_path)


def test_parts_without_a_manifest_are_not_taken_for_leftovers(tmp_path: Path) -> None:
    (tmp_path / PARTS).mkdir()
    part = tmp_path / PARTS / "mine.parquet"
    part.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"holds Parquet files .* no manifest.json"):
        Writer.open(tmp_path, target=TARGET, rule=RULE)
    assert part.read_bytes() == b"PAR1"


def test_a_file_is_not_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file, not a dataset folder"):
        Dataset.open(tmp_path / "file")
    with pytest.raises(StoreError, match="cannot write"):
        Writer.open(tmp_path / "file", target=TARGET, rule=RULE)


def test_an_edited_manifest_is_noticed(tmp_path: Path) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit([kernel_row(1)])
    path = tmp_path / MANIFEST
    path.write_text(path.read_text().replace('"rows": 1', '"rows": 2'))
    with pytest.raises(StoreError, match="changed by hand or damaged"):
        Dataset.open(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_part_is_named_and_the_rest_is_kept(tmp_path: Path, damage: str) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit([kernel_row(1)])
        writer.commit([kernel_row(2)])
    part = read_manifest(tmp_path).parts[0]
    path = tmp_path / PARTS / part.file
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-7] if damage == "cut" else content[:40] + b"?" + content[41:])
    with pytest.raises(StoreError, match=part.file):
        list(Dataset.open(tmp_path).rows(KernelRow))
    assert part.file in verify(tmp_path)[0]
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        assert len(writer.drop_damaged()) == 1
    assert verify(tmp_path) == []
    assert list(Dataset.open(tmp_path).rows(KernelRow)) == [kernel_row(2)]


def test_verify_names_repeated_keys_and_kernels_without_text(tmp_path: Path) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit([kernel_row(1)], [measurement_row(3, timing())])
        writer.commit([kernel_row(1), kernel_row(2)])
    problems = "\n".join(verify(tmp_path))
    assert "kernels: 1 keys are there twice" in problems
    assert f"measurements: 1 kernels have no text, e.g. {3:032x}" in problems


def test_a_full_disk_loses_nothing_written_before(tmp_path: Path) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit([kernel_row(1)])
        before = sorted((tmp_path / PARTS).iterdir())
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        big = [kernel_row(n) for n in range(2, 5000)]
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            with pytest.raises(StoreError, match=r"file size limit.*everything written before is kept"):
                writer.commit(big)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert sorted((tmp_path / PARTS).iterdir()) == before
        writer.commit([kernel_row(2)])
    assert list(Dataset.open(tmp_path).rows(KernelRow)) == [kernel_row(1), kernel_row(2)]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "disk is full: free some space"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "no permission"),
    ],
)
def test_errors_of_the_disk_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, message: str
) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(durable.os, "fsync", refuse)
    with pytest.raises(StoreError, match=message):
        durable.write_durably(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []


def test_rewriting_replaces_all_parts(tmp_path: Path) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        for number in range(4):
            writer.commit([kernel_row(number)])
        writer.rewrite([[kernel_row(2), kernel_row(3)]])
        assert len(list((tmp_path / PARTS).iterdir())) == 1
    assert list(Dataset.open(tmp_path).rows(KernelRow)) == [kernel_row(2), kernel_row(3)]


_COMMITTER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_store import RULE, TARGET, kernel_row, measurement_row, timing
from kernelcast.data.store import Writer
from kernelcast.data.schema import KernelRow
with Writer.open(Path(sys.argv[1]), target=TARGET, rule=RULE) as writer:
    start = writer.dataset().count(KernelRow)
    print("open", flush=True)
    for n in range(start, start + 100_000):
        writer.commit([kernel_row(n)], [measurement_row(n, timing())])
"""


def test_killed_at_random_moments_the_store_stays_whole(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    last = 0
    for delay_s in (0.0, 0.013, 0.031, 0.05):
        command = [sys.executable, "-c", _COMMITTER, str(folder), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"open\n"
            time.sleep(delay_s)
            process.send_signal(signal.SIGKILL)
        assert verify(folder) == []
        dataset = Dataset.open(folder)
        count = dataset.count(KernelRow)
        assert count == dataset.count(MeasurementRow) >= last
        assert [row.fingerprint for row in dataset.rows(KernelRow)] == [f"{n:032x}" for n in range(count)]
        last = count
    # A writer that comes after removes what the killed ones left without a name in the manifest.
    Writer.open(folder, target=TARGET, rule=RULE).__exit__(None, None, None)
    files = {path.name for path in (folder / PARTS).iterdir()}
    assert files == {part.file for part in read_manifest(folder).parts}
