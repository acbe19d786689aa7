"""Captures the programs of ``programs.py``, imposes plans on them and compares their outputs.

Run as a child process, since XLA may abort: ``python impose.py FOLDER PLANS SEED``. Writes ``NAME.hlo``, the
captured module, and one line of JSON per program to ``results.jsonl``.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from kernelcast.fusion.apply import apply
from kernelcast.fusion.moves import IllegalMoveError, apply_move, merge
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.sample import all_fused, sample
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.format import format_program
from kernelcast.hlo.text import parse
from kernelcast.hlo.xla import text_to_proto
from kernelcast.targets.client import capture, compile_program, run
from programs import programs

RELATIVE_TOLERANCE = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-10, "float16": 2e-2, "bfloat16": 2e-2}


def grouped(space: FusionSpace, plan: FusionPlan) -> FusionPlan:
    """The plan with every pair of siblings in one kernel that may be."""
    for scope, first, second in space.siblings:
        try:
            plan = apply_move(space, plan, merge(space, plan, scope, (first, second))).plan
        except IllegalMoveError:
            continue
    return plan


def plans_of(space: FusionSpace, count: int, rng: random.Random) -> list[FusionPlan]:
    base = default(space)
    plans = [
        unfused(space),
        all_fused(space),
        space.plan(base.fused, loops=(1 << len(space.regions)) - 1),
        grouped(space, base),
        grouped(space, unfused(space)),
        *sample(space, rng, count),
    ]
    return list(dict.fromkeys(plans))


def error(got: np.ndarray, wanted: np.ndarray) -> float:
    """Largest error as a fraction of the tolerance; integers, infinities and NaN have to be exact."""
    tolerance = RELATIVE_TOLERANCE.get(str(wanted.dtype))
    if tolerance is None:
        return 0.0 if np.array_equal(got, wanted) else np.inf
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    got, wanted = got.astype(wide), wanted.astype(wide)
    finite = np.isfinite(wanted)
    if not np.array_equal(got[~finite], wanted[~finite], equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    return float(np.abs(got - wanted)[finite].max() / max(np.abs(wanted[finite]).max(), 1e-30) / tolerance)


def inputs_of(arguments: tuple[object, ...], seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    arrays = [np.asarray(a) for a in jax.tree.leaves(arguments)]
    if seed == 0:
        return arrays
    return [
        generator.permutation(a.ravel()).reshape(a.shape) if a.dtype.kind not in "iu" else a for a in arrays
    ]


def check(name: str, folder: Path, count: int, seed: int) -> dict[str, object]:
    function, arguments = programs()[name]
    donated = (0,) if name.endswith("donated") else ()
    text = jax.jit(function, keep_unused=True, donate_argnums=donated).lower(*arguments).as_text()
    captured = capture(text)
    (folder / f"{name}.hlo").write_text(captured)
    program = parse(captured)
    space = space_of(program)
    again = apply(space, default(space))
    inputs = [inputs_of(arguments, s) for s in (0, 1)]
    reference = compile_program(text)
    wanted = [run(reference, [a.copy() for a in arrays]) for arrays in inputs]
    worst, wrong, failed = 0.0, [], []
    plans = plans_of(space, count, random.Random(seed))
    # Built anew instead of copied, the default's kernels have to give the same values.
    modules = [apply(space, default(space), verbatim=False), *(apply(space, plan) for plan in plans)]
    for number, module in enumerate(modules):
        proto = text_to_proto(format_program(module))
        try:
            executable = compile_program(text, transform=lambda _, proto=proto: proto)
        except jax.errors.JaxRuntimeError as refused:
            failed.append(f"plan {number}: {str(refused)[:300]}")
            continue
        for arrays, outputs in zip(inputs, wanted, strict=True):
            got = run(executable, [a.copy() for a in arrays])
            off = max((error(a, b) for a, b in zip(got, outputs, strict=True)), default=0.0)
            worst = max(worst, off)
            if off > 1:
                wrong.append(f"plan {number}: {off:.3g} times the tolerance")
    return {
        "name": name,
        "default_is_identical": format_program(again) == format_program(program),
        "plans": len(plans),
        "with_groups": sum(bool(plan.groups) for plan in plans),
        "with_loops": sum(bool(plan.loops) for plan in plans),
        "worst": worst,
        "wrong": wrong,
        "failed": failed,
    }


def main() -> None:
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for name in sys.argv[4:] or programs():
        print(name, flush=True)
        record = check(name, folder, count, seed)
        with (folder / "results.jsonl").open("a") as results:
            results.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
