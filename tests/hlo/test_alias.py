"""Overwritten values and schedules that read them too late."""

import random
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelcast.hlo.alias import Hazard, HazardKind, clobbered, hazards
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import Computation, Program
from kernelcast.hlo.text import parse
from kernelcast.hlo.values import resolve
from kernelcast.hlo.xla import text_to_proto
from kernelcast.targets.client import capture, compile_program

X = np.linspace(0.5, 1.5, 64, dtype=np.float32)
M = np.linspace(-0.5, 0.5, 256, dtype=np.float32).reshape(16, 16)
V = np.linspace(1.0, 2.0, 4, dtype=np.float32)


def update(x, v, i):
    return jax.lax.dynamic_update_slice(x, v, (i,))


# Programs of all the kinds that update in place.


def scan_with_updates(x, v):
    def body(state, i):
        x, total = state
        y = jnp.sin(x)
        changed = update(x, v * y[:4], i * 3)
        return (changed, total * changed.sum() * 0.01 + y * jnp.flip(y)), total[0]

    return jax.lax.scan(body, (x, jnp.ones_like(x)), jnp.arange(8))


def two_updates(x, v):
    y = jnp.sin(x)
    first = update(y, v, 2)
    second = update(first, v * first[7], 5)
    return first.sum(), second * 2, y + jnp.flip(first)


def scatters(x, v):
    places = jnp.array([3, 3, 9, 1])
    y = jnp.cos(x)
    return y.at[places].add(v), y.sum() + jnp.flip(y), x.at[places].set(v)


def conditional_in_scan(x, v):
    def body(state, i):
        branches = (lambda x: update(x, v * x[3], i), lambda x: jnp.flip(x) * 1.1)
        return jax.lax.cond(i % 2 == 0, *branches, state), state.sum()

    return jax.lax.scan(body, x, jnp.arange(8))


def swap(x):
    return jax.lax.fori_loop(0, 9, lambda i, c: (c[1], c[0] * 1.1, c[2] + c[0]), (x, x + 1, x * 2))


def rotation(x):
    return jax.lax.fori_loop(0, 7, lambda i, c: (c[1], c[2], jnp.flip(c[0]) + c[1]), (x, x + 1, x * 2))


def nested(m):
    def outer(state, i):
        a, b = state
        a, _ = jax.lax.scan(lambda c, j: (jnp.tanh(c @ b + j).at[j].set(i * 0.1), None), a, jnp.arange(3))
        return (a, b.T * 0.5 + a), a.sum()

    return jax.lax.scan(outer, (m, m * 0.1), jnp.arange(5))


def window(x):
    def body(i, x):
        part = jax.lax.dynamic_slice(x, (i * 4,), (4,))
        return update(x, part * 2 + 1, i * 4)

    return jax.lax.fori_loop(0, 9, body, x)


def unchanged_state(m):
    return jax.lax.fori_loop(0, 5, lambda i, c: (c[0] @ c[1], c[1]), (m, m))


def branches_that_return_what_they_got(m):
    return jax.lax.cond(m[0, 0] > 0, lambda a, b: (a, b), lambda a, b: (b, a.T), m, m * 2), m + 1


def static_window(x):
    return x.at[4:12].multiply(3.0)


def recurrent_gradient(m):
    step = lambda w: lambda h, x: (jnp.tanh(h @ w * 0.1 + x), h)  # noqa: E731
    start, inputs = jnp.ones((4, 16)), jnp.ones((6, 4, 16)) * 0.1
    return jax.value_and_grad(lambda w: jax.lax.scan(step(w), start, inputs)[1].sum())(m)


PROGRAMS: dict[str, tuple[Callable, tuple[np.ndarray, ...]]] = {
    "scan with updates": (scan_with_updates, (X, V)),
    "two updates": (two_updates, (X, V)),
    "scatters": (scatters, (X, V)),
    "conditional in scan": (conditional_in_scan, (X, V)),
    "swap": (swap, (X,)),
    "rotation": (rotation, (X,)),
    "nested": (nested, (M,)),
    "window": (window, (X,)),
    "unchanged state": (unchanged_state, (M,)),
    "branches": (branches_that_return_what_they_got, (M,)),
    "static window": (static_window, (X,)),
    "recurrent gradient": (recurrent_gradient, (M,)),
}


def compiled(function: Callable, *arguments, **options) -> Program:
    return parse(jax.jit(function, **options).lower(*arguments).compile().as_text())


@pytest.mark.parametrize("donated", [False, True], ids=["kept", "donated"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_compiler_made_has_no_hazard(name: str, donated: bool) -> None:
    function, arguments = PROGRAMS[name]
    program = compiled(function, *arguments, donate_argnums=0 if donated else ())
    assert hazards(program) == ()


# Wrong orders made by hand.

UPDATE = "f32[4] parameter(1)  i = s32[] parameter(2)"


def entry(body: str, header: str = "", others: str = "") -> Program:
    return parse(f"HloModule m, is_scheduled=true{header}\n{others}\nENTRY e {{ {body} }}")


def kinds(program: Program) -> list[tuple[HazardKind, str]]:
    return [(hazard.kind, hazard.instruction) for hazard in hazards(program)]


def test_a_read_after_an_update() -> None:
    body = (
        "x = f32[64] parameter(0)  u = {}  y = f32[64] sine(x)  d = f32[64] dynamic-update-slice(y, u, i)  {}"
    )
    late = "z = f32[64] negate(y)  ROOT t = (f32[64], f32[64]) tuple(d, z)"
    (hazard,) = hazards(entry(body.format(UPDATE, late)))
    assert hazard == Hazard(
        kind=HazardKind.READ_LATE, computation="e", instruction="z", value=("y", ()), writer="d"
    )
    assert str(hazard) == "computation e, %z: reads %y after %d has overwritten its buffer; copy %y first"
    early = body.replace("d = f32", "z = f32[64] negate(y)  d = f32", 1)
    assert hazards(entry(early.format(UPDATE, "ROOT t = (f32[64], f32[64]) tuple(d, z)"))) == ()


def test_a_result_that_was_overwritten() -> None:
    body = (
        "x = f32[64] parameter(0)  u = {}  y = f32[64] sine(x)  d = f32[64] dynamic-update-slice(y, u, i)  "
    )
    body += "ROOT t = (f32[64], f32[64]) tuple(d, y)"
    assert kinds(entry(body.format(UPDATE))) == [(HazardKind.LIVE_OUT, "t")]


def test_parameters_are_written_only_where_they_are_donated() -> None:
    body = f"x = f32[64] parameter(0)  u = {UPDATE}  ROOT d = f32[64] dynamic-update-slice(x, u, i)"
    assert kinds(entry(body)) == [(HazardKind.READ_ONLY, "d")]
    assert kinds(entry(body, ", input_output_alias={ {}: (0, {}, may-alias) }")) == []


def test_a_donated_parameter_is_not_read_after_its_output() -> None:
    body = "x = f32[8] parameter(0)  y = f32[8] sine(x)  z = f32[8] reverse(x), dimensions={0}  "
    body += "ROOT t = (f32[8], f32[8]) tuple(y, z)"
    assert kinds(entry(body)) == []
    alias = ", input_output_alias={ {0}: (0, {}, may-alias) }"
    assert kinds(entry(body, alias)) == [(HazardKind.READ_LATE, "z")]
    # The kernel that writes the buffer may read it element by element only.
    alias = ", input_output_alias={ {1}: (0, {}, may-alias) }"
    assert kinds(entry(body, alias)) == [(HazardKind.READ_IN_SAME_KERNEL, "z")]


FUSED = """f { p = f32[64] parameter(0)  q = f32[64] parameter(1)  i = s32[] parameter(2)
  n = f32[64] negate(%s)  s = f32[4] %s
  ROOT d = f32[64] dynamic-update-slice(p, s, i) }"""
IN_FUSION = """x = f32[64] parameter(0)  i = s32[] parameter(1)  y = f32[64] sine(x)  z = f32[64] cosine(x)
  ROOT r = f32[64] fusion(y, %s, i), kind=kLoop, calls=f"""


@pytest.mark.parametrize(
    ("read", "piece", "operand", "expected"),
    [
        ("q", "slice(n), slice={[0:4]}", "z", []),
        ("p", "slice(n), slice={[0:4]}", "z", [HazardKind.READ_IN_SAME_KERNEL]),
        ("q", "slice(n), slice={[0:4]}", "y", [HazardKind.READ_IN_SAME_KERNEL]),
        ("q", "dynamic-slice(p, i), dynamic_slice_sizes={4}", "z", []),  # just the updated window
    ],
    ids=["another value", "the same parameter", "the same value twice", "the window itself"],
)
def test_a_kernel_that_updates_what_it_reads(
    read: str, piece: str, operand: str, expected: list[HazardKind]
) -> None:
    program = entry(IN_FUSION % operand, others=FUSED % (read, piece))
    assert [hazard.kind for hazard in hazards(program)] == expected


LOOP = """HloModule m, is_scheduled=true
body {{ p = (s32[], f32[8]) parameter(0)  one = s32[] constant(1)  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1  {body}
  ROOT t = (s32[], f32[8]) tuple(j, y) }}
cond {{ p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }}
ENTRY e {{ zero = s32[] constant(0)  start = s32[] copy(zero)  a = f32[8] parameter(0)  b = f32[8] {start}
  t = (s32[], f32[8]) tuple(start, b)  w = (s32[], f32[8]) while(t), condition=cond, body=body
  x = f32[8] get-tuple-element(w), index=1  {after} }}
"""
COUNT = "j = s32[] add(i, one)  "


def loop(
    body: str, *, start: str = "copy(a)", after: str = "ROOT r = f32[8] negate(x)"
) -> list[tuple[HazardKind, str]]:
    return kinds(parse(LOOP.format(body=body, start=start, after=after)))


def test_loop_state_is_read_before_it_is_written_anew() -> None:
    assert loop(COUNT + "y = f32[8] sine(x)") == []
    assert loop("z = f32[8] reverse(x), dimensions={0}  y = f32[8] add(z, z)  " + COUNT) == []
    late = COUNT + "q = f32[8] cosine(x)  y = f32[8] sine(x)  z = f32[8] negate(x)"
    assert loop(late) == [(HazardKind.STATE_LATE, "z")]
    assert loop(COUNT + "y = f32[8] reverse(x), dimensions={0}") == [(HazardKind.STATE_IN_SAME_KERNEL, "y")]


def test_the_start_of_a_loop_is_gone_after_it() -> None:
    after = "ROOT r = f32[8] add(x, b)"
    assert loop(COUNT + "y = f32[8] sine(x)", after=after) == [(HazardKind.READ_LATE, "r")]
    # A state element that the body hands on stays what it was.
    assert loop(COUNT + "y = f32[8] bitcast(x)", after=after) == []


def test_a_loop_may_not_start_at_an_argument_that_it_changes() -> None:
    assert loop(COUNT + "y = f32[8] sine(x)", start="bitcast(a)") == [(HazardKind.READ_ONLY, "y")]


def test_an_operand_is_clobbered_by_a_branch_that_updates_it() -> None:
    others = """one { p = (f32[64], f32[4]) parameter(0)  x = f32[64] get-tuple-element(p), index=0
      u = f32[4] get-tuple-element(p), index=1  i = s32[] constant(3)
      ROOT d = f32[64] dynamic-update-slice(x, u, i) }
    two { ROOT p = f32[64] parameter(0) }"""
    body = """x = f32[64] parameter(0)  u = f32[4] parameter(1)  b = pred[] parameter(2)  y = f32[64] sine(x)
      t = (f32[64], f32[4]) tuple(y, u)
      c = f32[64] conditional(b, t, y), true_computation=one, false_computation=two
      ROOT r = f32[64] %s"""
    assert kinds(entry(body % "negate(c)", others=others)) == []
    program = entry(body % "add(c, y)", others=others)
    assert kinds(program) == [(HazardKind.READ_LATE, "r")]
    assert clobbered(program)["e"] == {("y", ()): ("c",)}


def test_aliases_that_a_call_declares() -> None:
    body = """x = f32[8] parameter(0)  y = f32[8] sine(x)
      c = (f32[4], f32[8]) custom-call(y), custom_call_target="t", output_to_operand_aliasing={{1}: (0, {})}
      g = f32[8] get-tuple-element(c), index=1  ROOT r = f32[8] add(g, %s)"""
    assert kinds(entry(body % "g")) == []
    assert kinds(entry(body % "y")) == [(HazardKind.READ_LATE, "r")]


def test_an_asynchronous_call_updates_its_operand() -> None:
    others = """job { x = f32[64] parameter(0)  u = f32[4] parameter(1)  i = s32[] constant(3)
      ROOT d = f32[64] dynamic-update-slice(x, u, i) }"""
    body = """x = f32[64] parameter(0)  u = f32[4] parameter(1)  y = f32[64] sine(x)
      a = ((f32[64], f32[4]), f32[64], s32[]) async-start(y, u), calls=job
      b = f32[64] async-done(a)  ROOT r = f32[64] add(b, %s)"""
    assert kinds(entry(body % "b", others=others)) == []
    program = entry(body % "y", others=others)
    assert kinds(program) == [(HazardKind.READ_LATE, "r")]
    assert clobbered(program)["e"] == {("y", ()): ("a",)}


# Clobbered values, without regard to order.


def test_clobbered_values_of_an_update() -> None:
    body = f"""x = f32[64] parameter(0)  u = {UPDATE}  y = f32[64] sine(x)  v = f32[8,8] bitcast(y)
      w = f32[64] bitcast(v)  before = f32[64] negate(y)  a = f32[64] dynamic-update-slice(w, u, i)
      ROOT b = f32[64] dynamic-update-slice(a, u, i)"""
    program = entry(body)
    assert resolve(program.entry_computation, "w") == ("y", ())
    assert clobbered(program) == {"e": {("y", ()): ("a", "b"), ("a", ()): ("b",)}}


def test_clobbered_loop_state_and_start() -> None:
    program = parse(
        LOOP.format(body=COUNT + "y = f32[8] sine(x)", start="copy(a)", after="ROOT r = f32[8] negate(x)")
    )
    found = clobbered(program)
    assert found["body"] == {("p", (0,)): ("j",), ("p", (1,)): ("y",)}
    assert found["e"] == {("start", ()): ("w",), ("b", ()): ("w",)}
    assert found["cond"] == {}


def test_a_program_without_updates_clobbers_nothing() -> None:
    found = clobbered(compiled(lambda m: jax.nn.softmax(m @ m), M))
    assert all(not values for values in found.values())


# Property: a schedule without hazards computes what the compiler's does.


def shuffled(computation: Computation, random: random.Random) -> Computation:
    """Another order that respects data flow only, and some copies left out."""
    source = {
        i.name: i.operands[0]
        for i in computation
        if i.opcode == "copy" and computation[i.operands[0]].shape == i.shape and random.random() < 0.3
    }
    instructions = []
    for i in computation:
        operands = list(i.operands)
        for number, operand in enumerate(operands):
            while operand in source and random.random() < 0.8:
                operand = source[operand]
            operands[number] = operand
        instructions.append(replace(i, operands=tuple(operands)).with_attribute("control-predecessors", None))
    by_name = {i.name: i for i in instructions}
    waiting = {i.name: len(set(i.operands)) for i in instructions}
    ready = [name for name, count in waiting.items() if not count]
    order = []
    while ready:
        name = ready.pop(random.randrange(len(ready)))
        order.append(by_name[name])
        for user in instructions:
            if name in user.operands:
                waiting[user.name] -= 1
                if not waiting[user.name]:
                    ready.append(user.name)
    return replace(computation, instructions=tuple(order))


def mutated(program: Program, random: random.Random) -> Program:
    scheduled = {c.name for c in program.scheduled_computations()}
    return replace(
        program,
        computations=tuple(
            shuffled(c, random) if c.name in scheduled and random.random() < 0.5 else c
            for c in program.computations
        ),
    )


@pytest.mark.parametrize(
    "name", ["scan with updates", "scatters", "conditional in scan", "rotation", "nested"]
)
def test_a_schedule_without_hazards_is_right(name: str) -> None:

    function, arguments = PROGRAMS[name]
    stablehlo = jax.jit(function, keep_unused=True).lower(*arguments).as_text()
    inputs = [jnp.asarray(a) for a in arguments]
    expected = [np.asarray(o) for o in compile_program(stablehlo).execute(inputs)]
    original = parse(capture(stablehlo))
    programs = [mutated(original, random.Random(seed)) for seed in range(10)]
    # One that would be wrong, and might never end, is not run.
    clean = [program for program in programs if not hazards(program)]
    assert 0 < len(clean) < len(programs)
    for program in clean[:4]:
        imposed = text_to_proto(format_program(program))
        executable = compile_program(stablehlo, transform=lambda _, imposed=imposed: imposed)
        for _ in range(2):  # a constant that was overwritten shows in the second run
            for output, wanted in zip(executable.execute(inputs), expected, strict=True):
                np.testing.assert_allclose(np.asarray(output), wanted, rtol=1e-4, atol=1e-6)
