"""How often loops run: worked out, known, or a stated assumption."""

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.hlo.program import Program
from kernelcast.hlo.text import parse
from kernelcast.hlo.trips import ASSUMED_TRIPS, ONCE, Source, TripCount, execution_counts, trip_count

COUNTED = """HloModule m
body {{ p = (s32[], f32[4], s32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1  n = s32[] get-tuple-element(p), index=2
  step = s32[] constant({step})  j = s32[] {operation}(i, step)  y = f32[4] negate(x)
  ROOT t = (s32[], f32[4], s32[]) tuple(j, y, n) }}
cond {{ p = (s32[], f32[4], s32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  bound = s32[] {bound}
  ROOT r = pred[] compare({sides}), direction={direction} }}
ENTRY e {{ start = s32[] constant({start})  x = f32[4] parameter(0)  limit = s32[] {limit}
  t = (s32[], f32[4], s32[]) tuple(start, x, limit)
  ROOT w = (s32[], f32[4], s32[]) while(t), condition=cond, body=body }}
"""


def counted(
    *,
    start: int = 0,
    step: int = 1,
    bound: str = "constant(7)",
    direction: str = "LT",
    operation: str = "add",
    sides: str = "i, bound",
    limit: str = "constant(9)",
) -> Program:
    return parse(
        COUNTED.format(
            start=start,
            step=step,
            bound=bound,
            direction=direction,
            operation=operation,
            sides=sides,
            limit=limit,
        )
    )


def trips_of(program: Program) -> TripCount:
    return trip_count(program, program.entry_computation["w"], program.entry_computation)


def simulated(start: int, step: int, bound: int, direction: str, limit: int = 200) -> int | None:
    tests = {
        "LT": lambda i: i < bound,
        "LE": lambda i: i <= bound,
        "GT": lambda i: i > bound,
        "GE": lambda i: i >= bound,
        "NE": lambda i: i != bound,
        "EQ": lambda i: i == bound,
    }
    for runs in range(limit):
        if not tests[direction](start + runs * step):
            return runs
    return None


@given(
    st.integers(-20, 20),
    st.integers(-5, 5),
    st.integers(-20, 20),
    st.sampled_from(["LT", "LE", "GT", "GE", "NE", "EQ"]),
)
def test_a_counted_loop_runs_as_often_as_its_counter_says(
    start: int, step: int, bound: int, direction: str
) -> None:
    program = counted(start=start, step=step, bound=f"constant({bound})", direction=direction)
    expected = simulated(start, step, bound, direction)
    found = trips_of(program)
    if expected is None:  # would only end when the counter wraps around
        assert found.source is Source.ASSUMED
    else:
        assert found == TripCount(value=expected, source=Source.EXACT)


def test_sides_subtraction_and_invariant_bounds_are_followed() -> None:
    assert trips_of(counted(sides="bound, i", direction="GT")).value == 7
    assert trips_of(counted(operation="subtract", step=-2)).value == 4
    assert trips_of(counted(bound="get-tuple-element(p), index=2")).value == 9


@pytest.mark.parametrize(
    "changes",
    [
        {"limit": "parameter(1)", "bound": "get-tuple-element(p), index=2"},
        {"operation": "multiply"},
        {"step": 0},
        {"bound": f"constant({2**31 - 1})", "direction": "LE"},
        {"bound": f"constant({2**31 - 1})", "step": 1000},
    ],
    ids=["bound is an argument", "no addition", "no progress", "wraps at the end", "wraps beyond the end"],
)
def test_what_is_not_counted_is_a_stated_assumption(changes: dict[str, str]) -> None:
    program = counted(**changes)  # pyright: ignore[reportArgumentType]
    assert trips_of(program) == TripCount(value=ASSUMED_TRIPS, source=Source.ASSUMED)
    stated = trip_count(program, program.entry_computation["w"], program.entry_computation, assumed=3.0)
    assert stated == TripCount(value=3.0, source=Source.ASSUMED)


def test_the_compilers_own_count_is_believed_first() -> None:
    program = counted()
    loop = program.entry_computation["w"].with_attribute("backend_config", '{"known_trip_count":{"n":"12"}}')
    assert trip_count(program, loop, program.entry_computation) == TripCount(value=12, source=Source.KNOWN)


def compiled(function, *arguments) -> Program:
    return parse(jax.jit(function).lower(*arguments).compile().as_text())


def test_optimised_loops_are_worked_out_as_the_compiler_does() -> None:
    def nested(x):
        def outer(c, _):
            c = jax.lax.fori_loop(2, 9, lambda i, c: jnp.sin(c) + i, c)
            return c * 2, None

        return jax.lax.scan(outer, x, None, length=5)[0]

    program = compiled(nested, jnp.ones(8))
    loops = [(c, i) for c in program.computations for i in c if i.opcode == "while"]
    assert len(loops) == 2
    for computation, loop in loops:
        known = trip_count(program, loop, computation)
        exact = trip_count(program, loop.with_attribute("backend_config", None), computation)
        assert known.source is Source.KNOWN
        assert exact == TripCount(value=known.value, source=Source.EXACT)


def test_counts_of_nested_loops_multiply_and_conditions_run_once_more() -> None:
    def nested(x):
        step = lambda c, _: (jnp.tanh(c @ c), None)  # noqa: E731
        outer = lambda c, _: (jax.lax.scan(step, jnp.sin(c), None, length=7)[0], None)  # noqa: E731
        return jax.lax.scan(outer, x, None, length=5)[0]

    program = compiled(nested, jnp.ones((16, 16)))
    counts = execution_counts(program)
    assert counts[program.entry] == ONCE
    assert sorted(count.value for count in counts.values()) == [1, 5, 6, 35, 40]


def test_branches_share_their_conditional() -> None:
    program = compiled(
        lambda b, x: jax.lax.cond(b, jnp.sin, lambda x: x @ x, x), jnp.array(True), jnp.ones((8, 8))
    )
    counts = execution_counts(program)
    branches = [
        counts[name] for i in program.entry_computation if i.opcode == "conditional" for name in i.called
    ]
    assert branches == [TripCount(value=0.5, source=Source.ASSUMED)] * 2


def test_products_and_sums_are_as_sure_as_their_weakest_part() -> None:
    assert (TripCount(value=2, source=Source.KNOWN) * TripCount(value=3, source=Source.ASSUMED)) == TripCount(
        value=6, source=Source.ASSUMED
    )
    assert (ONCE + TripCount(value=3, source=Source.MEASURED)).source is Source.MEASURED


def test_a_negative_or_infinite_count_cannot_be_made() -> None:
    for value in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="finite and >= 0"):
            TripCount(value=value, source=Source.KNOWN)
