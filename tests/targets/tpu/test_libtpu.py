"""What is assumed of libtpu and written down nowhere, tried one by one. Loud: no assumption passes unseen.

Logs and dumps here are made by hand in libtpu's grammar, or by libtpu while the test runs.
"""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelcast.core.timing import Failure
from kernelcast.errors import MissingExtraError
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.hlo.text import parse
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.compiler import Compiled, CompileKernel, CompileProgram, TpuBoot, TpuCompiler
from kernelcast.targets.tpu.dump_folder import new_dump_folder
from kernelcast.targets.tpu.isolation import ROOT, isolated
from kernelcast.targets.worker import Worker

LOG = """I0101 00:00:00.000000    1 fusion_emitter.cc:1] Potential window config [16, 1] compute_cycles 5 \
transfer_cycles 6 bottleneck_cycles 7 total_cycles 40 window_bound_limit 9
I0101 00:00:00.000000    1 fusion_emitter.cc:2] Total cost: 3*k1024Byte
I0101 00:00:00.000000    2 spatial_major_convolution.cc:3] kernel window: [3, 3, 8, 1] output window: \
[1, 2, 1, 1] activations window: [3, 4, 1, 1] activations mem bytes/cycle: 4.5
I0101 00:00:00.000000    2 spatial_major_convolution.cc:4] Potential kernel window [3, 3, 8, 1] potential \
output window [1, 2, 1, 1] cycles 9223372036854775807
"""
PROGRAM = """module @m {
  func.func public @main(%a: tensor<256x512xf32>, %b: tensor<512x256xf32>) -> tensor<256x256xf32> {
    %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<256x512xf32>, tensor<512x256xf32>) -> tensor<256x256xf32>
    %d = stablehlo.tanh %c : tensor<256x256xf32>
    %e = stablehlo.exponential %a : tensor<256x512xf32>
    %f = stablehlo.slice %e [0:256, 0:256] : (tensor<256x512xf32>) -> tensor<256x256xf32>
    %g = stablehlo.add %d, %f : tensor<256x256xf32>
    return %g : tensor<256x256xf32>
  }
}
"""
KERNEL = """HloModule k
ENTRY e {
  x = f32[64,1024]{1,0:T(8,128)} parameter(0)
  ROOT y = f32[64,1024]{1,0:T(8,128)} tanh(x)
}
"""


def test_reads_windows_from_a_log() -> None:
    assert list(libtpu.logged_windows(LOG)) == [
        libtpu.LoggedWindow(kernel=(), output=(16, 1), input=(), cycles=40),
        libtpu.LoggedWindow(
            kernel=(3, 3, 8, 1), output=(1, 2, 1, 1), input=(3, 4, 1, 1), cycles=libtpu.INT64_MAX
        ),
    ]
    assert list(libtpu.logged_windows("")) == []


@pytest.mark.parametrize(("written", "read"), [("7", 7), ("0", None), (str(libtpu.INT64_MAX), None)])
def test_missing_estimates_are_none(written: str, read: int | None) -> None:
    text = f'{{"window_config":{{"output_window_bounds":["4","1"],"estimated_cycles":"{written}"}}}}'
    config = libtpu.read_window_config(text)
    assert config is not None
    assert (config.output, config.kernel, config.estimated_cycles) == ((4, 1), (), read)


def test_instructions_without_windows() -> None:
    assert libtpu.read_window_config(None) is None
    assert libtpu.read_window_config('{"flag_configs":[]}') is None


def test_what_is_written_is_read() -> None:
    text = libtpu.write_window_config(kernel=(3, 1), output=(8, 2), input=(4, 4))
    config = libtpu.read_window_config(text)
    assert config == libtpu.WindowConfig(kernel=(3, 1), output=(8, 2), input=(4, 4))
    assert "kernel" not in libtpu.write_window_config(output=(8, 2))


def test_reads_final_schedules_only(tmp_path: Path) -> None:
    for name in (
        "1-fusion.4-01-final_bundles.txt",
        "1-fusion.4-00-schedule-analysis_final_bundles.txt",
        "1-a-b-01-final_bundles.txt",
        "1-TLP-01-final_bundles.txt",
        "1-<late-finalization>-01-final_bundles.txt",
        "1-TLP-hlo.txt",
    ):
        (tmp_path / name).write_text(name)
    assert libtpu.listings(tmp_path) == {
        "a-b": "1-a-b-01-final_bundles.txt",
        "fusion.4": "1-fusion.4-01-final_bundles.txt",
    }


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu, "installed_version", lambda: None)
    with pytest.raises(MissingExtraError, match=r"tiles needs libtpu.*pip install 'kernelcast\[tpu\]'"):
        libtpu.require("tiles")


def test_another_version_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(libtpu, "installed_version", lambda: "9.9")
    with caplog.at_level(logging.WARNING):
        assert libtpu.require("tiles") == "9.9"
    assert "libtpu 9.9 is installed" in caplog.text
    assert libtpu.TRIED_VERSION in caplog.text


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker[TpuCompiler]]:
    folder = new_dump_folder()
    boot = TpuBoot(topology="v3:2x2", dump_folder=folder)
    with Worker(
        boot,
        cpu=max(os.sched_getaffinity(0)),
        memory_limit_bytes=8 << 30,
        environment=libtpu.environment(folder),
    ) as made:
        yield made
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def ask(worker: Worker[TpuCompiler], request: CompileProgram | CompileKernel) -> Compiled:
    answer = worker.ask(request, limit_s=120)
    assert not isinstance(answer, Failure), answer
    return answer


@pytest.mark.tpu
def test_the_installed_version_is_the_one_that_was_tried() -> None:
    assert libtpu.installed_version() == libtpu.TRIED_VERSION


@pytest.mark.tpu
def test_transform_sees_the_fused_module_without_windows(worker: Worker[TpuCompiler]) -> None:
    compiled = ask(worker, CompileProgram(stablehlo=PROGRAM))
    captured, final = parse(compiled.captured), parse(compiled.final)
    fusions = [i for i in captured.entry_computation if i.opcode == "fusion"]
    assert fusions
    assert captured.is_scheduled
    assert all(libtpu.read_window_config(i.attribute("backend_config")) is None for i in fusions)
    assert all(i.shape.layout is not None and i.shape.layout.tiles for i in fusions)
    for fusion in fusions:
        config = libtpu.read_window_config(final.entry_computation[fusion.name].attribute("backend_config"))
        assert config is not None
        assert config.output
        assert config.estimated_cycles


@pytest.mark.tpu
def test_every_kernel_is_dumped_with_its_schedule(worker: Worker[TpuCompiler]) -> None:
    compiled = ask(worker, CompileProgram(stablehlo=PROGRAM))
    fusions = {i.name for i in parse(compiled.final).entry_computation if i.opcode == "fusion"}
    assert fusions <= set(compiled.listings)
    assert all("{" in listing for listing in compiled.listings.values())


@pytest.mark.tpu
def test_capture_stops_before_schedules(worker: Worker[TpuCompiler]) -> None:
    compiled = ask(worker, CompileProgram(stablehlo=PROGRAM, capture_only=True))
    assert "fusion" in compiled.captured
    assert (compiled.final, compiled.listings) == ("", {})


@pytest.mark.tpu
def test_fusion_passes_can_be_left_out(worker: Worker[TpuCompiler]) -> None:
    compiled = ask(worker, CompileProgram(stablehlo=PROGRAM, without=libtpu.FUSION_PASSES, capture_only=True))
    opcodes = [i.opcode for i in parse(compiled.captured).entry_computation]
    assert "fusion" not in opcodes
    assert {"tanh", "exponential", "add"} <= set(opcodes)


@pytest.mark.tpu
def test_windows_are_logged_and_taken(worker: Worker[TpuCompiler]) -> None:
    kernel = kernel_from_text(KERNEL)
    made = isolated(kernel, None)
    listed = ask(worker, CompileKernel(carrier=made.carrier, module=made.module, with_windows=True))
    assert len(listed.windows) > 3
    assert listed.is_log_complete
    window = listed.windows[0]
    line = next(line for line in made.module.splitlines() if f"%{ROOT} =" in line)
    asked = libtpu.write_window_config(output=window.output)
    forced = made.module.replace(line, f"{line}, backend_config={asked}")
    answer = ask(worker, CompileKernel(carrier=made.carrier, module=forced))
    config = libtpu.read_window_config(
        parse(answer.final).entry_computation[ROOT].attribute("backend_config")
    )
    assert config is not None
    assert config.output == window.output
