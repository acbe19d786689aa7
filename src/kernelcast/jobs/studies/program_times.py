"""How far predicted times of whole programs lie from measured ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.core.timing import Timing
from kernelcast.errors import KernelcastError
from kernelcast.fusion.plan import Untouched
from kernelcast.hlo.text import parse
from kernelcast.jobs.as_json import null_or, number, outcome_from_json, outcome_to_json
from kernelcast.jobs.comparison import time_ratio, whole_seconds
from kernelcast.jobs.programs.predict import predict_program
from kernelcast.jobs.programs.studied_program import StudiedProgram, captured
from kernelcast.jobs.programs.target_terms import TargetTerms
from kernelcast.jobs.studies.journal import Journal
from kernelcast.jobs.tuning_target import TuningTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTime:
    """One program as the compiler itself makes it.

    Attributes:
        predicted_s: NaN where a kernel has no estimate.
        measured_s: median of the quiet rounds.
        noise: |A/A − 1|.
        extrapolated_share: of the predicted time.
    """

    program: str
    predicted_s: float
    measured_s: float
    noise: float
    extrapolated_share: float

    @property
    def error(self) -> float:
        """predicted / measured − 1."""
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTimesReport:
    """All programs, and why others have no time."""

    programs: tuple[ProgramTime, ...]
    problems: Mapping[str, str]

    @property
    def abs_error_median(self) -> float:
        """Median of |predicted / measured − 1|; NaN of nothing."""
        errors = [abs(p.error) for p in self.programs if math.isfinite(p.error)]
        return float(np.median(errors)) if errors else math.nan


def compare_program_times(
    programs: Sequence[StudiedProgram],
    target: TuningTarget,
    estimator: Estimator,
    terms: TargetTerms,
    *,
    estimator_name: str,
    journal: Path,
    seed: int,
    progress: Callable[[str, int, int], None] = lambda program, done, total: None,
) -> ProgramTimesReport:
    """The report over the given programs; those that the journal holds already are not timed again.

    Args:
        terms: of the target that is predicted.
        seed: of the inputs.
        progress: gets the program, and how many of how many are done.
    """
    header = {
        "study": "program-times", "schema": 1, "seed": seed, "estimator": estimator_name,
        "factor": asdict(terms.factor), "target": target.identity.digest,
    }  # fmt: skip
    with Journal(journal, header) as log:
        done = {entry["program"] for entry in log.entries}
        for position, program in enumerate(programs):
            progress(program.id, position, len(programs))
            if program.id not in done:
                log.append(_entry(program, target, estimator, terms, seed))
        wanted = {program.id for program in programs}
        return report([entry for entry in log.entries if entry["program"] in wanted])


def report(entries: Sequence[Mapping[str, Any]]) -> ProgramTimesReport:
    """What a journal's entries say."""
    programs: list[ProgramTime] = []
    problems: dict[str, str] = {}
    for entry in entries:
        if entry["problem"]:
            problems[entry["program"]] = entry["problem"]
            continue
        own, control = (outcome_from_json(entry[name]) for name in ("outcome", "control"))
        if not (isinstance(own, Timing) and isinstance(control, Timing)):
            problems[entry["program"]] = str(own if not isinstance(own, Timing) else control)
            continue
        programs.append(
            ProgramTime(
                program=entry["program"],
                predicted_s=number(entry["predicted_s"]),
                measured_s=whole_seconds(own),
                noise=abs(time_ratio(control, own).value - 1),
                extrapolated_share=entry["extrapolated_share"],
            )
        )
    return ProgramTimesReport(programs=tuple(programs), problems=problems)


def _entry(
    program: StudiedProgram, target: TuningTarget, estimator: Estimator, terms: TargetTerms, seed: int
) -> dict[str, Any]:
    try:
        space = captured(program, target)
        inputs = dict(enumerate(program.example_inputs(seed)))
        own, control = target.time_programs(space, [Untouched(), Untouched()], inputs=inputs)
        module = parse(own.final_text)
        estimate = predict_program(module, estimator, terms=terms, temporary_bytes=own.temporary_bytes)
    except KernelcastError as error:
        return {"program": program.id, "problem": str(error)}
    return {
        "program": program.id, "problem": "",
        "predicted_s": null_or(estimate.seconds),
        "extrapolated_share": estimate.extrapolated_share, "temporary_bytes": own.temporary_bytes,
        "outcome": outcome_to_json(own.outcome), "control": outcome_to_json(control.outcome),
    }  # fmt: skip
