from dataclasses import replace

import pytest

from kernelcast import zoo
from kernelcast.jobs.records import tpu_program_figures
from kernelcast.jobs.studies.tpu_programs import TpuProgram, TpuProgramsReport, study_programs
from kernelcast.targets.tpu.xla_tpu import XlaTpu

GOOD = TpuProgram(
    name="good", kernels=40, windows=39, simulated=38, cycle_share=0.97, unsimulated={"unsupported: x": 2},
    kept_whole=1, is_default_in_space=True, tried=3, failures={},
)  # fmt: skip
FEW_KERNELS = replace(GOOD, name="few", simulated=37, failures={"crash": 1})
FEW_CYCLES = replace(GOOD, name="light", simulated=40, cycle_share=0.89, is_default_in_space=False)
REPORT = TpuProgramsReport(programs=(GOOD, FEW_KERNELS, FEW_CYCLES), not_compiled={"bad": "compile: no"})


def test_a_program_needs_kernels_and_cycles() -> None:
    assert [p.is_simulated for p in REPORT.programs] == [True, False, False]


def test_figures() -> None:
    figures = {f.name: f for f in tpu_program_figures(REPORT, "tpu_v3", ["good", "light"])}
    assert figures["tpu_v3.programs_simulated"].value == 1
    assert figures["tpu_v3.default_in_space_of_2"].value == 1
    assert figures["tpu_v3.plans_failed_fraction"].value == pytest.approx(1 / 9)


def test_the_ten_are_not_counted_where_one_was_left_out() -> None:
    names = {f.name for f in tpu_program_figures(REPORT, "tpu_v3", ["good", "elsewhere"])}
    assert not any("default_in_space" in name for name in names)


@pytest.mark.tpu
def test_a_small_program_is_compiled_simulated_and_imposed() -> None:
    seen: list[tuple[str, int, int]] = []
    with XlaTpu("tpu_v3") as target:
        report = study_programs(
            [zoo.find("rbf/512")], target, plans_each=1, seed=0, progress=lambda *step: seen.append(step)
        )
    assert seen == [("rbf/512", 0, 1)]
    assert not report.not_compiled
    (program,) = report.programs
    assert program.is_simulated
    assert program.is_default_in_space
    assert (program.tried, dict(program.failures)) == (1, {})
    assert report.default_in_space(["rbf/512"]) == 1
