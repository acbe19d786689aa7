import pytest

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.fusion.extract import kernels_of
from kernelcast.hlo.text import parse
from kernelcast.hlo.verify import violations
from kernelcast.targets.tpu.isolation import ROOT, isolated
from kernelcast.targets.tpu.libtpu import read_window_config
from kernelcast.targets.tpu.unassigned import unassigned
from kernelcast.targets.tpu.unshared import unshared

# Two equal nested fusions, a reducer that is applied twice, windows and memory spaces left by a compile.
MODULE = """HloModule m, is_scheduled=true

%sum {
  %a = f32[]{:T(256)S(6)} parameter(0)
  %b = f32[]{:T(256)S(6)} parameter(1)
  ROOT %c = f32[]{:T(256)S(6)} add(%a, %b)
}
%one {
  %p = f32[64,128]{1,0:T(8,128)} parameter(0)
  ROOT %n = f32[64,128]{1,0:T(8,128)} negate(%p)
}
%two {
  %p = f32[64,128]{1,0:T(8,128)} parameter(0)
  ROOT %n = f32[64,128]{1,0:T(8,128)} negate(%p)
}
%body {
  %x = f32[64,128]{1,0:T(8,128)} parameter(0)
  %y = f32[64,128]{1,0:T(8,128)} parameter(1)
  %zero = f32[]{:T(256)} constant(0)
  %f = f32[64,128]{1,0:T(8,128)} fusion(%x), kind=kLoop, calls=%one
  %g = f32[64,128]{1,0:T(8,128)} fusion(%y), kind=kLoop, calls=%two
  %r = f32[128]{0:T(256)} reduce(%f, %zero), dimensions={0}, to_apply=%sum
  %s = f32[128]{0:T(256)} reduce(%g, %zero), dimensions={0}, to_apply=%sum
  ROOT %t = f32[128]{0:T(256)} add(%r, %s)
}
ENTRY %main {
  %x = f32[64,128]{1,0:T(8,128)S(1)} parameter(0)
  %y = f32[64,128]{1,0:T(8,128)} parameter(1)
  ROOT %k = f32[128]{0:T(256)} fusion(%x, %y), kind=kLoop, calls=%body, \
backend_config={"window_config":{"output_window_bounds":["1"],"estimated_cycles":"7"}}
}
"""


@pytest.fixture
def kernel() -> Kernel:
    ((_, _, found),) = kernels_of(parse(MODULE))
    return found


def test_what_the_compiler_assigned_is_gone(kernel: Kernel) -> None:
    module = isolated(kernel, None).module
    assert "S(1)" not in module
    assert "S(6)" not in module
    assert "window_config" not in module
    assert "{1,0:T(8,128)}" in module


def test_unassigned_makes_equal_kernels_equal() -> None:
    other = MODULE.replace('["1"]', '["2"]').replace("S(1)", "S(2)")
    ((_, _, one),) = kernels_of(unassigned(parse(MODULE)))
    ((_, _, two),) = kernels_of(unassigned(parse(other)))
    assert one.fingerprint == two.fingerprint


def test_custom_calls_keep_their_arguments() -> None:
    program = parse(
        'HloModule m ENTRY e { ROOT y = f32[8] custom-call(), custom_call_target="f", backend_config="7" }'
    )
    assert unassigned(program) == program


def test_every_fusion_gets_a_computation_of_its_own(kernel: Kernel) -> None:
    assert len(kernel.canonical.computations) == 4  # the two negations are one
    program = unshared(kernel.canonical)
    called = [i.called[0] for c in program.computations for i in c if i.opcode == "fusion"]
    assert len(called) == len(set(called)) == 3
    assert len(program.computations) == 5  # the reducer stays shared
    assert not violations(program)
    assert unshared(program) == program


def test_the_kernel_is_the_root_under_a_name_of_its_own(kernel: Kernel) -> None:
    program = parse(isolated(kernel, None).module)
    assert program.is_scheduled
    assert program.entry_computation.root == ROOT
    assert [i.name for c in program.computations for i in c].count(ROOT) == 1
    assert not violations(program)
    layout = program.attribute("entry_computation_layout")
    tiled = "f32[64,128]{1,0:T(8,128)}"
    assert layout == f"{{({tiled}, {tiled})->f32[128]{{0:T(256)}}}}"


def test_the_carrier_has_the_same_signature(kernel: Kernel) -> None:
    made = isolated(kernel, None)
    carrier, module = parse(made.carrier), parse(made.module)
    key = "entry_computation_layout"
    assert carrier.attribute(key) == module.attribute(key)
    assert [i.opcode for i in carrier.entry_computation] == ["parameter", "parameter", "custom-call"]


def test_a_tile_is_forced_on_the_root_alone(kernel: Kernel) -> None:
    tile = Tile(levels=(("output", (1,)),), unit="hardware-tile")
    program = parse(isolated(kernel, tile).module)
    config = read_window_config(program.entry_computation[ROOT].attribute("backend_config"))
    assert config is not None
    assert config.output == (1,)
    others = [i for c in program.computations for i in c if i.name != ROOT]
    assert all(i.attribute("backend_config") is None for i in others)
