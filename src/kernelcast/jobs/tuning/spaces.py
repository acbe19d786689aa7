"""The fusion spaces of one program: with the compiler's library, and without it."""

from __future__ import annotations

from collections.abc import Sequence

from kernelcast.errors import PlanError
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import FusionSpace
from kernelcast.targets.protocol import Fuses


def spaces_of(target: Fuses, stablehlo: str) -> tuple[FusionSpace, ...]:
    """The space of a program as the compiler makes it, then the one without the library where it differs.

    A plan of the first can turn library calls into loops, but only along the lines of the library's own
    regions; the second is what the compiler makes when it never thinks of the library. Its default is the
    library-off default, so a search there begins at least as fast as that.
    """
    own, library_off = target.space(stablehlo), target.space(stablehlo, library=False)
    return (own,) if library_off.digest == own.digest else (own, library_off)


def space_of_plan(spaces: Sequence[FusionSpace], plan: FusionPlan) -> FusionSpace:
    """The space that a plan belongs to.

    Raises:
        PlanError: none of these.
    """
    for space in spaces:
        if space.digest == plan.space:
            return space
    known = ", ".join(space.digest for space in spaces)
    raise PlanError(f"the plan is of space {plan.space}; this program has {known}")
