# ruff: noqa: E501 (a line of HLO is as long as it is)
"""Kernels of final modules."""

import pytest

from kernelcast.core.kernel import InputPolicy, InputSpec, Kernel, Kind
from kernelcast.errors import HloError
from kernelcast.fusion.extract import kernel_from_text, kernels_of
from kernelcast.hlo.text import parse

FINAL = """HloModule m, is_scheduled=true

%update_fusion (buffer: f32[64], at: s32[], value: f32[4]) -> f32[64] {
  %buffer = f32[64]{0} parameter(0)
  %at = s32[] parameter(1)
  %value = f32[4]{0} parameter(2)
  %zero = s32[] constant(0)
  %size = s32[] constant(64)
  %negative = pred[] compare(%at, %zero), direction=LT
  %wrapped = s32[] add(%at, %size)
  %start = s32[] select(%negative, %wrapped, %at)
  ROOT %written = f32[64]{0} dynamic-update-slice(%buffer, %value, %start)
}

%sum (p: f32[], q: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %s = f32[] add(%p, %q)
}

%library (x: f32[64,64], zero: f32[]) -> f32[64] {
  %x = f32[64,64]{1,0} parameter(0)
  %zero = f32[] parameter(1)
  ROOT %r = f32[64]{0} reduce(%x, %zero), dimensions={1}, to_apply=%sum
}

%loop (x: f32[64], table: f32[64]) -> f32[64] {
  %x = f32[64]{0} parameter(0)
  %table = f32[64]{0} parameter(1)
  ROOT %m = f32[64]{0} multiply(%x, %table)
}

%less (a: f32[], b: f32[], c: s32[], d: s32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  %c = s32[] parameter(2)
  %d = s32[] parameter(3)
  ROOT %l = pred[] compare(%a, %b), direction=LT
}

ENTRY %main (x: f32[64,64], at: s32[], v: f32[4], ids: s32[64]) -> (f32[64], s32[64]) {
  %x = f32[64,64]{1,0} parameter(0)
  %at = s32[] parameter(1)
  %v = f32[4]{0} parameter(2)
  %ids = s32[64]{0} parameter(3)
  %zero = f32[] constant(0)
  %table = f32[64]{0} constant({...})
  %rows = f32[64]{0} fusion(%x, %zero), kind=kCustom, calls=%library, backend_config={"outer_dimension_partitions":[],"fusion_config":{"kind":"__ynn_fusion"}}
  %scaled = f32[64]{0} fusion(%rows, %table), kind=kLoop, calls=%loop
  %written = f32[64]{0} fusion(%scaled, %at, %v), kind=kLoop, calls=%update_fusion
  %sort = (f32[64]{0}, s32[64]{0}) sort(%written, %ids), dimensions={0}, to_apply=%less
  %values = f32[64]{0} get-tuple-element(%sort), index=0
  %order = s32[64]{0} get-tuple-element(%sort), index=1
  ROOT %t = (f32[64]{0}, s32[64]{0}) tuple(%values, %order)
}
"""


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return {name: kernel for _, name, kernel in kernels_of(parse(FINAL))}


def test_launched_instructions_are_the_kernels(kernels: dict[str, Kernel]):
    assert list(kernels) == ["rows", "scaled", "written", "sort"]
    assert [kernel.kind for kernel in kernels.values()] == [Kind.LIBRARY, Kind.LOOP, Kind.IN_PLACE, Kind.SORT]


def test_scalar_constants_go_inside_and_array_constants_become_parameters(kernels: dict[str, Kernel]):
    assert "constant(0)" in kernels["rows"].text
    assert len(kernels["rows"].program.entry_computation.parameters) == 1
    assert len(kernels["scaled"].program.entry_computation.parameters) == 2
    assert "constant" not in kernels["scaled"].text


def test_update_slice_is_in_place_and_its_start_is_an_index(kernels: dict[str, Kernel]):
    assert kernels["written"].aliases == ((0, 0),)
    assert kernels["written"].inputs == (
        InputSpec(policy=InputPolicy.FLOAT),
        InputSpec(policy=InputPolicy.INDEX, bound=61),
        InputSpec(policy=InputPolicy.FLOAT),
    )


def test_stored_text_gives_the_kernel_back(kernels: dict[str, Kernel]):
    for kernel in kernels.values():
        again = kernel_from_text(kernel.text)
        assert again == kernel
        assert again.fingerprint == kernel.fingerprint
        assert (again.kind, len(again.aliases)) == (kernel.kind, len(kernel.aliases))
        assert sorted(map(str, again.inputs)) == sorted(map(str, kernel.inputs))


def test_a_text_that_launches_several_kernels_is_refused():
    with pytest.raises(
        HloError, match="launches exactly one instruction, its root; main launches %rows, %scaled"
    ):
        kernel_from_text(FINAL)


def test_tuple_operands_are_put_together_from_parameters():
    text = """HloModule m, is_scheduled=true

ENTRY %main (t: (f32[4], s32[2])) -> f32[4] {
  %t = (f32[4]{0}, s32[2]{0}) parameter(0)
  ROOT %c = f32[4]{0} custom-call(%t), custom_call_target="f", output_to_operand_aliasing={{}: (0, {0})}
}
"""
    ((_, _, kernel),) = kernels_of(parse(text))
    assert [p.shape.element_type for p in kernel.program.entry_computation.parameters] == ["f32", "s32"]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (
            "gather(%table, %at), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0},"
            " index_vector_dim=1, slice_sizes={2}",
            InputSpec(policy=InputPolicy.INDEX, bound=15),
        ),
        (
            "gather(%table, %at), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0},"
            " index_vector_dim=1, slice_sizes={2}, indices_are_sorted=true",
            InputSpec(policy=InputPolicy.SORTED, bound=15),
        ),
    ],
)
def test_gather_indices_stay_inside_the_table(operation: str, expected: InputSpec):
    text = f"""HloModule m

ENTRY %main (table: f32[16], at: s32[3,1]) -> f32[3,2] {{
  %table = f32[16]{{0}} parameter(0)
  %at = s32[3,1]{{1,0}} parameter(1)
  ROOT %g = f32[3,2]{{1,0}} {operation}
}}
"""
    ((_, _, kernel),) = kernels_of(parse(text))
    assert kernel.inputs[1] == expected
    assert kernel.kind == Kind.GATHER


def test_scatter_writes_in_place_below_the_bound():
    text = """HloModule m

%sum (p: f32[], q: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %s = f32[] add(%p, %q)
}

ENTRY %main (x: f32[32,8], i: s32[5,1], u: f32[5,1,8]) -> f32[32,8] {
  %x = f32[32,8]{1,0} parameter(0)
  %i = s32[5,1]{1,0} parameter(1)
  %u = f32[5,1,8]{2,1,0} parameter(2)
  ROOT %s = f32[32,8]{1,0} scatter(%x, %i, %u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=%sum
}
"""
    ((_, _, kernel),) = kernels_of(parse(text))
    assert kernel.aliases == ((0, 0),)
    assert kernel.inputs[1] == InputSpec(policy=InputPolicy.PERMUTATION, bound=32)
