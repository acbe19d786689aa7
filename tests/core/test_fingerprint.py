"""Canonical kernels: equal for equal work, different where plans differ."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.core.fingerprint import canonical_program, digest, skeleton_text
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.text import parse

LOOP = """HloModule m

%fused (a: f32[4,8], b: f32[4,8]) -> f32[4,8] {
  %b = f32[4,8]{1,0} parameter(1)
  %a = f32[4,8]{1,0} parameter(0)
  %sum = f32[4,8]{1,0} add(%b, %a)
  %unused = f32[4,8]{1,0} negate(%a)
  ROOT %tanh = f32[4,8]{1,0} tanh(%sum), metadata={op_name="x"}
}

ENTRY %main (x: f32[4,8], y: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0)
  %y = f32[4,8]{1,0} parameter(1)
  ROOT %f = f32[4,8]{1,0} fusion(%x, %y), kind=kLoop, calls=%fused, backend_config={"known":1}
}
"""

CANONICAL_LOOP = """HloModule kernel

%c0 {
  %v0 = f32[4,8]{1,0} parameter(0)
  %v1 = f32[4,8]{1,0} parameter(1)
  %v2 = f32[4,8]{1,0} add(%v0, %v1)
  ROOT %v3 = f32[4,8]{1,0} tanh(%v2)
}

ENTRY %kernel {
  %v0 = f32[4,8]{1,0} parameter(0)
  %v1 = f32[4,8]{1,0} parameter(1)
  ROOT %v2 = f32[4,8]{1,0} fusion(%v0, %v1), calls=%c0, kind=kLoop
}
"""


def canonical_text(text: str, aliases: tuple[tuple[int, int], ...] = ()) -> str:
    return format_program(canonical_program(parse(text), aliases))


def test_canonical_form_by_hand():
    assert canonical_text(LOOP).strip() == CANONICAL_LOOP.strip()


def test_canonical_form_is_a_fixed_point():
    assert canonical_text(CANONICAL_LOOP) == canonical_text(LOOP)


def test_aliases_follow_their_parameters():
    # %y, parameter 1, is met first inside the fusion and becomes parameter 0.
    assert parse(canonical_text(LOOP, ((0, 1),))).aliases[0].parameter == 0
    assert canonical_text(LOOP, ((0, 1),)) != canonical_text(LOOP, ((0, 0),))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f32[4,8]{1,0}", "f32[4,8]{0,1}"),  # layout
        ("f32[4,8]{1,0}", "f32[4,8]{1,0:S(1)}"),  # memory space
        ("f32[4,8]{1,0}", "f32[4,8]{1,0:T(8,128)}"),  # tiling
        ("kind=kLoop", "kind=kOutput"),
        ('{"known":1}', '{"fusion_config":{"kind":"__ynn_fusion"}}'),
        ("add(%b, %a)", "add(%a, %a)"),
    ],
)
def test_what_changes_the_code_changes_the_text(old: str, new: str):
    assert canonical_text(LOOP.replace(old, new)) != canonical_text(LOOP)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (', metadata={op_name="x"}', ""),
        ('{"known":1}', '{"known":2}'),
        ("fusion(%x, %y)", "fusion(%x, %y), sharding={replicated}"),
        ("HloModule m", "HloModule other"),
        ("  %unused = f32[4,8]{1,0} negate(%a)\n", ""),
    ],
)
def test_what_does_not_change_the_code_does_not_change_the_text(old: str, new: str):
    assert old in LOOP
    assert canonical_text(LOOP.replace(old, new)) == canonical_text(LOOP)


ONE_COPY = """HloModule m

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %f = f32[4]{0} tanh(%x)
  ROOT %r = f32[4]{0} add(%f, %f)
}
"""


def test_one_and_two_copies_of_a_producer_differ():
    two = ONE_COPY.replace("add(%f, %f)", "add(%f, %g)").replace(
        "  ROOT", "  %g = f32[4]{0} tanh(%x)\n  ROOT"
    )
    assert canonical_text(ONE_COPY) != canonical_text(two)


def test_reducers_keep_their_parameter_numbers():
    text = """HloModule m

%second (a: f32[], b: f32[]) -> f32[] {
  %b = f32[] parameter(1)
  ROOT %a = f32[] parameter(0)
}

%first (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %b = f32[] parameter(1)
}

ENTRY %main (x: f32[4]) -> f32[] {
  %x = f32[4]{0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[] reduce(%x, %zero), dimensions={0}, to_apply=%second
}
"""
    assert canonical_text(text) != canonical_text(text.replace("to_apply=%second", "to_apply=%first"))


def test_equal_called_computations_become_one():
    text = """HloModule m

%a (p: f32[], q: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %s = f32[] add(%p, %q)
}

%b (u: f32[], v: f32[]) -> f32[] {
  %u = f32[] parameter(0)
  %v = f32[] parameter(1)
  ROOT %w = f32[] add(%u, %v)
}

ENTRY %main (x: f32[4,4]) -> f32[] {
  %x = f32[4,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %r = f32[4]{0} reduce(%x, %zero), dimensions={0}, to_apply=%a
  ROOT %s = f32[] reduce(%r, %zero), dimensions={0}, to_apply=%b
}
"""
    assert len(canonical_program(parse(text)).computations) == 2


def test_skeleton_forgets_sizes_but_not_ranks_or_dimension_numbers():
    def skeleton(text: str) -> str:
        return skeleton_text(canonical_program(parse(text)))

    assert skeleton(LOOP) == skeleton(LOOP.replace("[4,8]", "[16,3]"))
    assert skeleton(LOOP) != skeleton(LOOP.replace("[4,8]{1,0}", "[4,8]{0,1}"))
    assert skeleton(LOOP) != skeleton(LOOP.replace("[4,8]{1,0}", "[4]{0}"))
    assert skeleton(LOOP) != skeleton(LOOP.replace("f32", "bf16"))


def test_digest_is_32_hexadecimal_digits_of_the_text():
    assert digest("a") != digest("b")
    assert len(digest("a")) == 32


def shuffled(program: Program, seed: int) -> Program:
    """The same program with other names and another valid order."""
    rng = random.Random(seed)
    computations: list[Computation] = []
    for computation in program.computations:
        left, placed, order = list(computation.instructions), set[str](), list[Instruction]()
        while left:
            ready = [i for i in left if all(o in placed for o in i.operands)]
            chosen = rng.choice(ready)
            left.remove(chosen)
            placed.add(chosen.name)
            order.append(chosen)
        names = {i.name: f"n{rng.randrange(10**9)}.{k}" for k, i in enumerate(order)}
        computations.append(
            Computation(
                name=computation.name,
                root=names[computation.root],
                instructions=tuple(
                    replace(i, name=names[i.name], operands=tuple(names[o] for o in i.operands))
                    for i in order
                ),
            )
        )
    return replace(program, computations=tuple(computations))


@st.composite
def straight_line_programs(draw: st.DrawFn) -> Program:
    lines = ["%p0 = f32[4]{0} parameter(0)", "%p1 = f32[4]{0} parameter(1)"]
    names = ["p0", "p1"]
    for index in range(draw(st.integers(1, 12))):
        opcode, arity = draw(st.sampled_from([("tanh", 1), ("negate", 1), ("add", 2), ("multiply", 2)]))
        operands = ", ".join(f"%{draw(st.sampled_from(names))}" for _ in range(arity))
        lines.append(f"%i{index} = f32[4]{{0}} {opcode}({operands})")
        names.append(f"i{index}")
    lines[-1] = "ROOT " + lines[-1]
    body = "\n  ".join(lines)
    return parse(f"HloModule m\n\nENTRY %main (p0: f32[4], p1: f32[4]) -> f32[4] {{\n  {body}\n}}\n")


@given(straight_line_programs(), st.integers(0, 10**6))
def test_renaming_and_reordering_change_nothing(program: Program, seed: int):
    canonical = canonical_program(program)
    assert canonical_program(shuffled(program, seed)) == canonical
    assert canonical_program(canonical) == canonical
    assert parse(format_program(canonical)) == canonical


def test_called_computations_are_numbered_in_the_order_of_the_canonical_text():
    text = """HloModule m

%yes (a: f32[4]) -> f32[4] {
  ROOT %a = f32[4]{0} parameter(0)
}

%no (b: f32[4]) -> f32[4] {
  %b = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%b)
}

ENTRY %main (p: pred[], x: f32[4]) -> f32[4] {
  %p = pred[] parameter(0)
  %x = f32[4]{0} parameter(1)
  ROOT %c = f32[4]{0} conditional(%p, %x, %x), true_computation=%yes, false_computation=%no
}
"""
    assert canonical_text(canonical_text(text)) == canonical_text(text)
