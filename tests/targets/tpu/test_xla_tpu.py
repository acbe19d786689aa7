"""The target with its real compiler, and what needs none of it."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.core.timing import Clock, Failure, Reason, Timing
from kernelcast.errors import MissingExtraError, TargetError
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.targets.protocol import Candidate, Tiles, TimesKernels
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.check import PROBE, check_tpu
from kernelcast.targets.tpu.chip import CHIPS
from kernelcast.targets.tpu.compiled import CompiledProgram, Site
from kernelcast.targets.tpu.xla_tpu import XlaTpu

# A transposing copy inside a loop fusion: libtpu aborts.
ABORTS = """HloModule aborts
%body {
  %a = f32[512,2048]{1,0:T(8,128)} parameter(0)
  %t = f32[2048,512]{0,1:T(8,128)} transpose(%a), dimensions={1,0}
  %u = f32[2048,512]{1,0:T(8,128)} copy(%t)
  ROOT %m = f32[2048,512]{1,0:T(8,128)} tanh(%u)
}
ENTRY %main {
  %a = f32[512,2048]{1,0:T(8,128)} parameter(0)
  ROOT %k = f32[2048,512]{1,0:T(8,128)} fusion(%a), kind=kLoop, calls=%body
}
"""
TOO_LARGE = """HloModule large
ENTRY %main {
  %a = f32[99999,99999]{1,0:T(8,128)} parameter(0)
  ROOT %k = f32[99999,99999]{1,0:T(8,128)} tanh(%a)
}
"""
SCALAR = """HloModule scalar
ENTRY %main {
  %a = f32[] parameter(0)
  ROOT %k = f32[] negate(%a)
}
"""


@pytest.fixture(scope="module")
def xla_tpu() -> Iterator[XlaTpu]:
    with XlaTpu("tpu_v3") as target:
        yield target


@pytest.fixture(scope="module")
def program(xla_tpu: XlaTpu) -> CompiledProgram:
    def layer(x: jax.Array, w: jax.Array, kernel: jax.Array, image: jax.Array) -> tuple[jax.Array, ...]:
        y = jax.nn.softmax(jnp.tanh(x @ w), axis=-1)
        convolved = jax.lax.conv_general_dilated(
            image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return y, jnp.sum(y, axis=0), jax.nn.relu(convolved), jnp.tanh(x) @ w

    shapes = ((128, 256), (256, 512), (3, 3, 16, 32), (4, 14, 14, 16))
    compiled = xla_tpu.compile_program(layer, *(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))
    assert not isinstance(compiled, Failure)
    return compiled


@pytest.fixture
def probe() -> Kernel:
    return kernel_from_text(PROBE)


def failure(answer: object) -> Failure:
    assert isinstance(answer, Failure)
    return answer


def test_an_unknown_chip_is_told_before_anything_starts() -> None:
    with pytest.raises(TargetError, match="got target 'tpu_v9'; the TPU targets are tpu_v2, tpu_v3"):
        XlaTpu("tpu_v9")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu, "installed_version", lambda: None)
    with pytest.raises(MissingExtraError, match=r"the target tpu_v3 needs libtpu.*'kernelcast\[tpu\]'"):
        XlaTpu("tpu_v3")
    assert "pip install 'kernelcast[tpu]'" in check_tpu().sentence


def test_only_one_chip_is_validated() -> None:
    assert [chip.name for chip in CHIPS.values() if chip.is_validated] == ["tpu_v3"]
    assert "not validated" in CHIPS["tpu_v2"].validation


@pytest.mark.tpu
def test_doctor_finds_that_it_works() -> None:
    assert check_tpu().sentence == f"XLA:TPU ahead of time (libtpu {libtpu.TRIED_VERSION}): works"


@pytest.mark.tpu
def test_kernels_of_a_program_have_windows_estimates_and_schedules(program: CompiledProgram) -> None:
    assert len(program.kernels) >= 4
    for _, kernel in program.kernels:
        assert kernel.listing
        assert kernel.tile is not None
        assert kernel.estimated_cycles
        assert kernel.iteration_bounds
    levels = {name for _, kernel in program.kernels if kernel.tile for name, _ in kernel.tile.levels}
    assert levels == {"kernel", "output", "input"}


@pytest.mark.tpu
def test_a_kernel_alone_is_the_kernel_in_the_program(xla_tpu: XlaTpu, program: CompiledProgram) -> None:
    for site, inside in program.kernels:
        alone = xla_tpu.compile_kernel(inside.kernel)
        assert not isinstance(alone, Failure), f"{site}: {alone}"
        assert (alone.tile, alone.estimated_cycles) == (inside.tile, inside.estimated_cycles)
        assert alone.iteration_bounds == inside.iteration_bounds
        # The canonical order of parameters may move a bundle or two.
        assert alone.listing.count("\n") == pytest.approx(inside.listing.count("\n"), rel=0.03)


@pytest.mark.tpu
def test_valid_tiles_hold_the_default_with_its_estimate(xla_tpu: XlaTpu, program: CompiledProgram) -> None:
    for _, inside in program.kernels:
        listed = xla_tpu.valid_tiles(inside.kernel)
        assert not isinstance(listed, Failure)
        assert listed.is_complete
        assert listed.default == inside.tile
        assert listed.default is not None
        assert listed.cycles_of(listed.default) == inside.estimated_cycles


@pytest.mark.tpu
def test_a_forced_tile_is_honoured(xla_tpu: XlaTpu, program: CompiledProgram) -> None:
    for _, inside in program.kernels:
        listed = xla_tpu.valid_tiles(inside.kernel)
        assert not isinstance(listed, Failure)
        for tile in (listed.tiles[0], listed.tiles[-1]):
            forced = xla_tpu.compile_kernel(inside.kernel, tile)
            assert not isinstance(forced, Failure), forced
            assert forced.tile == tile
            assert forced.estimated_cycles is None


@pytest.mark.tpu
def test_a_tile_that_is_not_listed_is_refused(xla_tpu: XlaTpu, probe: Kernel) -> None:
    wrong = Tile(levels=(("output", (40, 40)),), unit="hardware-tile")  # libtpu itself would take it
    refused = failure(xla_tpu.compile_kernel(probe, wrong))
    assert refused.reason is Reason.UNSUPPORTED
    assert "output[40,40] in hardware-tile is none of the" in refused.message
    elements = Tile(levels=(("output", (1, 1)),))
    assert failure(xla_tpu.compile_kernel(probe, elements)).reason is Reason.UNSUPPORTED


@pytest.mark.tpu
def test_an_abort_costs_one_kernel(xla_tpu: XlaTpu, probe: Kernel) -> None:
    died = failure(xla_tpu.compile_kernel(kernel_from_text(ABORTS)))
    assert died.reason is Reason.CRASH
    assert "Loop will not make progress" in died.message
    assert not isinstance(xla_tpu.compile_kernel(probe), Failure)


@pytest.mark.tpu
def test_what_libtpu_rejects_is_a_failure_with_its_reason(xla_tpu: XlaTpu) -> None:
    large = failure(xla_tpu.compile_kernel(kernel_from_text(TOO_LARGE)))
    assert large.reason is Reason.MEMORY
    assert "Ran out of memory" in large.message


@pytest.mark.tpu
def test_scalars_belong_to_no_kernel(xla_tpu: XlaTpu) -> None:
    alone = failure(xla_tpu.compile_kernel(kernel_from_text(SCALAR)))
    assert alone.reason is Reason.UNSUPPORTED
    assert alone.message.endswith("none: scalars belong to no kernel")


@pytest.mark.tpu
def test_equal_kernels_share_one_schedule(xla_tpu: XlaTpu) -> None:
    def twice(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.tanh(x) @ y, jnp.tanh(y) @ x

    square = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    compiled = xla_tpu.compile_program(twice, square, square)
    assert not isinstance(compiled, Failure)
    assert all(kernel.listing for _, kernel in compiled.kernels)
    assert len({kernel.kernel for _, kernel in compiled.kernels}) < len(compiled.kernels)
    assert all(isinstance(site, Site) for site, _ in compiled.kernels)


@pytest.mark.tpu
def test_dumps_are_gone_when_it_is_closed() -> None:
    target = XlaTpu("tpu_v2")
    folder = target.dump_folder
    assert not isinstance(target.compile_kernel(kernel_from_text(PROBE)), Failure)
    assert folder.exists()
    target.close()
    assert not folder.exists()


@pytest.mark.tpu
def test_times_are_simulated_and_say_so(xla_tpu: XlaTpu, probe: Kernel) -> None:
    assert isinstance(xla_tpu, TimesKernels)
    listed = xla_tpu.valid_tiles(probe)
    assert not isinstance(listed, Failure)
    keyed = {str(tile): tile for tile in (None, listed.default, listed.tiles[0])}
    candidates = [Candidate(key=key, kernel=probe, tile=tile) for key, tile in keyed.items()]
    candidates.append(Candidate(key="aborts", kernel=kernel_from_text(ABORTS)))
    found = dict(xla_tpu.time_kernels(candidates))
    assert failure(found.pop("aborts")).reason is Reason.CRASH
    seconds: dict[str, float] = {}
    for key, outcome in found.items():
        assert isinstance(outcome, Timing)
        assert outcome.clock is Clock.SIMULATED
        seconds[key] = outcome.seconds()
    assert all(1e-7 < one < 1e-4 for one in seconds.values())
    assert seconds["None"] == seconds[str(listed.default)]
    assert xla_tpu.identity.clock == "simulated"
    assert xla_tpu.identity.compiler == f"libtpu {libtpu.TRIED_VERSION}"


@pytest.mark.tpu
def test_later_chips_list_tiles_and_have_no_times(probe: Kernel) -> None:
    with XlaTpu("tpu_v5e") as target:
        listed = target.valid_tiles(probe)
        assert not isinstance(listed, Failure)
        assert listed.default is not None
        assert listed.cycles_of(listed.default)
        ((_, outcome),) = target.time_kernels([Candidate(key="k", kernel=probe, tile=listed.tiles[0])])
        assert failure(outcome).reason is Reason.UNSUPPORTED
        assert "times of tpu_v5e are not simulated" in failure(outcome).message


@pytest.mark.tpu
def test_it_keeps_the_contract_of_targets_with_tiles(xla_tpu: XlaTpu, probe: Kernel) -> None:
    assert isinstance(xla_tpu, Tiles)
    listed = xla_tpu.valid_tiles(probe)
    assert listed == xla_tpu.valid_tiles(probe)
    assert isinstance(xla_tpu.valid_tiles(kernel_from_text(ABORTS)), Failure)
