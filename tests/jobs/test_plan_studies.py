"""The studies of plans, on a target of known prices: what is counted, what is kept, what is done again."""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.jobs.tuning_fakes import NO_OVERHEADS, ChainProgram, PriceEstimator, PriceTarget, chain_space

from kernelcast.core.timing import Failure, Timing
from kernelcast.errors import KernelcastError, SchemaError, TargetError
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.space import default, unfused
from kernelcast.jobs.programs.memory_factor import NO_FACTOR
from kernelcast.jobs.records import additivity_figures, plans_figures, tuning_figures
from kernelcast.jobs.studies import additivity
from kernelcast.jobs.studies.additivity import measure_additivity
from kernelcast.jobs.studies.additivity_design import AdditivityDesign, draw_design
from kernelcast.jobs.studies.plans_tried import PlansReport, distinct_plans, try_plans
from kernelcast.jobs.studies.tuning_design import TuningDesign, draw_programs
from kernelcast.jobs.studies.tuning_report import DEVICE_LONG, MODEL, TuningReport
from kernelcast.jobs.studies.tuning_study import StudyOptions, TuningStudy, run_study
from kernelcast.jobs.tuning.device_search import fastest_on_device, measured_ratios
from kernelcast.targets.protocol import DeviceBudget

Choice = FusionPlan | Untouched | LibraryOff


def tried(target: PriceTarget, journal: Path, *programs: ChainProgram) -> PlansReport:
    return try_plans(programs or [ChainProgram()], target, journal=journal, plans_each=5, seed=0)


def test_plans_that_change_nothing_are_counted(tmp_path: Path) -> None:
    report = tried(PriceTarget(), tmp_path / "log.jsonl", ChainProgram("a/1"), ChainProgram("b/1"))
    assert (report.programs, report.identical, report.rebuilt_equal) == (2, 2, 2)
    assert report.identical_fraction == 1
    assert report.tried == 2 * (1 + 5)
    assert report.wrong_values == {}
    assert report.failed_fraction == 0
    figures = {f.name: f.value for f in plans_figures(report)}
    assert figures["cpu.plans.tried"] == 12
    assert figures["cpu.reimposed_default_identical_fraction"] == 1


def test_wrong_values_are_named(tmp_path: Path) -> None:
    space = chain_space()
    wrong = distinct_plans(space, 5, 0)[2]
    report = tried(PriceTarget(factor=lambda c: math.nan if c == wrong else 1.0), tmp_path / "log.jsonl")
    assert report.wrong_values == {"chain/1, random 2": "output 0 differs"}
    assert report.tried == 6


def test_finished_programs_are_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = tried(PriceTarget(), path)
    broken = PriceTarget(factor=lambda c: math.nan)
    assert tried(broken, path) == first
    both = tried(broken, path, ChainProgram(), ChainProgram("other/1"))
    assert both.programs == 2
    assert set(both.not_identical) == {"other/1"}


def test_an_unfinished_program_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    whole = tried(PriceTarget(), path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]))
    assert tried(PriceTarget(), path) == whole


def test_plans_of_other_rules_are_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = tried(PriceTarget(), path)
    path.write_text(path.read_text().replace(chain_space().rules.identity, "xla-cpu/0:old"))
    broken = PriceTarget(factor=lambda c: math.nan if isinstance(c, FusionPlan) else 1.0)
    again = tried(broken, path)
    assert (again.programs, again.tried) == (first.programs, first.tried)
    assert len(again.wrong_values) > len(first.wrong_values)
    assert tried(PriceTarget(), path) == again


def test_a_program_that_cannot_be_captured_is_told(tmp_path: Path) -> None:
    class Broken(ChainProgram):
        def build(self) -> tuple[object, tuple[()]]:
            raise TargetError("XLA cannot compile the program")

    report = tried(PriceTarget(), tmp_path / "log.jsonl", Broken())
    assert report.not_captured == {"chain/1": "XLA cannot compile the program"}
    assert report.tried == 0


def test_distinct_plans_repeat_by_seed_and_leave_out_the_default() -> None:
    space = chain_space()
    plans = distinct_plans(space, 100, 1)
    assert plans == distinct_plans(space, 100, 1)
    assert len(plans) == len(set(plans))
    assert len({(plan.fused, plan.groups) for plan in plans}) >= 7
    assert default(space) not in plans


@pytest.fixture
def design(tmp_path: Path) -> AdditivityDesign:
    note, new = [ChainProgram("a/1"), ChainProgram("b/1")], [ChainProgram("c/1")]
    return draw_design(note, new, PriceTarget(), plans_each=6, seed=3)


def test_a_design_survives_its_file(design: AdditivityDesign, tmp_path: Path) -> None:
    path = tmp_path / "design.json"
    design.write(path)
    assert AdditivityDesign.read(path) == design
    assert design.programs == ("a/1", "b/1", "c/1")
    assert all(plans[0] == default(chain_space()) for plans in design.plans.values())
    path.write_text('{"format": "other", "version": 1}')
    with pytest.raises(SchemaError, match="is a other of version 1, not kernelcast-additivity"):
        AdditivityDesign.read(path)
    path.write_text("[]")
    with pytest.raises(SchemaError, match="--draw` makes one"):
        AdditivityDesign.read(path)


def test_exact_sums_have_no_error(
    design: AdditivityDesign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(additivity, "measure_overheads", lambda target: NO_OVERHEADS)
    path = tmp_path / "log.jsonl"
    programs = [ChainProgram(name) for name in design.programs]
    target = PriceTarget(noise=1e-6)
    report = measure_additivity(design, programs, target, journal=path, seed=0)
    assert [row.program for row in report.note] == ["a/1", "b/1"]
    assert [row.program for row in report.new] == ["c/1"]
    assert report.factor.scale == pytest.approx(1, rel=1e-4)
    assert report.median("tau") > 0.7  # many plans of the chain tie
    assert report.median("abs_error") == pytest.approx(0, abs=1e-4)
    assert report.median("plans") == len(design.plans["a/1"])
    calls = len(target.calls)
    assert measure_additivity(design, programs, target, journal=path, seed=0) == report
    assert len(target.calls) == calls
    names = {f.name for f in additivity_figures(report)}
    assert {"cpu.additivity.tau_median", "cpu.additivity.program.c_1.regret"} <= names


def test_a_journal_of_other_plans_is_refused(
    design: AdditivityDesign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(additivity, "measure_overheads", lambda target: NO_OVERHEADS)
    path = tmp_path / "log.jsonl"
    programs = [ChainProgram("a/1")]
    measure_additivity(design, programs, PriceTarget(), journal=path, seed=0)
    fewer = replace(design, plans={name: plans[:3] for name, plans in design.plans.items()})
    with pytest.raises(SchemaError, match="holds other plans of a/1 than the design"):
        measure_additivity(fewer, programs, PriceTarget(), journal=path, seed=0)


def test_sums_without_enough_kernels_are_not_given(
    design: AdditivityDesign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deaf(PriceTarget):
        def time_kernels(self, candidates: Iterable[object]) -> Iterable[tuple[str, Timing | Failure]]:
            from kernelcast.core.timing import Reason

            for key, _ in super().time_kernels(candidates):  # pyright: ignore[reportArgumentType]
                yield key, Failure(reason=Reason.TOO_LOUD, message="loud")

    monkeypatch.setattr(additivity, "measure_overheads", lambda target: NO_OVERHEADS)
    report = measure_additivity(design, [ChainProgram("a/1")], Deaf(), journal=tmp_path / "log.jsonl", seed=0)
    (row,) = report.note
    assert (row.plans, row.dropped_uncovered) == (0, len(design.plans["a/1"]))
    assert report.factor == NO_FACTOR
    assert math.isnan(report.median("tau"))


def study(target: PriceTarget, **changes: object) -> TuningStudy:
    options = StudyOptions(long_s=40, short_s=6, default_s=20, candidates=3, model_steps=30, model_chains=4)
    ticks = iter(range(10**6))
    made = TuningStudy(
        target=target,
        quick=target,
        estimator=PriceEstimator(),
        estimator_name="prices",
        options=options,
        clock=lambda: float(next(ticks)),
    )
    return replace(made, **changes)  # pyright: ignore[reportArgumentType]


def run(one: TuningStudy, journal: Path) -> TuningReport:
    return run_study(
        one, unfused_start=[ChainProgram()], from_default={"chain": ChainProgram()}, journal=journal
    )


def test_both_parts_of_a_tuning_study(tmp_path: Path) -> None:
    target = PriceTarget(noise=0.005)
    report = run(study(target, results=tmp_path), tmp_path / "log.jsonl")
    (row,) = report.unfused_start
    assert row.start.value > 1.2
    # Fusing all is the best plan and is not the default, so all three find something faster.
    assert set(row.found) == {MODEL, DEVICE_LONG, "device-short"}
    assert report.recovered(MODEL) == report.recovered(DEVICE_LONG) == 1
    assert row.found[MODEL].value < 1
    assert row.device_s[DEVICE_LONG] <= 45
    assert row.model_s[MODEL] > 0
    assert row.model_s[DEVICE_LONG] == 0
    (gained,) = report.from_default
    assert gained.over_default.value > 1.3
    assert (tmp_path / "tuning-chain.json").exists()
    figures = {f.name: f.value for f in tuning_figures(report)}
    assert figures["cpu.tune.unfused_start.recovered_of_10"] == 1
    assert figures["cpu.tune.gain.chain"] == gained.over_default.value


def test_neither_default_is_used_from_the_unfused_start(tmp_path: Path) -> None:
    target = PriceTarget()
    run_study(study(target), unfused_start=[ChainProgram()], from_default={}, journal=tmp_path / "log.jsonl")
    space = chain_space()
    # The untouched program is the clock of each call, and the reference of the last; never a candidate.
    for call in target.calls:
        assert call[0] == Untouched()
        assert default(space) not in call
        assert LibraryOff() not in call
    assert target.calls[-1][2] == unfused(space)


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    whole = run(study(PriceTarget()), path)
    lines = path.read_text().splitlines(keepends=True)
    assert [json.loads(line)["key"] for line in lines[1:]] == [
        "found model chain/1", "found device-long chain/1", "found device-short chain/1", "judged chain/1",
        "default chain",
    ]  # fmt: skip
    path.write_text("".join(lines[:3]) + '{"key": "fou')
    target = PriceTarget()
    again = run(study(target), path)
    assert again.unfused_start[0].device_s[MODEL] == whole.unfused_start[0].device_s[MODEL]
    assert path.read_text().splitlines()[:3] == [line.rstrip() for line in lines[:3]]


def test_the_default_stays_with_a_gain_of_one(tmp_path: Path) -> None:
    target = PriceTarget(factor=lambda c: 9.0 if isinstance(c, FusionPlan) else 1.0)
    report = run_study(
        study(target),
        unfused_start=[],
        from_default={"chain": ChainProgram()},
        journal=tmp_path / "log.jsonl",
    )
    assert report.from_default[0].over_default.value == 1
    assert report.from_default[0].over_best_default.value == 1


def test_failed_plans_are_never_the_fastest() -> None:
    space = chain_space()
    target = PriceTarget(factor=lambda c: math.nan if c == unfused(space) else 1.0)
    plans = [unfused(space), default(space)]
    budget = DeviceBudget(limit_s=100)
    assert measured_ratios(space, target, plans, budget, {}) == [math.inf, 1.0]
    assert fastest_on_device(space, target, plans, budget=budget, inputs={}) == default(space)
    assert fastest_on_device(space, target, plans[:1], budget=budget, inputs={}) is None


def test_programs_are_drawn_by_slowdown_and_group(tmp_path: Path) -> None:
    programs = [ChainProgram(f"{group}/{n}") for group in "xyz" for n in range(4)]
    seen: list[str] = []
    chosen = draw_programs(
        programs, PriceTarget(), count=5, at_most={"x": 3}, group_of=lambda p: p.id[0], seed=0,
        progress=lambda name, slowdown: seen.append(name),
    )  # fmt: skip
    assert sorted(name[0] for name in chosen) == ["x", "x", "x", "y", "z"]
    assert set(chosen) <= set(seen)
    with pytest.raises(KernelcastError, match="5 programs were wanted, only 0 are slow enough"):
        draw_programs(
            programs,
            PriceTarget(factor=lambda c: 1.0 if isinstance(c, FusionPlan) else 99.0),
            count=5,
            at_most={},
            group_of=lambda p: p.id,
            seed=0,
        )
    design = TuningDesign(unfused_start=chosen, from_default={"rbf": "rbf/512"}, seed=0)
    design.write(tmp_path / "design.json")
    assert TuningDesign.read(tmp_path / "design.json") == design
    (tmp_path / "design.json").write_text("{}")
    with pytest.raises(SchemaError, match="not the design of a tuning study"):
        TuningDesign.read(tmp_path / "design.json")
