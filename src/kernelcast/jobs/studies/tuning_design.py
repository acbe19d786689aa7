"""Which programs a tuning study tunes, written down before the first search."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernelcast.core.timing import Timing
from kernelcast.data.durable import write_durably
from kernelcast.errors import KernelcastError, SchemaError
from kernelcast.fusion.plan import Untouched
from kernelcast.fusion.space import unfused
from kernelcast.jobs.comparison import time_ratio, whole_seconds
from kernelcast.jobs.programs.studied_program import StudiedProgram, captured
from kernelcast.report.files import read_text
from kernelcast.targets.protocol import Fuses, TimesPrograms

FORMAT = "kernelcast-tuning-study"
FORMAT_VERSION = 1
# A program whose un-fused plan is hardly slower has nothing to recover: 1.15 times is the least that a study
# wants, and a quick look may be off by some percent.
LEAST_SLOWDOWN = 1.25
# Longer programs leave a budget of thirty device seconds too few candidates.
_LONGEST_S = 30e-3


class ScreeningTarget(Fuses, TimesPrograms, Protocol):
    """A target that captures and times programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningDesign:
    """What is tuned.

    Attributes:
        unfused_start: programs that are tuned from their un-fused plan.
        from_default: programs that are tuned from their default, by the word that names them in results.
        seed: of the draw.
    """

    unfused_start: tuple[str, ...]
    from_default: Mapping[str, str]
    seed: int

    def write(self, path: Path) -> None:
        """Writes the design as JSON."""
        record = {
            "format": FORMAT, "version": FORMAT_VERSION, "seed": self.seed,
            "unfused_start": self.unfused_start, "from_default": dict(self.from_default),
        }  # fmt: skip
        write_durably(path, (json.dumps(record, indent=1) + "\n").encode())

    @staticmethod
    def read(path: Path) -> TuningDesign:
        """The design in a file.

        Raises:
            SchemaError: the file is something else.
        """
        try:
            record = json.loads(read_text(path))
            if (record["format"], record["version"]) != (FORMAT, FORMAT_VERSION):
                raise SchemaError(
                    f"{path} is a {record['format']} of version {record['version']}, "
                    f"not {FORMAT} version {FORMAT_VERSION}"
                )
            return TuningDesign(
                unfused_start=tuple(record["unfused_start"]),
                from_default=dict(record["from_default"]),
                seed=int(record["seed"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise SchemaError(f"{path} is not the design of a tuning study: {error}") from error


def draw_programs(
    programs: Sequence[StudiedProgram],
    target: ScreeningTarget,
    *,
    count: int,
    at_most: Mapping[str, int],
    group_of: Callable[[StudiedProgram], str],
    seed: int,
    progress: Callable[[str, float], None] = lambda program, slowdown: None,
) -> tuple[str, ...]:
    """Programs in random order whose un-fused plan is clearly slower than the default.

    Args:
        count: wanted.
        at_most: so many of each group that is named here; one of each other group.
        group_of: e.g. the family of a program.
        progress: gets each program that was timed and its slowdown.

    Raises:
        KernelcastError: there are not so many.
    """
    order = list(programs)
    random.Random(seed).shuffle(order)
    chosen: list[str] = []
    taken: dict[str, int] = {}
    for program in order:
        group = group_of(program)
        if taken.get(group, 0) >= at_most.get(group, 1):
            continue
        slowdown = unfused_slowdown(program, target)
        progress(program.id, slowdown)
        if slowdown >= LEAST_SLOWDOWN:
            chosen.append(program.id)
            taken[group] = taken.get(group, 0) + 1
        if len(chosen) == count:
            return tuple(chosen)
    raise KernelcastError(
        f"{count} programs were wanted, only {len(chosen)} are slow enough un-fused: {chosen}"
    )


def unfused_slowdown(program: StudiedProgram, target: ScreeningTarget) -> float:
    """Time of a program's un-fused plan over its default's; 0 where it cannot be timed or is too long."""
    try:
        space = captured(program, target)
        inputs = dict(enumerate(program.example_inputs(0)))
        own, bare = target.time_programs(space, [Untouched(), unfused(space)], inputs=inputs)
    except KernelcastError:
        return 0.0
    if not (isinstance(own.outcome, Timing) and isinstance(bare.outcome, Timing)):
        return 0.0
    if whole_seconds(own.outcome) > _LONGEST_S:
        return 0.0
    return time_ratio(bare.outcome, own.outcome).value
