import pytest

from kernelcast.core.tile import Tile
from kernelcast.errors import TargetError
from kernelcast.hlo.text import parse
from kernelcast.targets.tpu.libtpu import INT64_MAX, LoggedWindow, WindowConfig, read_window_config
from kernelcast.targets.tpu.windows import tile_of, tiles_of, with_tile

INSTRUCTION = parse(
    'HloModule m ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] tanh(x), backend_config={"a":1} }'
).entry_computation["y"]


def logged(*output: int, cycles: int) -> LoggedWindow:
    return LoggedWindow(kernel=(), output=output, input=(), cycles=cycles)


def tile(*output: int) -> Tile:
    return Tile(levels=(("output", output),), unit="hardware-tile")


def test_bounds_are_turned_round() -> None:
    window = LoggedWindow(kernel=(3, 3, 8, 1), output=(7, 28, 1, 1), input=(9, 30, 1, 1), cycles=1)
    assert str(tile_of(window)) == "kernel[1,8,3,3] output[1,1,28,7] input[1,1,30,9]"


def test_what_is_not_cut_has_no_tile() -> None:
    assert tile_of(WindowConfig(kernel=(), output=(), input=())) is None


def test_each_tile_is_listed_once_with_its_lower_estimate() -> None:
    windows = [logged(1, 2, cycles=9), logged(4, 2, cycles=INT64_MAX), logged(1, 2, cycles=7)]
    listed = tiles_of(windows, tile(2, 4))
    assert listed.tiles == (tile(2, 1), tile(2, 4))
    assert listed.analytical_cycles == (7, None)
    assert listed.is_complete


def test_default_that_was_not_logged_is_added_and_told() -> None:
    listed = tiles_of([logged(1, 2, cycles=9)], tile(8, 8))
    assert listed.tiles == (tile(2, 1), tile(8, 8))
    assert listed.cycles_of(tile(8, 8)) is None
    assert not listed.is_complete


def test_a_kernel_without_windows() -> None:
    listed = tiles_of([], None)
    assert len(listed) == 0
    assert listed.is_complete
    assert listed.analytical_best is None


def test_forced_windows_replace_what_stood_there() -> None:
    forced = with_tile(
        INSTRUCTION, Tile(levels=(("kernel", (1, 3)), ("output", (2, 4))), unit="hardware-tile")
    )
    config = read_window_config(forced.attribute("backend_config"))
    assert config == WindowConfig(kernel=(3, 1), output=(4, 2), input=())
    assert with_tile(INSTRUCTION, None).attribute("backend_config") is None


@pytest.mark.parametrize(
    "other", [Tile(levels=(("output", (4,)),)), Tile(levels=(("thread", (4,)),), unit="hardware-tile")]
)
def test_tiles_of_another_kind_are_refused(other: Tile) -> None:
    with pytest.raises(TargetError, match="kernel, output, input in hardware-tile, got"):
        with_tile(INSTRUCTION, other)
