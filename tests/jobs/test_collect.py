"""Collection: what is attempted does not depend on how often it was killed, and nothing is measured twice."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.core.timing import Failure, Reason, Timing
from kernelcast.data import durable
from kernelcast.data.manifest import PARTS
from kernelcast.data.outcomes import outcomes
from kernelcast.data.schema import AnchorRow, KernelRow, MeasurementRow, OccasionRow, SurveyRow
from kernelcast.data.store import Dataset, Writer, verify
from kernelcast.errors import SchemaError, StoreError, TargetError
from kernelcast.jobs.collection.collect import CollectProgress, collect

sys.path.insert(0, str(Path(__file__).parent))

import collection_fakes as fakes

PROGRAM = [sys.executable, str(Path(fakes.__file__))]


def reasons(folder: Path) -> dict[str, str]:
    """What became of each kernel."""
    found = outcomes(Dataset.open(folder))
    return {kernel: o.reason if isinstance(o, Failure) else "timed" for kernel, o in found.items()}


def test_every_kernel_gets_one_outcome_by_the_dataset_rule(tmp_path: Path) -> None:
    seen: list[CollectProgress] = []
    report = fakes.run(tmp_path, seen=seen)
    assert verify(tmp_path) == []
    dataset = Dataset.open(tmp_path)
    kernels = [row.fingerprint for row in dataset.rows(KernelRow)]
    measured = Counter(row.kernel for row in dataset.rows(MeasurementRow))
    assert measured == Counter(kernels)
    expected = {"crash": Reason.CRASH, "loud": Reason.TOO_LOUD}
    assert reasons(tmp_path) == {k: expected.get(fakes.fate(k), "timed") for k in kernels}
    for outcome in outcomes(dataset).values():
        if isinstance(outcome, Timing):
            assert len(outcome.slopes_s()) >= 3
    counts = Counter(reasons(tmp_path).values())
    assert report.progress.finished == counts["timed"]
    assert report.progress.failures == {r: n for r, n in counts.items() if r != "timed"}
    assert report.problems == {"program-3/base": "compile: does not compile"}
    assert report.programs == 7
    assert not report.was_interrupted
    assert {progress.stage for progress in seen} == {"survey", "anchors", "timing"}


def test_anchors_stand_at_both_ends_of_each_occasion(tmp_path: Path) -> None:
    fakes.run(tmp_path, settings=replace(fakes.SETTINGS, occasion_s=0.02), visit_s=0.01)
    dataset = Dataset.open(tmp_path)
    occasions = [row.occasion for row in dataset.rows(OccasionRow)]
    assert len(occasions) > 1
    ends = Counter((row.occasion, row.end) for row in dataset.rows(AnchorRow))
    assert ends == Counter((occasion, end) for occasion in occasions for end in ("start", "end"))


def test_a_second_run_measures_only_what_is_missing(tmp_path: Path) -> None:
    fakes.run(tmp_path, programs=4)
    before = reasons(tmp_path)
    fakes.run(tmp_path, programs=8)
    dataset = Dataset.open(tmp_path)
    assert before.items() <= reasons(tmp_path).items()
    times = Counter(row.kernel for row in dataset.rows(MeasurementRow))
    # What was too loud may come again; what has a time or failed for good may not.
    assert {k for k, n in times.items() if n > 1} <= {k for k, r in before.items() if r == Reason.TOO_LOUD}
    assert Counter(row.program for row in dataset.rows(SurveyRow)).most_common(1)[0][1] == 1


def test_a_budget_ends_a_collection_and_the_next_goes_on(tmp_path: Path) -> None:
    report = fakes.run(tmp_path, settings=replace(fakes.SETTINGS, budget_s=0.15), visit_s=0.02)
    assert report.progress.left > 0
    assert 0 < report.total < 110
    assert fakes.run(tmp_path).progress.left == 0
    fakes.run(tmp_path / "unbroken")
    assert reasons(tmp_path) == reasons(tmp_path / "unbroken")


def test_killed_ten_times_it_attempts_what_an_unbroken_run_does(tmp_path: Path) -> None:
    fakes.run(tmp_path / "unbroken", programs=16)
    chance = random.Random(0)
    folder = tmp_path / "killed"
    measured = 0
    for _ in range(10):
        with subprocess.Popen([*PROGRAM, str(folder), "0.02"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0.0, 0.4))
            process.kill()
        if not (folder / "manifest.json").exists():
            continue
        assert verify(folder) == []
        count = Dataset.open(folder).count(MeasurementRow)
        assert count >= measured
        measured = count
    assert (
        subprocess.run([*PROGRAM, str(folder), "0"], check=False, stdout=subprocess.DEVNULL).returncode == 0
    )
    assert verify(folder) == []
    assert reasons(folder) == reasons(tmp_path / "unbroken")
    times = Counter(row.kernel for row in Dataset.open(folder).rows(MeasurementRow))
    assert {k for k, n in times.items() if n > 1} <= {
        k for k, r in reasons(folder).items() if r == Reason.TOO_LOUD
    }


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    with subprocess.Popen([*PROGRAM, str(tmp_path), "0.05"], stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        while not _measured(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    assert verify(tmp_path) == []
    assert fakes.run(tmp_path, programs=16).progress.left == 0


def _measured(folder: Path) -> bool:
    return (folder / "manifest.json").exists() and Dataset.open(folder).count(MeasurementRow) > 0


def test_a_full_disk_stops_it_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def fills_up(descriptor: int) -> None:
        if len(list((tmp_path / PARTS).glob("measurements-*"))) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(durable.os, "fsync", fills_up)
        with pytest.raises(StoreError, match=r"disk is full: free some space.*written before is kept"):
            fakes.run(tmp_path, visit_s=0.02)
    assert verify(tmp_path) == []
    kept = reasons(tmp_path)
    assert kept
    assert fakes.run(tmp_path).progress.left == 0
    assert kept.items() <= reasons(tmp_path).items()
    assert threading.active_count() < 10


@pytest.mark.parametrize("table", ["kernels", "plans", "occurrences", "surveys", "measurements"])
def test_what_a_damaged_part_held_is_collected_again(tmp_path: Path, table: str) -> None:
    fakes.run(tmp_path)
    before = reasons(tmp_path)
    tables = Dataset.open(tmp_path).manifest.of_table(table)
    (tmp_path / PARTS / tables[-1].file).write_bytes(b"PAR1 not any more")
    with pytest.raises(StoreError, match=f"{tables[-1].file}.*--drop-damaged"):
        fakes.run(tmp_path)
    report = fakes.run(tmp_path, settings=replace(fakes.SETTINGS, drop_damaged=True))
    assert report.progress.left == 0
    assert verify(tmp_path) == []
    assert reasons(tmp_path) == before


def test_two_collections_on_one_folder_are_refused(tmp_path: Path) -> None:
    with (
        Writer.open(tmp_path, target=fakes.TARGET, rule=fakes.RULE),
        pytest.raises(StoreError, match="another process"),
    ):
        fakes.run(tmp_path)


def test_another_target_is_refused(tmp_path: Path) -> None:
    fakes.run(tmp_path, programs=1)
    with pytest.raises(SchemaError, match="times of two targets do not mix"):
        collect(
            tmp_path, [], target=replace(fakes.TARGET, chip="other"), rule=fakes.RULE, tools=fakes.tools(),
            settings=fakes.SETTINGS, watch=lambda _: None,
        )  # fmt: skip


def test_an_error_in_a_lane_reaches_the_caller(tmp_path: Path) -> None:
    def broken(cpu: int, sleep: object) -> object:
        raise TargetError(f"no worker for CPU {cpu}")

    with pytest.raises(TargetError, match="no worker for CPU"):
        collect(
            tmp_path, [fakes.FakeSource(0)], target=fakes.TARGET, rule=fakes.RULE,
            tools=replace(fakes.tools(), timer_on=broken), settings=fakes.SETTINGS, watch=lambda _: None,
        )  # fmt: skip
    assert verify(tmp_path) == []
