"""What a tuning study found, from the raw lines of its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelcast.core.timing import Timing
from kernelcast.errors import TargetError
from kernelcast.jobs.as_json import outcome_from_json
from kernelcast.jobs.comparison import Ratio, time_ratio
from kernelcast.jobs.tuning.judging import better_default

# What is at most so much slower than the default counts as recovered.
RECOVERED = 1.05
MODEL, DEVICE_LONG, DEVICE_SHORT = "model", "device-long", "device-short"
CONDITIONS = (MODEL, DEVICE_LONG, DEVICE_SHORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfusedStart:
    """One program tuned from its un-fused plan.

    Attributes:
        start: time of the un-fused plan over the default's.
        found: time of what each condition found over the default's, on rounds that chose nothing.
        control: A/A ratio of the default in those rounds.
        device_s, model_s: spent, by condition.
    """

    program: str
    start: Ratio
    found: Mapping[str, Ratio]
    control: Ratio
    device_s: Mapping[str, float]
    model_s: Mapping[str, float]

    def is_recovered(self, condition: str) -> bool:
        """Whether what a condition found is as fast as the default, within 5 %."""
        return condition in self.found and self.found[condition].value <= RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class FromDefault:
    """One program tuned from its default; gains are of the answer, 1 where the default stays."""

    name: str
    program: str
    why: str
    over_default: Ratio
    over_library_off: Ratio | None
    over_best_default: Ratio
    control: Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningReport:
    """Both parts of the study, as far as they are done."""

    unfused_start: tuple[UnfusedStart, ...] = ()
    from_default: tuple[FromDefault, ...] = ()

    def recovered(self, condition: str) -> int:
        """How many programs a condition brought back to the default's speed."""
        return sum(row.is_recovered(condition) for row in self.unfused_start)


def report(entries: Sequence[Mapping[str, Any]]) -> TuningReport:
    """What a journal's entries say."""
    by_key = {entry["key"]: entry for entry in entries}
    judged = [entry for entry in entries if entry["key"].startswith("judged ")]
    return TuningReport(
        unfused_start=tuple(_unfused_row(entry, by_key) for entry in judged),
        from_default=tuple(_default_row(e) for e in entries if e["key"].startswith("default ")),
    )


def _unfused_row(entry: Mapping[str, Any], by_key: Mapping[str, Mapping[str, Any]]) -> UnfusedStart:
    program = entry["program"]
    outcomes = {name: outcome_from_json(columns) for name, columns in entry["outcomes"].items()}
    default, control, start = (
        _timing(outcomes[n], f"{n} of {program}") for n in ("default", "control", "start")
    )
    spent = {c: by_key[f"found {c} {program}"] for c in CONDITIONS}
    return UnfusedStart(
        program=program,
        start=time_ratio(start, default),
        found={
            c: time_ratio(outcome, default)
            for c in CONDITIONS
            if isinstance(outcome := outcomes.get(c), Timing)
        },
        control=time_ratio(control, default),
        device_s={c: row["device_s"] for c, row in spent.items()},
        model_s={c: row["model_s"] for c, row in spent.items()},
    )


def _default_row(entry: Mapping[str, Any]) -> FromDefault:
    """Gains on odd rounds; candidates were chosen on even ones."""
    outcomes = [outcome_from_json(columns) for columns in entry["outcomes"]]
    default, control, answer = (
        _timing(outcomes[n], f"candidate {n} of {entry['program']}") for n in (0, 1, entry["answer"])
    )
    off = outcomes[2] if isinstance(outcomes[2], Timing) else None
    return FromDefault(
        name=entry["name"],
        program=entry["program"],
        why=entry["why"],
        over_default=time_ratio(default, answer, rounds="odd"),
        over_library_off=time_ratio(off, answer, rounds="odd") if off is not None else None,
        over_best_default=time_ratio(better_default(default, off), answer, rounds="odd"),
        control=time_ratio(control, default, rounds="odd"),
    )


def _timing(outcome: object, what: str) -> Timing:
    if isinstance(outcome, Timing):
        return outcome
    raise TargetError(f"the journal holds no time of the {what}: {outcome}")
