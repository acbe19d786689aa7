"""Applying a stored tuning result again and measuring whether its gain is still there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Failure, Timing
from kernelcast.errors import SchemaError, TargetError
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.space import FusionSpace
from kernelcast.jobs.as_json import Choice
from kernelcast.jobs.comparison import Ratio, time_ratio
from kernelcast.jobs.tuning.result import TuningResult
from kernelcast.jobs.tuning.spaces import spaces_of
from kernelcast.jobs.tuning_target import TuningTarget
from kernelcast.targets.protocol import DeviceBudget, ProgramTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a tuning result is worth now.

    Attributes:
        program: as in the result.
        answer: what was applied.
        over_default, over_library_off: gains now; None where that default failed.
        recorded_over_default: the gain when it was tuned.
        control: A/A ratio of the default against itself.
        output_error: against the untouched program.
        same_machine: whether target and chip are those of the tuning.
        timings: raw, in the order default, control, library-off default, answer.
    """

    program: str
    answer: Choice
    over_default: Ratio
    over_library_off: Ratio | None
    recorded_over_default: Ratio | None
    control: Ratio
    output_error: float
    same_machine: bool
    timings: tuple[ProgramTiming, ...]


def replay(result: TuningResult, target: TuningTarget, *, device_s: float = 30.0) -> Replay:
    """The result's answer, applied to its program and timed beside both defaults.

    Raises:
        SchemaError: this compiler or these rules make another fusion space of the program, so the plan has no
            meaning here.
        TargetError: the default or the answer cannot be timed.
    """
    spaces = spaces_of(target, result.stablehlo)
    space = spaces[0]
    check_spaces(result, spaces, target.identity)
    choices: list[Choice] = [Untouched(), Untouched(), LibraryOff(), result.answer]
    timed = target.time_programs(space, choices, budget=DeviceBudget(limit_s=device_s))
    default, control, answer = (
        _timing(timed[n], name) for n, name in ((0, "default"), (1, "control"), (3, "answer"))
    )
    off = timed[2].outcome
    return Replay(
        program=result.program,
        answer=result.answer,
        over_default=time_ratio(answer, default).inverse,
        over_library_off=time_ratio(answer, off).inverse if isinstance(off, Timing) else None,
        recorded_over_default=result.judgement.over_default,
        control=time_ratio(control, default),
        output_error=timed[3].output_error,
        same_machine=target.identity == result.target,
        timings=tuple(timed),
    )


def check_spaces(result: TuningResult, spaces: Sequence[FusionSpace], target: TargetIdentity) -> None:
    """Nothing, where a result's answer has a meaning in one of the program's spaces.

    Raises:
        SchemaError: they have not; says what differs.
    """
    if not isinstance(result.answer, FusionPlan):
        return
    rules = spaces[0].rules.identity
    if result.rules != rules:
        raise SchemaError(
            f"the result was tuned under rules {result.rules}, this Kernelcast has {rules}: tune the program "
            "again"
        )
    known = [space.digest for space in spaces]
    if result.answer.space not in known:
        raise SchemaError(
            f"the result is for fusion space {result.answer.space} of {result.target.compiler}; here "
            f"{target.compiler} makes {' and '.join(known)} of the same program: tune it again"
        )


def _timing(timed: ProgramTiming, name: str) -> Timing:
    if isinstance(timed.outcome, Failure):
        raise TargetError(f"the {name} cannot be timed: {timed.outcome}")
    return timed.outcome
