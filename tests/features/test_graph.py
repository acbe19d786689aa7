"""Graphs of kernels: flattening, marks, columns worked out by hand, tiles, and what must not matter."""

import numpy as np
import pytest

from kernelcast.core.kernel import Kind
from kernelcast.core.tile import Tile
from kernelcast.features.flat import flatten
from kernelcast.features.graph import Featuriser
from kernelcast.features.opcodes import OPCODE_COUNT, OPCODE_NAMES, opcode_id
from kernelcast.features.schema import KERNELCAST_1, Block, Column, FeatureSchema, Transform
from kernelcast.fusion.extract import kernel_from_text

NODE, KERNEL = KERNELCAST_1.node_index, KERNELCAST_1.kernel_index
SOFTMAX = """HloModule k

adder {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

inner {
  q = f32[8,16]{1,0} parameter(0)
  ROOT e = f32[8,16]{1,0} exponential(q)
}

fused {
  p0 = f32[8,16]{1,0} parameter(0)
  i = f32[8,16]{1,0} fusion(p0), kind=kLoop, calls=inner
  z = f32[] constant(0)
  s = f32[8]{0} reduce(i, z), dimensions={1}, to_apply=adder
  n = f32[8,16]{1,0} negate(p0)
  ROOT t = (f32[8]{0}, f32[8,16]{1,0}) tuple(s, n)
}

ENTRY e {
  a = f32[8,16]{1,0} parameter(0)
  ROOT r = (f32[8]{0}, f32[8,16]{1,0}) fusion(a), kind=kLoop, calls=fused
}
"""


@pytest.fixture(scope="module")
def softmax():
    return kernel_from_text(SOFTMAX)


def column(graph, name):
    return graph.rows[:, NODE[name]]


def test_nested_fusions_and_tuples_disappear_and_outputs_are_marked(softmax):
    flat = flatten(softmax)
    assert [i.opcode for i in flat.instructions] == [
        "parameter", "exponential", "constant", "reduce", "negate",
    ]  # fmt: skip
    assert flat.operands == ((), (0,), (), (1, 2), (0,))
    assert flat.outputs == (3, 4)
    graph = Featuriser().graph(softmax)
    assert column(graph, "is_output").tolist() == [0, 0, 0, 1, 1]
    assert column(graph, "users").tolist() == [2, 1, 1, 0, 0]
    edges = list(zip(graph.senders.tolist(), graph.receivers.tolist(), graph.slots.tolist(), strict=True))
    assert edges == [(0, 1, 0), (1, 3, 0), (2, 3, 1), (0, 4, 0)]


def test_columns_of_a_reduce(softmax):
    graph = Featuriser().graph(softmax)
    row = graph.rows[3]
    expected = {
        "type_f32": 1, "rank": 1, "extent_0": 8, "extent_sum": 8, "extent_product": 8, "dimensions_0": 1,
        "dimensions_count": 1, "has_dimensions": 1, "reducer_add": 1, "has_reducer": 1, "reduced_extent": 16,
        "reduces_minor_dimension": 1, "reduces_major_dimension": 0, "operations_per_element": 16,
        "evaluations": 8, "operations": 128, "bytes": 32, "operand_elements": 128, "has_window": 0,
        "minor_extent_divisible_by_8": 1, "minor_extent_divisible_by_16": 0,
    }  # fmt: skip
    assert {name: row[NODE[name]] for name in expected} == expected


def test_extents_run_from_minor_to_major(bare):
    graph = Featuriser().graph(bare("f32[3,5]{0,1} copy(p0)", "f32[3,5]{1,0}"))
    assert graph.rows[1, NODE["extent_0"] : NODE["extent_0"] + 8].tolist() == [3, 5, 0, 0, 0, 0, 8, 15]
    assert graph.rows[1, NODE["minor_to_major_0"] : NODE["minor_to_major_0"] + 3].tolist() == [0, 1, 0]
    # The parameter is row-major and read in the order of the column-major result: five elements apart.
    assert graph.rows[0, NODE["stride_bytes"]] == 20
    assert graph.rows[0, NODE["share_strided"]] == 1


def test_window_convolution_and_dot_columns(bare):
    kernel = bare(
        "f32[1,6,6,8]{3,2,1,0} convolution(p0, p1), window={size=3x3 stride=2x2 pad=1_0x1_0}, "
        "dim_labels=b01f_01io->b01f",
        "f32[1,12,12,4]{3,2,1,0}", "f32[3,3,4,8]{3,2,1,0}",
    )  # fmt: skip
    graph = Featuriser().graph(kernel)
    row = graph.rows[2]
    assert row[NODE["window_size_0"] : NODE["window_size_0"] + 8].tolist() == [3, 3, 0, 0, 0, 0, 6, 9]
    assert row[NODE["window_stride_product"]] == 4
    assert row[NODE["window_padding_low_sum"]] == 2
    assert row[NODE["operations_per_element"]] == 2 * 4 * 9
    assert row[NODE["convolution_channels_last"]] == 1
    assert graph.kernel[KERNEL["convolution_operations"]] == 2 * 4 * 9 * 6 * 6 * 8
    dot = bare(
        "f32[2,8,4]{2,1,0} dot(p0, p1), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_batch_dims={0}, rhs_contracting_dims={1}",
        "f32[2,8,16]{2,1,0}", "f32[2,16,4]{2,1,0}",
    )  # fmt: skip
    row = Featuriser().graph(dot).rows[2]
    assert [row[NODE[f"dot_{n}"]] for n in ("m", "n", "k", "batch")] == [8, 4, 16, 2]
    assert row[NODE["dot_contracts_minor_left"]] == 1
    assert row[NODE["dot_contracts_minor_right"]] == 0


def test_slice_and_pad_columns(fusion):
    kernel = fusion(
        "  z = f32[] constant(0)\n  s = f32[4,3]{1,0} slice(p0), slice={[2:10:2], [0:3]}\n"
        "  ROOT p = f32[4,7]{1,0} pad(s, z), padding=0_0x1_1_1",
        "f32[16,3]{1,0}", result="f32[4,7]{1,0}",
    )  # fmt: skip
    graph = Featuriser().graph(kernel)
    by_opcode = dict(zip((OPCODE_NAMES[o] for o in graph.opcodes), graph.rows, strict=True))
    row = by_opcode["slice"]
    assert [row[NODE[f"slice_{n}_0"]] for n in ("start", "limit", "stride")] == [2, 10, 2]
    row = by_opcode["pad"]
    assert [row[NODE[f"pad_{n}_1"]] for n in ("low", "high", "interior")] == [1, 1, 1]


def test_in_place_kernel_writes_only_its_update(fusion):
    kernel = fusion(
        "  ROOT u = f32[100,8]{1,0} dynamic-update-slice(p0, p1, p2, p2)",
        "f32[100,8]{1,0}", "f32[1,8]{1,0}", "s32[]", result="f32[100,8]{1,0}",
        alias="{}: (0, {}, must-alias)",
    )  # fmt: skip
    graph = Featuriser().graph(kernel)
    assert kernel.kind is Kind.IN_PLACE
    assert graph.kernel[KERNEL["kind_in-place"]] == 1
    assert graph.kernel[KERNEL["is_in_place"]] == 1
    assert graph.kernel[KERNEL["bytes_out"]] == 32
    assert column(graph, "is_aliased").sum() == 1


def test_a_tile_is_on_every_node_with_sum_and_product(softmax):
    tile = Tile(levels=(("kernel", ()), ("output", (4, 2))), unit="hardware-tile")
    graph = Featuriser().graph(softmax, tile)
    assert (graph.rows[:, NODE["tile_1_bound_0"] : NODE["tile_1_bound_0"] + 2] == (4, 2)).all()
    assert set(column(graph, "tile_1_sum")) == {6}
    assert set(column(graph, "tile_1_product")) == {8}
    assert [set(column(graph, f"has_tile_{n}")) for n in range(3)] == [{0}, {1}, {0}]
    assert set(column(graph, "tile_counts_hardware_tiles")) == {1}
    assert not column(Featuriser().graph(softmax), "has_tile_1").any()


def test_names_and_dead_code_do_not_matter(softmax):
    renamed = SOFTMAX.replace("p0", "other").replace("fused", "body_7").replace("  n = ", "  n_9 = ")
    renamed = renamed.replace("tuple(s, n)", "tuple(s, n_9)")
    renamed = renamed.replace("  z = f32[] constant(0)\n", "  z = f32[] constant(0)\n  d = f32[] negate(z)\n")
    first, second = Featuriser().graph(softmax), Featuriser().graph(kernel_from_text(renamed))
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.kernel, second.kernel)


def test_the_canonical_kernel_has_the_same_features(softmax):
    again = Featuriser().graph(kernel_from_text(softmax.text))
    graph = Featuriser().graph(softmax)
    order, other = np.lexsort(graph.rows.T), np.lexsort(again.rows.T)
    np.testing.assert_array_equal(graph.rows[order], again.rows[other])
    np.testing.assert_array_equal(graph.kernel, again.kernel)


def test_the_combiner_of_a_select_and_scatter_is_read_by_name():
    kernel = kernel_from_text("""HloModule k
    larger { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT c = pred[] compare(x, y), direction=GE }
    adder { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
    ENTRY e { x = f32[8]{0} parameter(0)  g = f32[4]{0} parameter(1)  zero = f32[] constant(0)
      ROOT r = f32[8]{0} select-and-scatter(x, g, zero), window={size=2 stride=2}, select=larger,
        scatter=adder
    }""")
    # Canonical text has its attributes sorted: the combiner, which the compiler prints last, comes first.
    for one in (kernel, kernel_from_text(kernel.text)):
        graph = Featuriser().graph(one)
        assert graph.rows[-1, NODE["reducer_add"]] == 1


def test_remembered_rows_are_not_changed_by_a_kernel(softmax):
    featuriser = Featuriser()
    first = featuriser.graph(softmax, Tile(levels=(("output", (4,)),)))
    second = featuriser.graph(softmax)
    assert first.rows[0, NODE["has_tile_1"]] == 1
    assert second.rows[0, NODE["has_tile_1"]] == 0
    np.testing.assert_array_equal(second.rows, Featuriser().graph(softmax).rows)


def test_every_value_is_finite_and_every_column_has_a_unit(softmax):
    graph = Featuriser().graph(softmax)
    assert np.isfinite(graph.rows).all()
    assert np.isfinite(graph.kernel).all()
    assert all(c.unit for c in (*KERNELCAST_1.node, *KERNELCAST_1.kernel))


def test_opcode_ids_are_those_of_xla_and_unknown_is_zero():
    known = {"abs": 1, "dot": 34, "fusion": 41, "reduce": 70, "tanh": 96, "transpose": 98, "tan": 120}
    assert {name: opcode_id(name) for name in known} == known
    assert opcode_id("made-up") == opcode_id("") == 0
    assert len(OPCODE_NAMES) == OPCODE_COUNT


def test_the_digest_follows_columns_transforms_and_opcodes():
    plain = Column(name="a", block=Block.PAPER, unit="elements", transform=Transform.RAW)
    log = Column(name="a", block=Block.PAPER, unit="elements", transform=Transform.LOG)
    make = lambda column, opcodes=("unknown",): FeatureSchema(  # noqa: E731
        name="s", node=(column,), kernel=(), opcodes=opcodes
    )
    assert make(plain).digest == make(plain).digest
    assert len({make(plain).digest, make(log).digest, make(plain, ("unknown", "abs")).digest}) == 3


def test_a_schema_with_two_columns_of_one_name_is_refused():
    twice = Column(name="a", block=Block.PAPER, unit="elements", transform=Transform.RAW)
    with pytest.raises(ValueError, match="two columns of schema s share a name"):
        FeatureSchema(name="s", node=(twice, twice), kernel=(), opcodes=())


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("f32[0,4]{1,0} negate(p0)", ("f32[0,4]{1,0}",)),
        ("f32[] negate(p0)", ("f32[]",)),
        (
            "f32[4,3]{1,0} dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            ("f32[4,0]{1,0}", "f32[0,3]{1,0}"),
        ),
        ('(f32[8]{0}, token[]) custom-call(p0), custom_call_target="x"', ("f32[8]{0}",)),
        ("f32[8]{0} made-up-operation(p0)", ("f32[8]{0}",)),
        ("f32[1,1,1,1,1,1,1,2]{7,6,5,4,3,2,1,0} negate(p0)", ("f32[1,1,1,1,1,1,1,2]{7,6,5,4,3,2,1,0}",)),
    ],
    ids=[
        "no elements",
        "scalar",
        "nothing contracted",
        "tuple with a token",
        "unknown opcode",
        "eight dimensions",
    ],
)
def test_odd_kernels_have_finite_features(bare, operation, parameters):
    graph = Featuriser().graph(bare(operation, *parameters))
    assert np.isfinite(graph.rows).all()
    assert np.isfinite(graph.kernel).all()
    assert graph.opcodes[0] == opcode_id("parameter")
