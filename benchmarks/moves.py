"""How fast plans change: random moves of a walk from the default, beside making one whole module.

Each move finds the kernels that it changes; a search makes some hundred thousand of them and applies a few.
Run: ``python benchmarks/moves.py [program/variant]``.
"""

from __future__ import annotations

import random
import sys

from kernelcast.fusion.apply import apply
from kernelcast.fusion.moves import random_step
from kernelcast.fusion.space import default, space_of
from kernelcast.hlo.text import parse
from programs import TRAINING_STEP, final_text
from rounds import cpu_seconds, print_result, rate, ratio

STEPS = 200


def main() -> None:
    program = parse(final_text(sys.argv[1] if len(sys.argv) > 1 else TRAINING_STEP))
    space = space_of(program)
    rng = random.Random(0)  # goes on from round to round: no round repeats what is remembered

    def walk() -> None:
        plan = default(space)
        for _ in range(STEPS):
            step = random_step(space, plan, rng)
            plan = plan if step is None else step.plan

    seconds = cpu_seconds(
        walk=walk, apply=lambda: apply(space, default(space)), space=lambda: space_of(program)
    )
    print_result(
        decisions=len(space.decisions),
        moves_per_cpu_s=rate(STEPS, seconds["walk"]),
        move_over_apply=ratio(seconds["walk"], seconds["apply"], each=1 / STEPS),
        space_over_apply=ratio(seconds["space"], seconds["apply"]),
    )


if __name__ == "__main__":
    main()
