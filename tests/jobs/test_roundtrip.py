"""The round trip over folders of texts; the shared ones by a seeded sample."""

import random
import zipfile
from itertools import count
from pathlib import Path

import pytest

from kernelcast.errors import HloError
from kernelcast.jobs.studies.roundtrip import collection_report, rejected_report, roundtrip, speed_report

GOOD = "HloModule m\nENTRY e {\n  a = f32[2]{0} parameter(0)\n  ROOT b = f32[2]{0} negate(a)\n}\n"
ABORTS = "HloModule m\nENTRY e { a = f32[4,8] parameter(0)\n ROOT r = f32[31] reshape(a) }\n"
UNREADABLE = "HloModule m\nENTRY e {\n"


def texts_of(archive: Path, sample: int, seed: int) -> dict[str, str]:
    with zipfile.ZipFile(archive) as opened:
        names = sorted(name for name in opened.namelist() if name.endswith(".hlo"))
        chosen = random.Random(seed).sample(names, min(sample, len(names)))
        return {name: opened.read(name).decode() for name in chosen}


def test_a_report_names_what_failed() -> None:
    done: list[int] = []
    report = collection_report({"good": GOOD, "bad": UNREADABLE}, lambda: done.append(1))
    assert (report.tried, report.same, report.same_fraction, len(done)) == (2, 1, 0.5, 2)
    (failure,) = report.failures
    assert failure.file == "bad"
    assert failure.reason.startswith("not read: line 2: expected an instruction")


def test_what_xla_refuses_itself_only_has_to_read_back() -> None:
    report = collection_report({"aborts": ABORTS})
    assert (report.same, report.refused_by_xla, report.failures) == (1, 1, ())


def test_rejected_texts_are_counted_by_who_refused_them() -> None:
    bound = "HloModule m\nENTRY e {\n  ROOT c = u4[] constant(-1)\n}\n"
    report = rejected_report({"reader": UNREADABLE, "verifier": ABORTS, "xla": bound, "none": GOOD})
    counts = (report.refused_by_reader, report.refused_by_verifier, report.refused_by_xla)
    assert (report.tried, counts, report.accepted_by_xla, report.crashes) == (4, (1, 1, 1), 1, ())


def test_speed_is_the_best_of_five() -> None:
    ticks = count()
    report = speed_report({"large": GOOD, "small": "e { ROOT a = f32[] parameter(0) }"}, lambda: next(ticks))
    assert (report.file, report.instructions, report.instructions_per_s) == ("large", 2, 2.0)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(HloError, match=r"expected an archive of HLO texts at .*modules\.zip"):
        roundtrip(tmp_path)


def test_a_whole_folder(tmp_path: Path) -> None:
    (tmp_path / "hlo").mkdir()
    (tmp_path / "tpu_hlo").mkdir()
    (tmp_path / "tpu_hlo" / "a.hlo").write_text(GOOD)
    for name, text in (("modules", GOOD), ("whole_programs", GOOD), ("rejected_by_xla", UNREADABLE)):
        with zipfile.ZipFile(tmp_path / "hlo" / f"{name}.zip", "w") as archive:
            archive.writestr("a.hlo", text)
            archive.writestr("INDEX.json", "[]")
    steps: list[tuple[int, int]] = []
    report = roundtrip(tmp_path, progress=lambda done, total: steps.append((done, total)))
    assert [r.same for r in (report.modules, report.whole_programs, report.tpu)] == [1, 1, 1]
    assert report.rejected.refused_by_reader == 1
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_modules_of_the_compiler(shared_data: Path) -> None:
    report = collection_report(texts_of(shared_data / "hlo" / "modules.zip", 150, seed=0))
    assert report.same_fraction >= 0.99, report.failures


def test_whole_programs(shared_data: Path) -> None:
    report = collection_report(texts_of(shared_data / "hlo" / "whole_programs.zip", 8, seed=1))
    assert report.failures == ()


def test_programs_of_the_tpu_compiler(shared_data: Path) -> None:
    texts = {path.name: path.read_text() for path in (shared_data / "tpu_hlo").glob("*.hlo")}
    assert collection_report(texts).failures == ()


def test_texts_that_xla_rejects(shared_data: Path) -> None:
    report = rejected_report(texts_of(shared_data / "hlo" / "rejected_by_xla.zip", 40, seed=2))
    refused = report.refused_by_reader + report.refused_by_verifier + report.refused_by_xla
    assert refused == report.tried
    assert report.crashes == ()
