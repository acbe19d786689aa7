"""Tuning results survive their file; other files are refused with a reason."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.errors import PlanError, SchemaError, StoreError
from kernelcast.fusion.plan import FusionPlan, Group, LibraryOff, Untouched
from kernelcast.jobs.as_json import decode_choice, encode_choice
from kernelcast.jobs.tuning.judging import judge
from kernelcast.jobs.tuning.refine import Explored
from kernelcast.jobs.tuning.result import Tried, TuningResult
from kernelcast.jobs.tuning.result_file import read_tuning, write_tuning
from kernelcast.search.anneal import TraceStep

PLAN = FusionPlan(space="abc", rules="cpu-1", fused=0b1011, loops=1, groups=(Group(scope=0, roots=(2, 5)),))


def timing(seconds: float, loudness: float = 1.0) -> Timing:
    return Timing(
        samples=tuple(Sample(runs=1, seconds=seconds, loudness=loudness, round=r) for r in range(12)),
        clock=Clock.WALL,
        method="whole-program",
    )


def tried(choice: FusionPlan | Untouched | LibraryOff, outcome: Timing | Failure, **changes: float) -> Tried:
    return replace(
        Tried(choice=choice, predicted_s=1e-3, outcome=outcome, output_error=1e-7, temporary_bytes=64),
        **changes,
    )


@pytest.fixture
def result() -> TuningResult:
    default, control, plan = timing(2e-3), timing(2e-3), timing(1e-3, loudness=math.nan)
    off = Failure(reason=Reason.TIMEOUT, message="no answer within 60 s")
    return TuningResult(
        program="rbf/512",
        stablehlo="module @rbf {}",
        space="abc",
        rules="cpu-1",
        answer=PLAN,
        judgement=judge(default=default, control=control, library_off=off, candidates=[plan]),
        tried=(
            tried(Untouched(), default),
            tried(Untouched(), control, predicted_s=math.nan),
            tried(LibraryOff(), off, output_error=math.nan),
            tried(PLAN, plan),
        ),
        trace=(TraceStep(step=3, chain=1, move="fuse", cost=1e-3, accepted=True, best=1e-3),),
        estimator="gnn 0123",
        options={"start": "default", "candidates": 4},
        seed=7,
        target=TargetIdentity(kind="xla-cpu", chip="a chip", compiler="jaxlib 0.10.2", flags=("a=b",)),
        versions={"python": "3.11.2"},
        device_s=12.5,
        model_s=3.25,
        kernels_timed=12,
        explored=(Explored(plan=PLAN, predicted_s=math.nan, ratio=0.75, batches=2),),
        date="2026-01-01T00:00:00Z",
    )


def test_a_result_survives_its_file(result: TuningResult, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_tuning(result, path)
    # NaN differs from itself, so the printed forms are compared.
    assert repr(read_tuning(path)) == repr(result)
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("choice", [Untouched(), LibraryOff(), PLAN])
def test_choices_survive_as_text(choice: FusionPlan | Untouched | LibraryOff) -> None:
    assert decode_choice(encode_choice(choice)) == choice


def test_other_texts_are_no_choice() -> None:
    with pytest.raises(PlanError, match="not a fusion plan"):
        decode_choice("default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a tuning result"),
        ("[]", "not a tuning result"),
        ('{"format": "kernelcast-plan", "version": 1}', "is a kernelcast-plan of version 1"),
        ('{"format": "kernelcast-tuning", "version": 99}', "version 99; this Kernelcast reads"),
        ('{"format": "kernelcast-tuning", "version": 1}', "version 1; this Kernelcast reads"),
        ('{"format": "kernelcast-tuning", "version": 2}', "is damaged: KeyError"),
    ],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=message):
        read_tuning(path)


def test_binary_missing_and_unwritable_files(result: TuningResult, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"\x89PNG\xff")
    with pytest.raises(SchemaError, match="not a text file"):
        read_tuning(path)
    with pytest.raises(FileNotFoundError):
        read_tuning(tmp_path / "absent.json")
    with pytest.raises(StoreError, match="cannot write"):
        write_tuning(result, tmp_path / "no" / "such" / "folder.json")
