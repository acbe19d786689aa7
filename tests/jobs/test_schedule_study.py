"""The study of simulated times: journal, fit and figures, on kernels made by hand."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.targets.tpu.schedule.listings import COPY, LOOP, listing

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile, TileSet
from kernelcast.core.timing import Failure, Reason
from kernelcast.errors import SchemaError
from kernelcast.jobs.schedule_records import schedule_figures
from kernelcast.jobs.studies import schedule_fit
from kernelcast.jobs.studies.schedule import agreement, judge_schedules
from kernelcast.jobs.studies.schedule_fit import START, fit
from kernelcast.jobs.studies.schedule_runs import KernelRuns, Run, scheduled_runs
from kernelcast.targets.tpu.chip import TpuChip, chip
from kernelcast.targets.tpu.schedule.constants import FITTED
from kernelcast.targets.tpu.schedule.replay import replay
from kernelcast.targets.tpu.schedule.trace import Adjust, Compute, Direction, Event, Transfer, Wait

HERTZ = 0.94e9
HLO = "HloModule m ENTRY e { p = f32[4096]{0} parameter(0)  ROOT r = f32[4096]{0} tanh(p) }"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Listed:
    listing: str


class FakeTarget:
    """Schedules two windows, and fails on the third."""

    def __init__(self) -> None:
        self.compiled: list[str] = []

    @property
    def chip(self) -> TpuChip:
        return chip("tpu_v3")

    def compile_kernel(self, kernel: Kernel, tile: Tile | None = None) -> Listed | Failure:
        self.compiled.append(str(tile))
        if tile is not None and tile.levels[0][1] == (1,):
            return Failure(reason=Reason.CRASH, message="fell over")
        return Listed(listing=listing(COPY if tile is not None and tile.levels[0][1] == (4,) else LOOP))

    def valid_tiles(self, kernel: Kernel) -> TileSet | Failure:
        tiles = tuple(
            Tile(levels=(("output", (n,)), ("input", (9,))), unit="hardware-tile") for n in (1, 2, 4)
        )
        return TileSet(tiles=tiles, analytical_cycles=(30, None, 10), default=tiles[2], is_complete=True)


def write_kernel(folder: Path, name: str = "tanh.1") -> None:
    folder.mkdir(exist_ok=True)
    runs = [
        {"kernel_bounds": [], "output_bounds": [n], "is_default": n == 4, "time_ns": time, "error": not time}
        for n, time in ((4, 500), (2, 20), (1, 800), (4, 510), (2, 0))
    ]
    (folder / f"{name}.hlo").write_text(HLO)
    (folder / f"{name}.json").write_text(json.dumps({"name": name, "device": "TPU v3", "runs": runs}))


def test_each_window_is_compiled_once_and_never_again(tmp_path: Path) -> None:
    write_kernel(tmp_path / "data")
    target = FakeTarget()

    def found() -> tuple[KernelRuns, ...]:
        return scheduled_runs(tmp_path / "data", target, journal=tmp_path / "j.jsonl", compiler="fake 1")

    (kernel,) = found()
    assert target.compiled == ["output[4] input[9]", "output[2] input[9]", "output[1] input[9]"]
    assert [run.measured_s for run in kernel.runs] == pytest.approx([500e-9, 20e-9, 510e-9])
    assert [run.analytical_cycles for run in kernel.runs] == [10, None, 10]
    assert (kernel.has_windows, kernel.is_convolution) == (True, False)
    assert len(kernel.problems) == 2
    assert any("crash: fell over" in problem for problem in kernel.problems)
    assert found() == (kernel,)
    assert len(target.compiled) == 3


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    write_kernel(tmp_path / "data")
    journal, target = tmp_path / "j.jsonl", FakeTarget()
    scheduled_runs(tmp_path / "data", target, journal=journal, compiler="fake 1")
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:2]) + lines[2][:20])
    scheduled_runs(tmp_path / "data", target, journal=journal, compiler="fake 1")
    assert len(target.compiled) == 3 + 2


def test_schedules_of_another_compiler_do_not_count(tmp_path: Path) -> None:
    write_kernel(tmp_path / "data")
    scheduled_runs(tmp_path / "data", FakeTarget(), journal=tmp_path / "j.jsonl", compiler="fake 1")
    with pytest.raises(SchemaError, match="fake 2"):
        scheduled_runs(tmp_path / "data", FakeTarget(), journal=tmp_path / "j.jsonl", compiler="fake 2")


def test_a_folder_without_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="name TpuGraphs' op_tuning"):
        scheduled_runs(tmp_path, FakeTarget(), journal=tmp_path / "j.jsonl", compiler="fake 1")


def moved(granules: int, run: int, *, write: bool) -> list[Event]:
    transfer = Transfer(
        direction=Direction.WRITE if write else Direction.READ,
        granules=granules, hbm_steps=run, hbm_stride=run if run == granules else 24, vmem_steps=run,
        vmem_stride=run, flag=0, is_described=False,
    )  # fmt: skip
    return [Compute(20), transfer, Wait(0, granules), Adjust(0, -granules)]


TRUE = dataclasses.replace(
    START, bytes_per_cycle=420.0, read_latency_cycles=260.0, write_latency_cycles=140.0, run_cycles=2.0
)


def made(name: str, cycles: Callable[[tuple[Event, ...]], float], *, convolution: bool = False) -> KernelRuns:
    """Runs whose measured times are what a function says."""
    traces = [
        tuple(moved(granules, min(run, granules), write=write) * repeats)
        for granules in (4, 32, 256)
        for run in (4, 1 << 20)
        for write in (False, True)
        for repeats in (1, 3)
    ]
    runs = tuple(
        Run(measured_s=cycles(events) / HERTZ, events=events, analytical_cycles=index or None)
        for index, events in enumerate(traces)
    )
    return KernelRuns(
        name=name, has_windows=True, is_convolution=convolution, runs=runs, problems=()
    )  # fmt: skip


def true_cycles(events: tuple[Event, ...]) -> float:
    return replay(events, TRUE).cycles


def test_the_fit_finds_what_made_the_times() -> None:
    found = fit([made("a", true_cycles)], hertz=HERTZ, buffers=None)
    assert found.bytes_per_cycle == pytest.approx(TRUE.bytes_per_cycle, rel=0.02)
    assert found.read_latency_cycles == pytest.approx(TRUE.read_latency_cycles, rel=0.1)
    assert found.write_latency_cycles == pytest.approx(TRUE.write_latency_cycles, rel=0.1)


def test_nothing_is_fitted_on_the_convolution() -> None:
    kernels = [made("a", true_cycles), made("c", lambda _: 1.0, convolution=True)]
    assert fit(kernels, hertz=HERTZ, buffers=None) == fit(kernels[:1], hertz=HERTZ, buffers=None)


def test_agreement_of_the_truth_is_perfect() -> None:
    found = agreement([made("a", true_cycles)], lambda run: run.measured_s)
    assert (found.tau_mean, found.mape_mean, found.kernels[0].ratio) == (1.0, 0.0, 1.0)


def test_estimates_that_are_missing_are_left_out() -> None:
    found = agreement([made("a", true_cycles)], lambda run: float(run.analytical_cycles or "nan"))
    assert found.kernels[0].runs == 23


def test_the_report_gives_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_fit, "_ROUNDS", 1)
    kernels = [made("copy.25", true_cycles), made("b", true_cycles), made("c", true_cycles, convolution=True)]
    figures = {figure.name: figure for figure in schedule_figures(judge_schedules(kernels))}
    assert {
        *(f"tpu_v3.schedule.{word}" for word in ("tau_mean", "mape", "conv_heldout_tau", "tau_within_2x")),
        "tpu_v3.schedule.conv_heldout_mape", "tpu_v3.schedule.loko_tau_mean", "tpu_v3.schedule.loko_mape",
        "tpu_v3.analytical.tau_mean", "tpu_v3.analytical.mape",
    } <= set(figures)  # fmt: skip
    assert all("simulated" in f.noise for name, f in figures.items() if "schedule" in name)


def test_the_steps_name_all_that_is_fitted() -> None:
    assert set(schedule_fit.FIRST_STEPS) == set(FITTED)
