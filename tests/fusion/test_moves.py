"""Moves and samples on the spaces of real programs."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernelcast.errors import PlanError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.decompose import Site, decompose
from kernelcast.fusion.grouping import active, settle
from kernelcast.fusion.moves import (
    Extensions,
    IllegalMoveError,
    apply_move,
    flip,
    flip_region,
    merge,
    random_step,
    revert,
    set_inputs,
    set_uses,
    split_group,
)
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.rebind import rebind
from kernelcast.fusion.sample import all_fused, random_plan, sample
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.text import parse

Spaces = dict[str, FusionSpace]
EDGES_ONLY = Extensions(regions=False, groups=False, emissions=False)


def test_moves_are_reversible_and_name_the_kernels_that_change(spaces: Spaces):
    moved = 0
    for name, space in spaces.items():
        rng, plan = random.Random(name), default(space)
        for _ in range(40):
            result = random_step(space, plan, rng)
            if result is None:
                continue
            before, after = set(space.groups(plan)), set(space.groups(result.plan))
            assert set(result.removed) == before - after, (name, result.move)
            assert set(result.added) == after - before, (name, result.move)
            back = apply_move(space, result.plan, result.inverse)
            assert back.plan == plan
            assert (back.removed, back.added) == (result.added, result.removed)
            plan, moved = result.plan, moved + 1
    assert moved > 600


def test_plans_after_moves_are_in_normal_form(spaces: Spaces):
    for name, space in spaces.items():
        rng, plan = random.Random(name), unfused(space)
        for _ in range(20):
            step = random_step(space, plan, rng)
            plan = plan if step is None else step.plan
        space.check(plan)
        for number, table in enumerate(space.tables):
            # What a chain of moves remembers is what a fresh look finds.
            remembered = space.settled(plan, number)
            meaning = active(table, plan.loops)
            assert remembered == settle(table, remembered.fused, meaning, remembered.together)


def test_the_same_seed_gives_the_same_plans(spaces: Spaces):
    space = spaces["attention"]
    again = space_of(space.original)
    assert sample(space, random.Random(3), 8) == sample(again, random.Random(3), 8)


def test_another_process_draws_the_same_plans(imposed: tuple[Path, list[dict[str, Any]]]):
    script = (
        "import random, sys\n"
        "from kernelcast.core.fingerprint import digest\n"
        "from kernelcast.fusion.apply import apply\n"
        "from kernelcast.fusion.sample import sample\n"
        "from kernelcast.fusion.space import space_of\n"
        "from kernelcast.hlo.format import format_program\n"
        "from kernelcast.hlo.text import parse\n"
        "space = space_of(parse(open(sys.argv[1]).read()))\n"
        "plans = sample(space, random.Random(0), 5)\n"
        "print([plan.encode() for plan in plans], [digest(format_program(apply(space, p))) for p in plans])\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script, str(imposed[0] / "nested_loops.hlo")],
            env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(printed) == 1


def test_samples_are_distinct_legal_and_diverse(spaces: Spaces):
    space = spaces["attention"]
    plans = sample(space, random.Random(0), 40)
    assert len(set(plans)) == len(plans) == 40
    assert all(not list(space.illegal_kernels(plan)) for plan in plans)
    kernels = [len(space.groups(plan)) for plan in plans]
    assert max(kernels) >= 2 * min(kernels)
    assert any(plan.loops for plan in plans)
    assert any(plan.groups for plan in plans)


def test_extensions_can_be_switched_off(spaces: Spaces):
    for space in spaces.values():
        for plan in sample(space, random.Random(1), 4, extensions=EDGES_ONLY):
            assert (plan.loops, plan.groups, plan.settings) == (0, (), ())


def test_a_small_space_gives_what_it_has(spaces: Spaces):
    plans = sample(spaces["nothing_much"], random.Random(0), 5, extensions=EDGES_ONLY)
    assert plans == [default(spaces["nothing_much"])]


def test_the_decomposition_of_the_module_is_what_the_plan_says(spaces: Spaces):
    for name in ("attention", "nested_loops", "branches_in_loop", "embedding_step", "sorting"):
        space = spaces[name]
        for plan in (default(space), unfused(space), all_fused(space), random_plan(space, random.Random(2))):
            found = Counter((c.kernel.text, c.times.value) for c in decompose(apply(space, plan)).calls)
            said = Counter((space.kernel(g).text, space.multiplicity(g).value) for g in space.groups(plan))
            assert found == said, name


def test_overhead_sites_are_counted_with_their_loops(spaces: Spaces):
    overheads = decompose(spaces["nested_loops"].original).overheads
    assert overheads[Site.LOOP_ITERATION].value == 4 + 4 * 3
    assert Site.CONDITIONAL in decompose(spaces["branches"].original).overheads


def test_rebinding_to_the_same_program_changes_nothing(spaces: Spaces):
    for space in spaces.values():
        plan = random_plan(space, random.Random(4))
        assert rebind(space, plan, space_of(space.original)) == (plan, 1.0)


def test_rebinding_to_a_changed_program_says_how_much_it_matched():
    text = """HloModule m, is_scheduled=true

ENTRY %main (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %x = f32[4]{0} tanh(%a)
  %y = f32[4]{0} negate(%x)
  %u = f32[4]{0} tanh(%b)
  %v = f32[4]{0} negate(%u)
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%y, %v)
}
"""
    source = space_of(parse(text))
    target = space_of(parse(text.replace("tanh(%b)", "sine(%b)")))
    plan, fraction = rebind(source, source.plan(0b11), target)
    assert fraction == 0.5
    assert plan.fused == 0b01
    with pytest.raises(PlanError, match="of another program"):
        rebind(target, source.plan(0b11), target)


def test_each_kind_of_move(spaces: Spaces):
    space = spaces["attention"]
    base = default(space)
    fused = next(number for number in space.decisions if base.fused >> number & 1)
    cut = apply_move(space, base, flip(space, fused))
    assert not cut.plan.fused >> fused & 1
    assert len(cut.added) > len(cut.removed)
    opened = apply_move(space, base, flip_region(space, base, 0)).plan
    assert opened.loops == 1
    assert apply_move(space, opened, flip_region(space, opened, 0)).plan == base
    region = space.regions[0]
    assert apply_move(space, opened, revert(space, opened, region.scope, region.root)).plan.loops == 0
    scope, first, second = space.siblings[0]
    apart = unfused(space)
    merged = apply_move(space, apart, merge(space, apart, scope, (first, second)))
    assert len(merged.added) == 1
    assert apply_move(space, merged.plan, split_group(merged.plan.groups[0])).plan == apart
    with pytest.raises(IllegalMoveError, match="it changes nothing"):
        apply_move(space, base, revert(space, base, 0, min(space.scopes[0].kernels)))


def test_fusing_and_cutting_all_uses_and_inputs(spaces: Spaces):
    space = spaces["stencil"]
    plan = unfused(space)
    edge = space.edges[space.decisions[-1]]
    absorbed = apply_move(space, plan, set_inputs(space, plan, edge.scope, edge.consumer, fuse=True)).plan
    assert absorbed.fused.bit_count() > 0
    split = apply_move(
        space, absorbed, set_inputs(space, absorbed, edge.scope, edge.consumer, fuse=False)
    ).plan
    assert split == plan
    used = apply_move(space, plan, set_uses(space, plan, edge.scope, edge.producer, fuse=True)).plan
    assert apply_move(space, used, set_uses(space, used, edge.scope, edge.producer, fuse=False)).plan == plan


def test_plans_survive_their_text(spaces: Spaces):
    for space in spaces.values():
        plan = random_plan(space, random.Random(6))
        decoded = FusionPlan.decode(plan.encode())
        assert decoded == plan
        space.check(decoded)
