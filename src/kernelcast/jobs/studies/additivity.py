"""Does the sum of a plan's kernels rank plans as whole programs do? Times a design and sums up.

The memory factor is fitted on the programs on which its form was found, and on no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Failure, Reason, Timing
from kernelcast.errors import SchemaError
from kernelcast.fusion.plan import FusionPlan, Untouched
from kernelcast.fusion.space import FusionSpace
from kernelcast.hlo.text import parse
from kernelcast.jobs.as_json import Choice, outcome_from_json, outcome_to_json
from kernelcast.jobs.comparison import whole_seconds
from kernelcast.jobs.programs.measure import COVERED
from kernelcast.jobs.programs.memory_factor import NO_FACTOR, MemoryFactor, fit_memory_factor
from kernelcast.jobs.programs.overheads import Overheads, TimesBoth, measure_overheads, overhead_seconds
from kernelcast.jobs.programs.studied_program import StudiedProgram, captured
from kernelcast.jobs.programs.target_terms import TargetTerms
from kernelcast.jobs.studies.additivity_analysis import ProgramAdditivity, TimedPlan, analyse, is_slow
from kernelcast.jobs.studies.additivity_design import AdditivityDesign
from kernelcast.jobs.studies.journal import Journal
from kernelcast.targets.protocol import Candidate, ProgramTiming, TimesKernels

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditivityReport:
    """The figures of all programs.

    Attributes:
        note, new: per program, as in the design; programs that are not timed yet are left out.
        terms: of the target: the factor fitted on ``note`` and applied to all, and the overheads that were
            measured last; None where nothing is timed yet.
        plain: the same figures without the factor.
    """

    note: tuple[ProgramAdditivity, ...]
    new: tuple[ProgramAdditivity, ...]
    terms: TargetTerms | None
    plain: tuple[ProgramAdditivity, ...]

    @property
    def factor(self) -> MemoryFactor:
        """The factor of temporary memory."""
        return self.terms.factor if self.terms is not None else NO_FACTOR

    def median(self, figure: str, programs: Sequence[ProgramAdditivity] | None = None) -> float:
        """The median over programs (all unless given) of one of their figures; NaN where there is none."""
        rows = [*self.note, *self.new] if programs is None else programs
        values = [v for v in (float(getattr(row, figure)) for row in rows) if math.isfinite(v)]
        return float(np.median(values)) if values else math.nan


def measure_additivity(
    design: AdditivityDesign,
    programs: Sequence[StudiedProgram],
    target: TimesBoth,
    *,
    journal: Path,
    seed: int,
    progress: Callable[[str, int, int], None] = lambda program, done, total: None,
) -> AdditivityReport:
    """The report; programs that the journal holds already are not timed again.

    Args:
        programs: those of the design to time now, all or some.
        seed: of the inputs.
        progress: gets the program, and how many of how many are done.

    Raises:
        SchemaError: the journal is of another study, or holds other plans than the design.
    """
    header = {
        "study": "additivity", "schema": 1, "design_seed": design.seed, "seed": seed,
        "target": target.identity.digest,
    }  # fmt: skip
    with Journal(journal, header) as log:
        _check_plans(design, log)
        done = {entry["program"] for entry in log.entries}
        left = [program for program in programs if program.id not in done]
        if left:
            overheads = measure_overheads(target)
            for number, program in enumerate(left):
                progress(program.id, len(programs) - len(left) + number, len(programs))
                log.append(_measured(program, design.plans[program.id], target, overheads, seed))
        return report(design, log.entries, target.identity)


def _check_plans(design: AdditivityDesign, log: Journal) -> None:
    """Nothing, where the journal timed what the design asks for: a design may be drawn again by one seed."""
    for entry in log.entries:
        fixed = [plan.encode() for plan in design.plans.get(entry["program"], ())]
        if fixed and [row["plan"] for row in entry["plans"]] != fixed:
            raise SchemaError(
                f"{log.path} holds other plans of {entry['program']} than the design; "
                "choose another file or remove it"
            )


def report(
    design: AdditivityDesign, entries: Sequence[Mapping[str, Any]], identity: TargetIdentity
) -> AdditivityReport:
    """The figures of a journal's entries."""
    timed = {entry["program"]: _timed_plans(entry, identity) for entry in entries}
    factor = _factor([(name, *timed[name]) for name in design.note if name in timed])

    def figures(names: Sequence[str], factor: MemoryFactor) -> tuple[ProgramAdditivity, ...]:
        return tuple(
            analyse(name, *timed[name], factor, failed=len(design.plans[name]) - len(timed[name][1]))
            for name in names
            if name in timed
        )

    return AdditivityReport(
        note=figures(design.note, factor),
        new=figures(design.new, factor),
        terms=_terms(entries, factor, identity),
        plain=figures(design.programs, NO_FACTOR),
    )


def _terms(
    entries: Sequence[Mapping[str, Any]], factor: MemoryFactor, identity: TargetIdentity
) -> TargetTerms | None:
    if not entries:
        return None
    overheads = Overheads(**entries[-1]["overheads"])
    return TargetTerms(target=identity.digest, factor=factor, overheads=overheads)


def _factor(programs: Sequence[tuple[str, Timing, Sequence[TimedPlan]]]) -> MemoryFactor:
    rows = [
        (whole_seconds(plan.whole), plan.sum_s, plan.temporary_bytes, name)
        for name, own, plans in programs
        for plan in plans
        if math.isfinite(plan.sum_s) and not is_slow(plan.whole, own)
    ]
    return fit_memory_factor(*zip(*rows, strict=True)) if rows else NO_FACTOR


def _measured(
    program: StudiedProgram,
    plans: Sequence[FusionPlan],
    target: TimesBoth,
    overheads: Overheads,
    seed: int,
) -> dict[str, Any]:
    """The journal's entry of a program: all raw samples of its plans and of their kernels."""
    space = captured(program, target)
    for plan in plans:
        space.check(plan)
    choices: list[Choice] = [Untouched(), Untouched(), *plans]
    inputs = dict(enumerate(program.example_inputs(seed)))
    timed = target.time_programs(space, choices, inputs=inputs)
    kernels: dict[str, Kernel] = {}
    sums = [_calls(space, plan, kernels) for plan in plans]
    outcomes = _kernel_outcomes(target, kernels)
    return {
        "program": program.id,
        "overheads": asdict(overheads),
        "default": outcome_to_json(timed[0].outcome),
        "control": outcome_to_json(timed[1].outcome),
        "plans": [
            {
                "plan": plan.encode(), "outcome": outcome_to_json(t.outcome),
                "temporary_bytes": t.temporary_bytes, "kernels": calls,
                "overhead_s": _overhead_s(t, overheads),
            }
            for plan, t, calls in zip(plans, timed[2:], sums, strict=True)
        ],
        "kernels": {
            key: {"bytes": kernel.footprint_bytes, "outcome": outcome_to_json(outcomes[key])}
            for key, kernel in kernels.items()
        },
    }  # fmt: skip


def _kernel_outcomes(target: TimesKernels, kernels: Mapping[str, Kernel]) -> dict[str, Timing | Failure]:
    """An outcome per kernel; those that met only loud moments are timed again, since a sum needs them all."""
    outcomes: dict[str, Timing | Failure] = {}
    wanted = list(kernels)
    for _ in range(_ATTEMPTS):
        outcomes.update(target.time_kernels(Candidate(key=key, kernel=kernels[key]) for key in wanted))
        wanted = [k for k, o in outcomes.items() if isinstance(o, Failure) and o.reason is Reason.TOO_LOUD]
        if not wanted:
            break
    return outcomes


def _overhead_s(timed: ProgramTiming, overheads: Overheads) -> float:
    """Seconds beside the kernels' own in one run; 0 where nothing was compiled."""
    return overhead_seconds(parse(timed.final_text), overheads).total_s if timed.final_text else 0.0


def _calls(space: FusionSpace, plan: FusionPlan, kernels: dict[str, Kernel]) -> dict[str, float]:
    """How often one run of a plan runs each kernel, by fingerprint; adds the kernels to the table."""
    calls: dict[str, float] = {}
    for group in space.groups(plan):
        kernel = space.kernel(group)
        kernels[kernel.fingerprint] = kernel
        calls[kernel.fingerprint] = calls.get(kernel.fingerprint, 0.0) + space.multiplicity(group).value
    return calls


def _timed_plans(entry: Mapping[str, Any], identity: TargetIdentity) -> tuple[Timing, list[TimedPlan]]:
    """The default's time and the plans that ran."""
    own = outcome_from_json(entry["default"])
    if not isinstance(own, Timing):
        raise SchemaError(f"the journal holds no time of the default of {entry['program']}: {own}")
    seconds = {
        key: outcome.seconds(identity.label) if isinstance(outcome, Timing) else math.nan
        for key, outcome in ((k, outcome_from_json(row["outcome"])) for k, row in entry["kernels"].items())
    }
    plans: list[TimedPlan] = []
    for row in entry["plans"]:
        whole = outcome_from_json(row["outcome"])
        if isinstance(whole, Failure):
            continue
        weight = {key: times * entry["kernels"][key]["bytes"] for key, times in row["kernels"].items()}
        known = {key: times for key, times in row["kernels"].items() if math.isfinite(seconds[key])}
        coverage = sum(weight[key] for key in known) / max(sum(weight.values()), 1)
        total_s = math.fsum(times * seconds[key] for key, times in known.items()) + row["overhead_s"]
        plans.append(
            TimedPlan(
                plan=row["plan"],
                whole=whole,
                sum_s=total_s if coverage >= COVERED else math.nan,
                coverage=coverage,
                temporary_bytes=row["temporary_bytes"],
            )
        )
    return own, plans
