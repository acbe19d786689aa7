"""Predicted against measured times of whole programs, on a target of known prices."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.jobs.tuning_fakes import IDENTITY, NO_OVERHEADS, ChainProgram, PriceEstimator, PriceTarget

from kernelcast.errors import SchemaError, TargetError
from kernelcast.jobs.programs.memory_factor import NO_FACTOR
from kernelcast.jobs.programs.target_terms import TargetTerms
from kernelcast.jobs.studies.program_times import ProgramTimesReport, compare_program_times

TERMS = TargetTerms(target=IDENTITY.digest, factor=NO_FACTOR, overheads=NO_OVERHEADS)


def compared(
    journal: Path, *programs: ChainProgram, target: PriceTarget | None = None, terms: TargetTerms = TERMS
) -> ProgramTimesReport:
    return compare_program_times(
        programs,
        target or PriceTarget(),
        PriceEstimator(),
        terms,
        estimator_name="prices",
        journal=journal,
        seed=0,
    )


def test_an_estimator_that_knows_the_prices_has_no_error(tmp_path: Path) -> None:
    report = compared(tmp_path / "log.jsonl", ChainProgram("a/1"), ChainProgram("b/1"))
    assert [row.program for row in report.programs] == ["a/1", "b/1"]
    assert report.abs_error_median == pytest.approx(0, abs=1e-6)
    assert report.programs[0].noise == 0


def test_programs_of_an_earlier_run_count_only_where_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    both = compared(path, ChainProgram("a/1"), ChainProgram("b/1"))
    slower = PriceTarget(factor=lambda choice: 2.0)
    assert compared(path, ChainProgram("b/1"), target=slower).programs == both.programs[1:]
    assert slower.calls == []


def test_a_journal_of_another_memory_factor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    compared(path, ChainProgram())
    other = replace(TERMS, factor=replace(NO_FACTOR, scale=1.1))
    with pytest.raises(SchemaError, match="was written for"):
        compared(path, ChainProgram(), terms=other)


def test_a_program_that_cannot_be_captured_is_told(tmp_path: Path) -> None:
    class Broken(ChainProgram):
        def build(self) -> tuple[object, tuple[()]]:
            raise TargetError("XLA cannot compile the program")

    report = compared(tmp_path / "log.jsonl", Broken())
    assert report.problems == {"chain/1": "XLA cannot compile the program"}
    assert report.abs_error_median != report.abs_error_median
