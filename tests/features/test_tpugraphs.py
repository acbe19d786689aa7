"""Programs featurised as TpuGraphs publishes them."""

from pathlib import Path

import numpy as np
import pytest

from kernelcast.data.tpugraphs.tuning_proto import read_tuning
from kernelcast.features.graph import KernelGraph
from kernelcast.features.opcodes import opcode_id
from kernelcast.features.schema import KERNELCAST_1, Block
from kernelcast.features.tpugraphs import kernel_graph, program_graph
from kernelcast.features.tpugraphs_schema import CONFIG_WIDTH, NODE_WIDTH, OPCODE_COUNT, TPUGRAPHS_140
from kernelcast.hlo.sources import load
from kernelcast.hlo.text import parse

INDEX = TPUGRAPHS_140.node_index
FUSED = """HloModule m

fused {
  p = f32[8,4]{0,1} parameter(0)
  r = f32[32]{0} reshape(p)
  ROOT n = f32[32]{0} negate(r)
}

body_while {
  b = f32[8,4]{0,1} parameter(0)
  ROOT e = f32[8,4]{0,1} exponential(b)
}

ENTRY main {
  x = f32[8,4]{0,1} parameter(0)
  y = f32[8,4]{0,1} multiply(x, x)
  z = f32[4,8]{1,0} reshape(y)
  c = f32[8,4]{0,1} call(y), to_apply=body_while
  ROOT f = f32[32]{0} fusion(c), kind=kLoop, calls=fused
}
"""


def features_of(line: str, **parameters: str) -> dict[str, float]:
    """The non-default features of the last instruction, by name."""
    given = "\n".join(
        f"  {name} = {shape} parameter({number})" for number, (name, shape) in enumerate(parameters.items())
    )
    program = parse(
        f"HloModule m\nadd {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        f"  ROOT s = f32[] add(a, b)\n}}\nENTRY e {{\n{given}\n  ROOT last = {line}\n}}"
    )
    row = program_graph(program).node_feat[-1]
    names = list(INDEX)[:NODE_WIDTH]
    default = {name: float(name.endswith("_product")) for name in names}
    return {n: float(v) for n, v in zip(names, row, strict=True) if v != default[n] and n != "is_root"}


def test_the_published_program_is_reproduced_exactly(shared_data: Path) -> None:
    tuning = read_tuning(shared_data / "tpugraphs" / "module_tuning_data_layout.pb")
    graph = program_graph(load(tuning.module).program)
    assert graph.node_feat.shape == (3163, NODE_WIDTH)
    assert tuple(graph.configurable) == tuning.configurable
    for search in ("default", "random"):
        path = shared_data / "tpugraphs" / "layout" / "xla" / search / "valid" / "unet_3d.4x4.bf16.npz"
        with np.load(path) as published:
            np.testing.assert_array_equal(graph.node_feat, published["node_feat"])
            np.testing.assert_array_equal(graph.opcode, published["node_opcode"])
            np.testing.assert_array_equal(graph.edges, published["edge_index"])
            np.testing.assert_array_equal(graph.configurable, published["node_config_ids"])
            np.testing.assert_array_equal(graph.splits[None], published["node_splits"])
            for ours, name in ((graph.node_feat, "node_feat"), (graph.opcode, "node_opcode")):
                assert ours.dtype == published[name].dtype


def test_the_schema_has_the_published_width_and_another_digest() -> None:
    assert len(TPUGRAPHS_140.node) == NODE_WIDTH + CONFIG_WIDTH
    assert TPUGRAPHS_140.tile_columns.tolist() == list(range(NODE_WIDTH, NODE_WIDTH + CONFIG_WIDTH))
    assert all(c.block is Block.PAPER for c in TPUGRAPHS_140.node[:NODE_WIDTH])
    assert TPUGRAPHS_140.digest != KERNELCAST_1.digest
    # Changing a column, its transform or the opcodes makes published checkpoints unreadable: on purpose only.
    assert TPUGRAPHS_140.digest == "358729b8703df000"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("type_f32", 13), ("extent_0", 21), ("extent_product", 28), ("tuple_size", 29),
        ("parameter_number", 30), ("dimensions_0", 31), ("window_size_0", 37), ("window_stride_0", 45),
        ("window_padding_low_0", 53), ("window_padding_high_0", 61), ("window_dilation_0", 69),
        ("base_dilation_0", 77), ("window_reversal_0", 85), ("window_not_reversed", 92),
        ("convolution_input_batch", 93), ("convolution_output_feature", 106), ("batch_group_count", 108),
        ("slice_start_0", 109), ("slice_limit_product", 120), ("dynamic_slice_size_0", 121),
        ("pad_low_0", 125), ("pad_high_product", 132), ("is_stable", 133), ("minor_to_major_5", 139),
        ("kernel_bound_0", 140), ("kernel_bound_product", 147), ("output_bound_0", 148),
        ("input_bound_product", 163),
    ],
)  # fmt: skip
def test_columns_stand_where_the_published_ones_do(name: str, number: int) -> None:
    assert INDEX[name] == number


def test_edges_join_each_pair_once_and_callers_to_roots() -> None:
    graph = program_graph(parse(FUSED))
    names = ["p", "r", "n", "b", "e", "x", "y", "z", "c", "f"]
    place = {name: number for number, name in enumerate(names)}
    expected = ["rp", "nr", "eb", "yx", "zy", "ce", "cy", "fn", "fc"]
    assert sorted((place[u], place[v]) for u, v in expected) == [tuple(edge) for edge in graph.edges]
    assert (graph.edges[:, 0] > graph.edges[:, 1]).all()
    roots = [names[n] for n in np.flatnonzero(graph.node_feat[:, INDEX["is_root"]])]
    assert roots == ["n", "e", "f"]


def test_layouts_are_chosen_outside_fusions_alone() -> None:
    graph = program_graph(parse(FUSED))
    assert graph.configurable.tolist() == [7]  # z, not r


def test_segments_end_with_computations_of_telling_names() -> None:
    assert program_graph(parse(FUSED)).splits.tolist() == [0, 5, 10]
    alone = program_graph(parse("HloModule m ENTRY while_ { ROOT x = f32[] parameter(0) }"))
    assert alone.splits.tolist() == [0, 1]
    assert alone.edges.shape == (0, 2)


def test_an_array_is_told_by_type_extents_and_layout() -> None:
    assert features_of("bf16[4,6]{0,1} convert(x)", x="f32[4,6]{0,1}") == {
        "type_bf16": 1, "extent_0": 4, "extent_1": 6, "extent_sum": 10, "extent_product": 24,
        "minor_to_major_1": 1,
    }  # fmt: skip
    assert features_of("f32[] negate(x)", x="f32[]") == {"type_f32": 1}


def test_a_text_without_layouts_is_row_major() -> None:
    assert features_of("f32[4,6] negate(x)", x="f32[4,6]")["minor_to_major_0"] == 1


def test_more_than_six_dimensions_count_in_sum_and_product_alone() -> None:
    found = features_of("f32[1,2,1,3,1,1,5] negate(x)", x="f32[1,2,1,3,1,1,5]")
    assert (found["extent_5"], found["extent_sum"], found["extent_product"]) == (1, 14, 30)


def test_a_tuple_tells_its_size_alone() -> None:
    assert features_of("(f32[4], s32[]) tuple(x, y)", x="f32[4]", y="s32[]") == {
        "type_tuple": 1, "tuple_size": 2,
    }  # fmt: skip


def test_element_types_that_came_later_have_no_column() -> None:
    assert "type_f32" not in features_of("f8e4m3fn[4] convert(x)", x="f32[4]")


def test_a_zero_extent_makes_the_product_zero() -> None:
    found = features_of("f32[0,4] negate(x)", x="f32[0,4]")
    assert (found["extent_sum"], found["extent_product"]) == (4, 0)


def test_extents_beyond_64_bits_are_limited() -> None:
    huge = "f32[4000000000,4000000000,4000000000]"
    assert features_of(f"{huge} negate(x)", x=huge)["extent_product"] == float(np.float32(2**63 - 1))


def test_a_convolution_tells_window_labels_and_groups() -> None:
    found = features_of(
        "f32[8,6,6,16]{3,2,1,0} convolution(x, k), window={size=3x3 stride=2x1 pad=0_1x1_1 rhs_reversal=1x0},"
        " dim_labels=b01f_01io->b01f, feature_group_count=4",
        x="f32[8,12,6,16]{3,2,1,0}", k="f32[3,3,4,16]{3,2,1,0}",
    )  # fmt: skip
    expected = {
        "window_size_0": 3, "window_size_1": 3, "window_size_sum": 6, "window_size_product": 9,
        "window_stride_0": 2, "window_stride_1": 1, "window_stride_sum": 3, "window_stride_product": 2,
        "window_padding_low_0": 0, "window_padding_low_1": 1, "window_padding_low_product": 0,
        "window_padding_high_sum": 2, "window_dilation_product": 1, "base_dilation_sum": 2,
        "window_reversal_0": 1, "window_reversal_1": 0, "window_reversed": 1, "window_not_reversed": 1,
        "convolution_input_batch": 0, "convolution_input_feature": 3, "convolution_input_spatial_0": 1,
        "convolution_input_spatial_1": 2, "convolution_kernel_input_feature": 2,
        "convolution_kernel_output_feature": 3, "convolution_kernel_spatial_1": 1,
        "convolution_output_feature": 3, "feature_group_count": 4, "batch_group_count": 1,
    }  # fmt: skip
    assert {name: found.get(name, float(name == "window_dilation_product")) for name in expected} == expected


def test_slices_pads_and_dimensions() -> None:
    sliced = features_of("f32[2,3] slice(x), slice={[1:3], [0:6:2]}", x="f32[4,6]")
    assert [sliced.get(f"slice_{n}", 0) for n in ("start_0", "start_1", "stride_1", "limit_product")] == [
        1, 0, 2, 18,
    ]  # fmt: skip
    padded = features_of("f32[5] pad(x, y), padding=2_-1", x="f32[4]", y="f32[]")
    assert (padded["pad_low_0"], padded["pad_high_0"], padded["pad_high_product"]) == (2, -1, -1)
    dynamic = features_of("f32[2] dynamic-slice(x, y), dynamic_slice_sizes={2}", x="f32[4]", y="s32[]")
    assert dynamic["dynamic_slice_size_product"] == 2
    permuted = "f32[4,6] collective-permute(x), source_target_pairs={{0,1}}, slice_sizes={{2,3},{1,4}}"
    assert features_of(permuted, x="f32[4,6]")["dynamic_slice_size_product"] == 24
    assert "dynamic_slice_size_sum" not in features_of(permuted.partition(", slice")[0], x="f32[4,6]")
    assert features_of("f32[4,6] broadcast(x), dimensions={1}", x="f32[6]")["dimensions_0"] == 1
    assert features_of("f32[4,6] iota(), iota_dimension=1")["dimensions_0"] == 1
    reduced = features_of("f32[4] reduce(x, y), dimensions={1}, to_apply=add", x="f32[4,6]", y="f32[]")
    assert reduced["dimensions_0"] == 1


def test_a_custom_call_states_its_groups() -> None:
    found = features_of('f32[4] custom-call(x), custom_call_target="t"', x="f32[4]")
    assert (found["feature_group_count"], found["batch_group_count"]) == (1, 1)


def test_opcodes_beyond_the_published_list_are_unknown() -> None:
    assert opcode_id("erf") >= OPCODE_COUNT
    graph = program_graph(parse("HloModule m ENTRY e { x = f32[] parameter(0) ROOT y = f32[] erf(x) }"))
    assert graph.opcode.tolist() == [63, 0]


def test_configurable_nodes_of_all_published_layouts_are_outside_fusions(shared_data: Path) -> None:
    for path in sorted((shared_data / "tpugraphs" / "layout").rglob("*.npz")):
        with np.load(path) as published:
            opcode, edges = published["node_opcode"], published["edge_index"]
            fused = _fused_nodes(opcode, published["node_feat"][:, 0] > 0, edges)
            chosen = np.isin(opcode, [opcode_id(n) for n in ("convolution", "dot", "reshape")]) & ~fused
            np.testing.assert_array_equal(
                np.flatnonzero(chosen), published["node_config_ids"], err_msg=path.name
            )


def _fused_nodes(opcode: np.ndarray, is_root: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(node,) whether a published node is what a fusion's computation is made of: all that its root reads."""
    fused = np.zeros(len(opcode), dtype=np.bool_)
    reads: dict[int, list[int]] = {}
    for reader, read in edges.tolist():
        reads.setdefault(reader, []).append(read)
    stack = [v for u, v in edges.tolist() if opcode[u] == opcode_id("fusion") and is_root[v]]
    while stack:
        node = stack.pop()
        fused[node] = True
        stack.extend(read for read in reads.get(node, []) if not fused[read])
    return fused


def test_networks_take_a_published_graph_as_any_other() -> None:
    graph = program_graph(parse(FUSED))
    taken = kernel_graph(node_feat=graph.node_feat, opcode=graph.opcode, edges=graph.edges)
    assert isinstance(taken, KernelGraph)
    assert taken.rows.shape == (10, len(TPUGRAPHS_140.node))
    assert (taken.node_count, taken.edge_count, len(taken.kernel)) == (10, 9, 0)
    assert (taken.senders[0], taken.receivers[0]) == (0, 1)  # r reads p
    assert not taken.rows[:, TPUGRAPHS_140.tile_columns].any()
