"""Surveys of real programs: complete, and the same in every process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelcast import zoo
from kernelcast.core.timing import Failure, Reason, Timing
from kernelcast.data.kernels import kernels, rebuilt
from kernelcast.data.outcomes import outcomes
from kernelcast.data.rule import LabelRule
from kernelcast.data.schema import AnchorRow
from kernelcast.data.store import Dataset, verify
from kernelcast.jobs.collection.anchors import PROGRAM_NAME, anchor_kernels
from kernelcast.jobs.collection.collect import CollectSettings, collect
from kernelcast.jobs.collection.cpu_tools import cpu_identity, cpu_tools
from kernelcast.jobs.collection.survey import Survey
from kernelcast.jobs.collection.zoo_source import ZooSource
from kernelcast.targets.pjrt.xla_cpu import XlaCpu


@pytest.fixture(scope="module")
def survey() -> Survey:
    with XlaCpu() as target:
        found = ZooSource(zoo.find("squared_differences"), target).survey(seed=0, random_plans=5)
    assert isinstance(found, Survey)
    return found


def test_a_survey_holds_both_defaults_and_random_plans(survey: Survey) -> None:
    ways = [plan.how for plan in survey.plans]
    assert ways[:2] == ["default", "library-off"]
    assert ways[2:] == ["random"] * (len(ways) - 2)
    assert len(ways) > 2
    assert len({plan.plan for plan in survey.plans}) == len(ways)
    assert survey.program.family == zoo.find("squared_differences").family


def test_every_occurrence_has_its_kernel_and_plan(survey: Survey) -> None:
    assert {o.kernel for o in survey.occurrences} == {k.fingerprint for k in survey.kernels}
    assert {o.plan for o in survey.occurrences} == {p.plan for p in survey.plans}
    keys = [(o.plan, o.kernel) for o in survey.occurrences]
    assert len(set(keys)) == len(keys)
    assert all(o.calls >= 1 and o.times >= 1 for o in survey.occurrences)


def test_stored_kernels_are_the_ones_surveyed(survey: Survey) -> None:
    for row in survey.kernels:
        kernel = rebuilt(row)
        assert (kernel.skeleton, kernel.kind.value) == (row.skeleton, row.kind)


def test_surveys_do_not_depend_on_the_process() -> None:
    program = Path(__file__).with_name("survey_digest.py")
    digests = {
        subprocess.run(
            [sys.executable, str(program), "squared_differences", "nbody"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_small_program_is_collected_for_real(tmp_path: Path) -> None:
    rule = LabelRule(gated_rounds=1, passes=1, extra_passes=0, spacing_s=0.0)
    cpu = max(os.sched_getaffinity(0))
    with XlaCpu(cpu=cpu) as target:
        report = collect(
            tmp_path, [ZooSource(zoo.find("squared_differences"), target)], target=cpu_identity(), rule=rule,
            tools=cpu_tools(rule, anchor_cpu=cpu), settings=CollectSettings(random_plans=1, cpus=(cpu,)),
            watch=lambda _: None,
        )  # fmt: skip
    assert verify(tmp_path) == []
    dataset = Dataset.open(tmp_path, target=cpu_identity())
    found = outcomes(dataset)
    assert set(found) == {kernel.fingerprint for kernel in kernels(dataset)}
    assert report.progress.left == 0
    for outcome in found.values():
        if isinstance(outcome, Timing):
            assert 0 < outcome.seconds(dataset.manifest.target.label) < 1
        else:  # a machine that is busy with something else may be too loud, but nothing else may fail
            assert isinstance(outcome, Failure)
            assert outcome.reason in (Reason.TOO_LOUD, Reason.NO_SLOPE)
    subjects = {(row.end, row.subject) for row in dataset.rows(AnchorRow)}
    anchors = {PROGRAM_NAME, *(kernel.fingerprint for kernel in anchor_kernels())}
    assert subjects == {(end, name) for end in ("start", "end") for name in anchors}
