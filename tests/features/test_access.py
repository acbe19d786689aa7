"""How often values are computed and how they are walked through, against counts made by hand."""

import pytest

from kernelcast.features.access import INVARIANT, IRREGULAR, MAX_SITES, evaluation_sites
from kernelcast.features.flat import flatten


def sites_of(kernel, opcode, number=0):
    flat = flatten(kernel)
    nodes = [n for n, i in enumerate(flat.instructions) if i.opcode == opcode]
    return list(evaluation_sites(flat)[nodes[number]].values())


def total(kernel, opcode, number=0):
    return sum(site.count for site in sites_of(kernel, opcode, number))


def test_elementwise_uses_share_one_computation(fusion):
    kernel = fusion(
        "  t = f32[8,4]{1,0} tanh(p0)\n  n = f32[8,4]{1,0} negate(t)\n  ROOT a = f32[8,4]{1,0} add(t, n)",
        "f32[8,4]{1,0}", result="f32[8,4]{1,0}",
    )  # fmt: skip
    assert total(kernel, "tanh") == 32
    (site,) = sites_of(kernel, "parameter")
    assert (site.count, site.dimension, site.step, site.extent) == (32, 1, 1, 4)


def test_a_transposed_and_a_direct_use_compute_twice(fusion):
    kernel = fusion(
        "  t = f32[8,8]{1,0} tanh(p0)\n  u = f32[8,8]{1,0} transpose(t), dimensions={1,0}\n"
        "  ROOT a = f32[8,8]{1,0} add(t, u)",
        "f32[8,8]{1,0}", result="f32[8,8]{1,0}",
    )  # fmt: skip
    assert total(kernel, "tanh") == 2 * 64
    assert {site.dimension for site in sites_of(kernel, "parameter")} == {0, 1}


def test_two_equal_transposes_share(fusion):
    kernel = fusion(
        "  t = f32[8,8]{1,0} tanh(p0)\n  u = f32[8,8]{1,0} transpose(t), dimensions={1,0}\n"
        "  v = f32[8,8]{1,0} transpose(t), dimensions={1,0}\n  ROOT a = f32[8,8]{1,0} add(u, v)",
        "f32[8,8]{1,0}", result="f32[8,8]{1,0}",
    )  # fmt: skip
    assert total(kernel, "tanh") == 64


def test_a_reduce_inside_is_computed_for_every_element_around_it(fusion):
    kernel = fusion(
        "  z = f32[] constant(0)\n  e = f32[8,16]{1,0} exponential(p0)\n"
        "  s = f32[8]{0} reduce(e, z), dimensions={1}, to_apply=adder\n"
        "  b = f32[8,16]{1,0} broadcast(s), dimensions={0}\n  ROOT d = f32[8,16]{1,0} divide(e, b)",
        "f32[8,16]{1,0}", result="f32[8,16]{1,0}",
    )  # fmt: skip
    # Once for the element itself, and the row of 16 again for each of the 128 divisors.
    assert total(kernel, "exponential") == 128 + 128 * 16
    (site,) = sites_of(kernel, "reduce")
    assert (site.count, site.dimension) == (128, INVARIANT)


def test_column_reduction_walks_with_the_row_length(fusion):
    kernel = fusion(
        "  z = f32[] constant(0)\n  ROOT s = f32[16]{0} reduce(p0, z), dimensions={0}, to_apply=adder",
        "f32[8,16]{1,0}", result="f32[16]{0}",
    )  # fmt: skip
    (site,) = sites_of(kernel, "parameter")
    assert (site.count, site.dimension, site.extent) == (128, 0, 8)


def test_strided_slice_and_scalar_broadcast(fusion):
    kernel = fusion(
        "  s = f32[4]{0} slice(p0), slice={[0:16:4]}\n  b = f32[4]{0} broadcast(p1), dimensions={}\n"
        "  ROOT m = f32[4]{0} multiply(s, b)",
        "f32[16]{0}", "f32[]", result="f32[4]{0}",
    )  # fmt: skip
    assert sites_of(kernel, "parameter", 0)[0].step == 4
    assert sites_of(kernel, "parameter", 1)[0].dimension == INVARIANT


def test_concatenate_and_pad_read_only_their_part(fusion):
    kernel = fusion(
        "  z = f32[] constant(0)\n  p = f32[4]{0} pad(p0, z), padding=1_1\n"
        "  ROOT c = f32[12]{0} concatenate(p, p1), dimensions={0}",
        "f32[2]{0}", "f32[8]{0}", result="f32[12]{0}",
    )  # fmt: skip
    assert total(kernel, "parameter", 0) == pytest.approx(2)
    assert total(kernel, "parameter", 1) == pytest.approx(8)


def test_reshape_keeps_the_walk(fusion):
    kernel = fusion(
        "  r = f32[6,4]{1,0} reshape(p0)\n  ROOT t = f32[4,6]{1,0} transpose(r), dimensions={1,0}",
        "f32[24]{0}", result="f32[4,6]{1,0}",
    )  # fmt: skip
    (site,) = sites_of(kernel, "parameter")
    assert (site.dimension, site.step, site.count) == (0, 4, 24)


def test_gather_rows_is_contiguous_and_gather_elements_is_irregular(fusion):
    rows = fusion(
        "  ROOT g = f32[3,16]{1,0} gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}",
        "f32[100,16]{1,0}", "s32[3,1]{1,0}", result="f32[3,16]{1,0}",
    )  # fmt: skip
    assert sites_of(rows, "parameter", 0)[0].dimension == 1
    elements = fusion(
        "  ROOT g = f32[30]{0} gather(p0, p1), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
        "f32[100]{0}", "s32[30,1]{1,0}", result="f32[30]{0}",
    )  # fmt: skip
    assert sites_of(elements, "parameter", 0)[0].dimension == IRREGULAR


@pytest.mark.parametrize(
    ("indices", "vector", "walked"), [("s32[2,30]{1,0}", 0, 1), ("s32[30,2]{1,0}", 1, 0)]
)
def test_gather_walks_its_indices_along_the_batch(fusion, indices, vector, walked):
    kernel = fusion(
        "  ROOT g = f32[30]{0} gather(p0, p1), offset_dims={}, collapsed_slice_dims={0,1}, "
        f"start_index_map={{0,1}}, index_vector_dim={vector}, slice_sizes={{1,1}}",
        "f32[50,60]{1,0}", indices, result="f32[30]{0}",
    )  # fmt: skip
    assert sites_of(kernel, "parameter", 1)[0].dimension == walked


def test_in_place_update_computes_only_the_update(fusion):
    body = "  n = f32[1,8]{1,0} negate(p1)\n  ROOT u = f32[100,8]{1,0} dynamic-update-slice(p0, n, p2, p2)"
    shapes = ("f32[100,8]{1,0}", "f32[1,8]{1,0}", "s32[]")
    fresh = fusion(body, *shapes, result="f32[100,8]{1,0}")
    in_place = fusion(body, *shapes, result="f32[100,8]{1,0}", alias="{}: (0, {}, must-alias)")
    assert total(fresh, "parameter", 0) == pytest.approx(792)
    assert sites_of(in_place, "parameter", 0) == []
    assert total(in_place, "negate") == total(in_place, "dynamic-update-slice") == 8


def test_a_bare_dot_reads_each_element_once(bare):
    kernel = bare(
        "f32[8,4]{1,0} dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,16]{1,0}", "f32[16,4]{1,0}",
    )  # fmt: skip
    assert [total(kernel, "parameter", n) for n in range(2)] == [128, 64]


def test_a_dot_in_a_loop_fusion_computes_its_operands_again(fusion):
    kernel = fusion(
        "  n = f32[8,16]{1,0} negate(p0)\n"
        "  ROOT d = f32[8,4]{1,0} dot(n, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,16]{1,0}", "f32[16,4]{1,0}", result="f32[8,4]{1,0}",
    )  # fmt: skip
    assert total(kernel, "negate") == 8 * 4 * 16


def test_exponential_diamonds_stay_bounded(fusion):
    body = "\n".join(
        f"  t{n} = f32[2,2]{{1,0}} transpose({'p0' if n == 0 else f'a{n - 1}'}), dimensions={{1,0}}\n"
        f"  a{n} = f32[2,2]{{1,0}} add(t{n}, {'p0' if n == 0 else f'a{n - 1}'})"
        for n in range(60)
    )
    kernel = fusion(body + "\n  ROOT r = f32[2,2]{1,0} negate(a59)", "f32[2,2]{1,0}", result="f32[2,2]{1,0}")
    assert all(len(sites) <= MAX_SITES for sites in evaluation_sites(flatten(kernel)))


def test_a_convolution_in_a_loop_fusion_computes_its_operands_for_every_tap(fusion):
    kernel = fusion(
        "  n = f32[1,6,6,4]{3,2,1,0} negate(p0)\n"
        "  ROOT c = f32[1,6,6,8]{3,2,1,0} convolution(n, p1), window={size=3x3 pad=1_1x1_1}, "
        "dim_labels=b01f_01io->b01f",
        "f32[1,6,6,4]{3,2,1,0}", "f32[3,3,4,8]{3,2,1,0}", result="f32[1,6,6,8]{3,2,1,0}",
    )  # fmt: skip
    assert total(kernel, "negate") == 6 * 6 * 8 * 9 * 4
    assert all(site.sequential for site in sites_of(kernel, "negate"))


def test_what_a_reduction_reads_is_sequential_and_what_reads_it_is_not(fusion):
    kernel = fusion(
        "  z = f32[] constant(0)\n  e = f32[8,16]{1,0} exponential(p0)\n"
        "  s = f32[8]{0} reduce(e, z), dimensions={1}, to_apply=adder\n  ROOT t = f32[8]{0} tanh(s)",
        "f32[8,16]{1,0}", result="f32[8]{0}",
    )  # fmt: skip
    assert [site.sequential for site in sites_of(kernel, "exponential")] == [True]
    assert [site.sequential for site in sites_of(kernel, "tanh")] == [False]
