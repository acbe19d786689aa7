"""Arithmetic and bytes: the public cases, closed forms, and agreement with XLA where XLA is right."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.hlo.attributes import WindowDimension
from kernelcast.hlo.cost import Cost, instruction_cost, kernel_costs, program_cost
from kernelcast.hlo.program import Program
from kernelcast.hlo.text import parse
from kernelcast.hlo.work import valid_positions


def compiled(function, *arguments) -> Program:
    return parse(jax.jit(function).lower(*arguments).compile().as_text())


def entry_cost(body: str, name: str, others: str = "") -> Cost:
    program = parse(f"HloModule m\n{others}\nENTRY e {{ {body} }}")
    return instruction_cost(program, program.entry_computation, program.entry_computation[name])


# Case 1: work in loops counted once.


def scan_of_dots(x, length: int):
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, length=length)[0]


def dot_flops(program: Program) -> float:
    costs = kernel_costs(program)
    dots = [k for k in costs if k.cost.flops == 2 * 64**3]
    return sum(k.cost.flops * k.runs.value for k in dots)


def test_case_1_work_in_loops_is_multiplied() -> None:
    x = jnp.ones((64, 64))
    program = compiled(lambda x: scan_of_dots(x, 50), x)
    assert dot_flops(program) == 26_214_400
    assert program_cost(program).transcendentals == 50 * 64**2
    # What is left are the counter's 50 additions and 51 comparisons.
    assert program_cost(program).flops == 26_214_400 + 50 + 51


def test_case_1_nested_loops_multiply() -> None:
    nested = lambda x: jax.lax.scan(lambda c, _: (scan_of_dots(c, 7), None), x, None, length=5)[0]  # noqa: E731
    assert dot_flops(compiled(nested, jnp.ones((64, 64)))) == 35 * 2 * 64**3


def test_case_1_an_unknown_trip_count_is_stated() -> None:
    program = compiled(
        lambda x: jax.lax.while_loop(lambda c: c.sum() < 1e5, lambda c: jnp.sin(c), x), jnp.ones(256)
    )
    assert program_cost(program, assumed=10).transcendentals == 10 * 256
    assert program_cost(program, assumed=3).transcendentals == 3 * 256
    assert {str(k.runs.source) for k in kernel_costs(program)} == {"exact", "assumed"}


# Case 2: cumulative operations counted as n².


def test_case_2_a_cumulative_sum_costs_what_was_compiled() -> None:
    x = jnp.ones((1024, 64))
    cumulative = program_cost(compiled(lambda x: jnp.cumsum(x, 0), x))
    total = program_cost(compiled(lambda x: jnp.sum(x, 0), x))
    assert total.flops == 1023 * 64
    assert total.bytes_read == 4 * 1024 * 64
    assert total.bytes_written == 4 * 64
    assert 5 < cumulative.flops / total.flops < 12  # a tree of windows of 16, not 1024² / 2
    assert 3 < cumulative.bytes_accessed / total.bytes_accessed < 8


# Case 4: work behind library calls.


def test_case_4_a_library_region_costs_what_it_computes() -> None:
    program = compiled(lambda a, b: a @ b, jnp.ones((128, 32)), jnp.ones((32, 64)))
    assert "kCustom" in (program.entry_computation.root_instruction.attribute("kind") or "")
    cost = program_cost(program)
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (
        2 * 128 * 32 * 64,
        4 * (128 * 32 + 32 * 64),
        4 * 128 * 64,
    )
    assert cost.unknown == ()


def test_case_4_a_matrix_product_call_is_counted_from_its_shapes() -> None:
    cost = entry_cost(
        "a = f32[4,8,16] parameter(0)  b = f32[4,16,32] parameter(1)  "
        'ROOT d = f32[4,8,32] custom-call(a, b), custom_call_target="__onednn$matmul"',
        "d",
    )
    assert cost.flops == 2 * 4 * 8 * 16 * 32
    assert cost.unknown == ()


def test_case_4_an_opaque_call_is_unknown_and_has_its_bytes() -> None:
    cost = entry_cost(
        'a = f32[8,16] parameter(0)  ROOT d = f32[8,32] custom-call(a), custom_call_target="mystery"', "d"
    )
    assert cost == Cost(bytes_read=4 * 8 * 16, bytes_written=4 * 8 * 32, unknown=("d",))


def test_what_is_unknown_stays_named_in_the_programs_sum() -> None:
    program = parse(
        """HloModule m
        ENTRY e { a = f32[8] parameter(0)  b = f32[8] custom-call(a), custom_call_target="mystery"
          ROOT c = f32[8] exponential(b) }"""
    )
    cost = program_cost(program)
    assert cost.unknown == ("b",)
    assert cost.transcendentals == 8


# Closed forms.

ADD = "add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }"


@pytest.mark.parametrize(
    ("body", "flops", "bytes_read", "bytes_written"),
    [
        ("p = f32[100] parameter(0)  ROOT r = f32[10] slice(p), slice={[20:30]}", 0, 40, 40),
        (
            "p = f32[100,8] parameter(0)  i = s32[] parameter(1)  "
            "ROOT r = f32[1,8] dynamic-slice(p, i, i), dynamic_slice_sizes={1,8}",
            0, 32 + 4, 32,
        ),
        (
            "p = f32[1000] parameter(0)  u = f32[4] parameter(1)  i = s32[] parameter(2)  "
            "ROOT r = f32[1000] dynamic-update-slice(p, u, i)",
            0, 16 + 4, 16,
        ),
        ("p = f32[8] parameter(0)  ROOT r = f32[8] add(p, p)", 8, 32, 32),
        ("p = f32[8] parameter(0)  ROOT r = f32[16,8] broadcast(p), dimensions={1}", 0, 32, 512),
        (
            "p = f32[16,8] parameter(0)  z = f32[] constant(0)  "
            "ROOT r = f32[8] reduce(p, z), dimensions={0}, to_apply=add",
            15 * 8, 512 + 4, 32,
        ),
        (
            "p = f32[100,8] parameter(0)  i = s32[5,1] parameter(1)  ROOT r = f32[5,8] gather(p, i), "
            "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
            "slice_sizes={1,8}",
            0, 5 * 8 * 4 + 20, 160,
        ),
        (
            "p = f32[100,8] parameter(0)  i = s32[5,1] parameter(1)  u = f32[5,8] parameter(2)  "
            "ROOT r = f32[100,8] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
            40, 160 + 20 + 160, 160,
        ),
        ("p = f32[0,8] parameter(0)  ROOT r = f32[0,8] negate(p)", 0, 0, 0),
        (
            "p = c64[64] parameter(0)  ROOT r = c64[64] fft(p), fft_type=FFT, fft_length={64}",
            5 * 64 * 6, 512, 512,
        ),
    ],
    ids=["slice", "dynamic-slice", "in place", "one operand twice", "broadcast", "reduce", "gather",
         "scatter", "empty", "fft"],
)  # fmt: skip
def test_one_operation(body: str, flops: float, bytes_read: float, bytes_written: float) -> None:
    cost = entry_cost(body, "r", ADD)
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (flops, bytes_read, bytes_written)


def test_a_sort_costs_its_comparisons_times_the_comparator() -> None:
    less = """less { x = f32[] parameter(0)  y = f32[] parameter(1)  a = f32[] abs(x)
      ROOT r = pred[] compare(a, y), direction=LT }"""
    cost = entry_cost(
        "p = f32[8,100] parameter(0)  ROOT r = f32[8,100] sort(p), dimensions={1}, to_apply=less", "r", less
    )
    assert cost.flops == 2 * 8 * 100 * math.ceil(math.log2(100))


def test_a_fusion_computes_and_reads_only_what_its_outputs_need() -> None:
    cost = entry_cost(
        "p = f32[100] parameter(0)  q = f32[100] parameter(1)  "
        "ROOT f = f32[10] fusion(p, q), kind=kLoop, calls=g",
        "f",
        """g { x = f32[100] parameter(0)  y = f32[100] parameter(1)  a = f32[100] exponential(x)
          unused = f32[100] negate(y)  s = f32[10] slice(a), slice={[0:10]}
          ROOT m = f32[10] multiply(s, s) }""",
    )
    assert cost == Cost(flops=10, transcendentals=10, bytes_read=40, bytes_written=40)


def test_an_update_fused_into_its_buffer_writes_the_update_only() -> None:
    cost = entry_cost(
        "p = f32[1000] parameter(0)  u = f32[4] parameter(1)  i = s32[] parameter(2)  "
        "ROOT f = f32[1000] fusion(p, u, i), kind=kLoop, calls=g",
        "f",
        """g { x = f32[1000] parameter(0)  y = f32[4] parameter(1)  i = s32[] parameter(2)
          n = f32[4] negate(y)  ROOT d = f32[1000] dynamic-update-slice(x, n, i) }""",
    )
    assert cost == Cost(flops=4, bytes_read=16 + 4, bytes_written=16)


def test_an_update_in_a_fusion_of_a_fusion_writes_the_update_only() -> None:
    program = parse("""HloModule m
    inner { x = f32[1000] parameter(0)  y = f32[4] parameter(1)  i = s32[] parameter(2)
      ROOT d = f32[1000] dynamic-update-slice(x, y, i) }
    outer { x = f32[1000] parameter(0)  y = f32[4] parameter(1)  i = s32[] parameter(2)
      ROOT f = f32[1000] fusion(x, y, i), kind=kLoop, calls=inner }
    ENTRY e { x = f32[1000] parameter(0)  y = f32[4] parameter(1)  i = s32[] parameter(2)
      ROOT f = f32[1000] fusion(x, y, i), kind=kLoop, calls=outer }""")
    cost = program_cost(program)
    assert (cost.bytes_read, cost.bytes_written) == (4 * 4 + 4, 4 * 4)


@given(
    size=st.integers(1, 4),
    stride=st.integers(1, 3),
    low=st.integers(-2, 3),
    base_dilation=st.integers(1, 3),
    window_dilation=st.integers(1, 3),
    base=st.integers(0, 9),
    positions=st.integers(0, 6),
)
def test_valid_positions_are_counted_one_by_one(
    size: int, stride: int, low: int, base_dilation: int, window_dilation: int, base: int, positions: int
) -> None:
    places = {k * base_dilation for k in range(base)}
    expected = sum(
        p * stride - low + k * window_dilation in places for p in range(positions) for k in range(size)
    )
    dimension = WindowDimension(
        size=size,
        stride=stride,
        padding_low=low,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    assert valid_positions(dimension, base, positions) == expected


# Agreement with XLA on straight-line programs. Not compared: sorts and padded windows (XLA counts no
# comparator and pretends that padding is combined), loops (counted once), updates (XLA's fusions read the
# whole buffer).

X = np.linspace(0.5, 1.5, 64 * 32, dtype=np.float32).reshape(64, 32)
STRAIGHT = {
    "elementwise": lambda x: jnp.exp(x) * 2 + jnp.where(x > 1, x, -x),
    "dot": lambda x: jnp.tanh(x @ x.T + 1),
    "softmax": lambda x: jax.nn.softmax(x, axis=1),
    "layer norm": lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5),
    "transpose": lambda x: x.T * 3,
    "convolution": lambda x: jax.lax.conv_general_dilated(
        x.reshape(1, 1, 64, 32), jnp.ones((4, 1, 3, 3)), (2, 1), "SAME"
    ),
    "gradient": jax.grad(lambda x: jnp.sum(jnp.sin(x) @ jnp.cos(x).T)),
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_straight_line_programs_agree_with_xla(name: str) -> None:
    executable = jax.jit(STRAIGHT[name]).lower(X).compile()
    theirs, ours = executable.cost_analysis(), program_cost(parse(executable.as_text()))
    assert ours.flops == pytest.approx(theirs.get("flops", 0), rel=0.02, abs=40)
    assert ours.transcendentals == pytest.approx(theirs.get("transcendentals", 0), rel=0.02)
    assert ours.bytes_accessed == pytest.approx(theirs["bytes accessed"], rel=0.02)
