import json
import math
from dataclasses import replace
from pathlib import Path

from kernelcast.core.analytical import Peaks
from kernelcast.jobs.doctor import Fitness, bands, report_on
from kernelcast.jobs.learning.peaks_file import read_peaks
from kernelcast.targets.doctor import CoreNoise, Examination
from kernelcast.targets.pjrt.probes import Repeat
from kernelcast.targets.surroundings import BusyProcess, Surroundings, look_around
from kernelcast.targets.tpu.check import TpuCheck

NO_TPU = TpuCheck(version=None)

QUIET = Examination(
    surroundings=Surroundings(
        chip="chip", cpus=(0, 1), load=0.5, busy=(), governors=("performance",), is_virtual=False,
        memory_bytes=1 << 34, groups_sessions=True,
    ),
    cores=(
        CoreNoise(cpu=0, floor_s=5.1e-5, quiet_share=0.97, typical_loud=1.4, longest_loud_s=0.01),
        CoreNoise(cpu=1, floor_s=5.0e-5, quiet_share=1.0, typical_loud=math.nan, longest_loud_s=0.0),
    ),
    repeats=(
        Repeat(seconds=(1.00e-6, 1.01e-6, 1.02e-6), footprint_bytes=2048),
        Repeat(seconds=(1.00e-4, 1.03e-4), footprint_bytes=8 << 20),
    ),
    peaks=Peaks(flops_per_s=1e11, bytes_per_s=1e10),
)  # fmt: skip


def with_share(share: float) -> Examination:
    return replace(QUIET, cores=(replace(QUIET.cores[0], quiet_share=share), QUIET.cores[1]))


def test_quiet_machine_is_fit() -> None:
    report = report_on(QUIET, NO_TPU)
    assert report.fitness is Fitness.FIT
    assert report.reasons == ()
    assert report.disturbances == ()
    assert report.verdict == "This machine is fit for measuring."


def test_the_louder_core_decides() -> None:
    report = report_on(with_share(0.3), NO_TPU)
    assert report.fitness is Fitness.USABLE
    assert report.reasons == ("the machine is quiet 30% of the time on its louder core",)
    assert report_on(with_share(0.01), NO_TPU).fitness is Fitness.UNFIT


def test_times_that_do_not_repeat() -> None:
    wobbly = replace(QUIET, repeats=(Repeat(seconds=(1.0, 1.1), footprint_bytes=1),))
    report = report_on(wobbly, NO_TPU)
    assert report.fitness is Fitness.USABLE
    assert report.reasons == ("the worst probe kernel differs by 10% between repetitions",)
    assert report_on(replace(QUIET, repeats=()), NO_TPU).fitness is Fitness.UNFIT


def test_names_what_disturbs() -> None:
    around = Surroundings(
        chip="chip", cpus=(0,), load=3.0, busy=(BusyProcess(process=7, name="cc1plus", cores=0.98),),
        governors=("powersave",), is_virtual=True, memory_bytes=1, groups_sessions=True,
    )  # fmt: skip
    text = "\n".join(report_on(replace(QUIET, surroundings=around), NO_TPU).disturbances)
    for part in (
        "process 7 (cc1plus) uses 98% of a core",
        "load 3.0 on 1 CPUs",
        "virtual",
        "powersave",
        "one CPU",
        "nice does not help against another session",
    ):
        assert part in text


def test_bands_by_time_and_footprint() -> None:
    found = {band.name: (band.probes, round(band.worst_spread, 3)) for band in bands(QUIET)}
    assert found == {
        "below 5 µs": (1, 0.02), "5 µs and more": (1, 0.03), "below 1 MB": (1, 0.02), "4–16 MB": (1, 0.03),
    }  # fmt: skip


def test_file_is_what_the_roofline_reads(tmp_path: Path) -> None:
    path = tmp_path / "doctor.json"
    report_on(QUIET, NO_TPU).save(path)
    assert read_peaks(path) == QUIET.peaks
    held = json.loads(path.read_text())
    assert held["sentinel_floor_s"] == 5.0e-5
    assert "pip install 'kernelcast[tpu]'" in held["tpu"]
    assert held["cores"][1]["typical_loud"] is None


def test_surroundings_of_this_machine() -> None:
    around = look_around(seconds=0.05)
    assert around.chip
    assert around.cpus
    assert around.memory_bytes > 1 << 28
