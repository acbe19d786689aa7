"""Random programs, fused at random, taken apart, fused again: the values stay what they were."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.fusion.apply import apply
from kernelcast.fusion.decompose import decompose
from kernelcast.fusion.rebind import rebind
from kernelcast.fusion.sample import random_plan
from kernelcast.fusion.space import default, space_of
from kernelcast.hlo.alias import hazards
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import Computation, Program
from kernelcast.hlo.text import parse

UNARY = {"tanh": np.tanh, "negate": np.negative, "reverse": lambda x: x[::-1], "copy": lambda x: x}
BINARY = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum}


def values(program: Program, computation: Computation, arguments: list[np.ndarray]) -> object:
    """What a computation returns: an array, or a tuple of them."""
    known: dict[str, object] = {}
    for i in computation:
        operands = [known[name] for name in i.operands]
        if i.parameter_number is not None:
            known[i.name] = arguments[i.parameter_number]
        elif i.opcode == "constant":
            known[i.name] = np.float64(i.literal or "0")
        elif i.opcode == "broadcast":
            known[i.name] = np.broadcast_to(operands[0], i.shape.dimensions)
        elif i.opcode == "dynamic-update-slice":
            updated = np.array(operands[0])
            updated[: len(operands[1])] = operands[1]  # the start is always 0 here
            known[i.name] = updated
        elif i.opcode == "slice":
            known[i.name] = operands[0][: i.shape.dimensions[0]]
        elif i.opcode == "fusion":
            known[i.name] = values(program, program[i.called[0]], operands)
        elif i.opcode == "tuple":
            known[i.name] = tuple(operands)
        elif i.opcode == "get-tuple-element":
            known[i.name] = operands[0][int(i.attribute("index") or 0)]
        elif i.opcode in UNARY:
            known[i.name] = UNARY[i.opcode](operands[0])
        else:
            known[i.name] = BINARY[i.opcode](*operands)
    return known[computation.root]


@st.composite
def scheduled_programs(draw: st.DrawFn) -> Program:
    """A chain of operations on vectors, with an in-place update now and then; several results."""
    lines = [
        "%p0 = f32[6]{0} parameter(0)",
        "%p1 = f32[6]{0} parameter(1)",
        "%zero = s32[] constant(0)",
        "%half = f32[] constant(0.5)",
    ]
    names = ["p0", "p1"]
    for index in range(draw(st.integers(2, 14))):
        name = f"i{index}"
        kind = draw(st.sampled_from(["unary", "unary", "binary", "binary", "broadcast", "update"]))
        one, two = (draw(st.sampled_from(names)) for _ in range(2))
        if kind == "unary":
            opcode = draw(st.sampled_from(["tanh", "negate", "reverse"]))
            lines.append(
                f"%{name} = f32[6]{{0}} {opcode}(%{one}){', dimensions={0}' * (opcode == 'reverse')}"
            )
        elif kind == "binary":
            lines.append(f"%{name} = f32[6]{{0}} {draw(st.sampled_from(sorted(BINARY)))}(%{one}, %{two})")
        elif kind == "broadcast":
            lines.append(f"%{name} = f32[6]{{0}} broadcast(%half), dimensions={{}}")
        else:
            # A fresh copy, as copy insertion would make, is what is updated.
            lines.append(f"%{name}.copy = f32[6]{{0}} copy(%{one})")
            lines.append(f"%{name}.slice = f32[2]{{0}} slice(%{two}), slice={{[0:2]}}")
            lines.append(f"%{name} = f32[6]{{0}} dynamic-update-slice(%{name}.copy, %{name}.slice, %zero)")
        names.append(name)
    results = draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    used = {word.strip("%,()") for line in lines for word in line.split("=", 1)[1].split()}
    loose = [name for name in names[2:] if name not in {u.rstrip(")") for u in used} and name not in results]
    results += loose
    shape = ", ".join("f32[6]{0}" for _ in results)
    lines.append(f"ROOT %t = ({shape}) tuple({', '.join(f'%{r}' for r in results)})")
    body = "\n  ".join(lines)
    return parse(f"HloModule m, is_scheduled=true\n\nENTRY %main {{\n  {body}\n}}\n")


@settings(max_examples=150, deadline=None)
@given(scheduled_programs(), st.integers(0, 2**32))
def test_plans_keep_values_and_modules_come_back(program: Program, seed: int):
    rng = random.Random(seed)
    arguments = [np.array([0.3, -1.2, 0.8, 2.0, -0.4, 0.1]), np.array([1.1, 0.2, -0.7, 0.5, 1.9, -2.2])]
    wanted = values(program, program.entry_computation, arguments)
    space = space_of(program)
    plan = random_plan(space, rng)
    fused = apply(space, plan)
    np.testing.assert_allclose(values(fused, fused.entry_computation, arguments), wanted)
    assert hazards(fused) == ()
    assert len(decompose(fused).calls) == len(space.groups(plan))

    # What a plan made is a final module too: its own default gives it back, and it can be fused otherwise.
    again = space_of(fused)
    assert format_program(apply(again, default(again))) == format_program(fused)
    other = apply(again, random_plan(again, rng))
    np.testing.assert_allclose(values(other, other.entry_computation, arguments), wanted)
    assert rebind(again, default(again), again) == (default(again), 1.0)
