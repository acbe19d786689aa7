"""Does a plan change nothing but the time? Every default imposed again, and many random plans, compared.

For each program: the default plan, applied and printed by our writer, must give the compiler's own final
module and outputs; the default with every fusion built anew, and random plans, must give equal outputs on two
seeds of inputs.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kernelcast.core.timing import Failure, Reason
from kernelcast.errors import KernelcastError
from kernelcast.fusion.plan import FusionPlan, Untouched
from kernelcast.fusion.rules import XLA_CPU
from kernelcast.fusion.sample import random_plan
from kernelcast.fusion.space import FusionSpace, default
from kernelcast.jobs.as_json import null_or
from kernelcast.jobs.programs.studied_program import StudiedProgram, captured
from kernelcast.jobs.studies.journal import Journal
from kernelcast.targets.pjrt.imposed import first_difference
from kernelcast.targets.pjrt.xla_cpu import PlanCheck
from kernelcast.targets.protocol import Fuses

DEFAULT, REBUILT = "default", "default-rebuilt"


class ChecksPlans(Fuses, Protocol):
    """A target that compiles plans and compares their outputs with the default's."""

    def check_programs(
        self,
        space: FusionSpace,
        plans: Sequence[FusionPlan | Untouched],
        *,
        inputs: Mapping[int, np.ndarray] | None = None,
        verbatim: bool = True,
    ) -> list[PlanCheck]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRow:
    """One plan of one program on all seeds of inputs.

    Attributes:
        program: zoo id.
        case: ``default``, ``default-rebuilt`` or ``random N``.
        plan: encoded.
        identical: whether the final module is the compiler's own; None where it need not be.
        output_error: largest over the seeds; NaN where nothing ran.
        failure: reason of the first failure, empty for none. message: of it.
    """

    program: str
    case: str
    plan: str
    identical: bool | None
    output_error: float
    failure: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansReport:
    """What became of all plans.

    Attributes:
        programs: looked at. not_captured: of those, without a fusion space, with the reason.
        identical: defaults that came out as the compiler's own module.
        rebuilt_equal: rebuilt defaults with equal outputs.
        tried: distinct plans that were compiled, run and compared.
        wrong_values: of the tried, those whose outputs differ, by program.
        failures: plans that did not get as far as a comparison, by reason.
        not_identical, not_equal: programs whose default fared badly, with the first difference.
    """

    programs: int
    not_captured: Mapping[str, str]
    identical: int
    rebuilt_equal: int
    tried: int
    wrong_values: Mapping[str, str]
    failures: Mapping[str, int]
    not_identical: Mapping[str, str]
    not_equal: Mapping[str, str]

    @property
    def identical_fraction(self) -> float:
        return self.identical / self.programs if self.programs else math.nan

    @property
    def failed_fraction(self) -> float:
        failed = sum(self.failures.values())
        return failed / (failed + self.tried) if failed + self.tried else math.nan


def try_plans(
    programs: Sequence[StudiedProgram],
    target: ChecksPlans,
    *,
    journal: Path,
    plans_each: int,
    seed: int,
    input_seeds: Sequence[int] = (0, 1),
    progress: Callable[[str, int, int], None] = lambda program, done, total: None,
) -> PlansReport:
    """The report over all programs; what the journal holds already is not done again.

    Plans that were tried under other fusion rules do not count: what those let through says nothing about
    these.

    Args:
        plans_each: random plans of each program, at most as many as it has distinct ones.
        seed: of the plans.
        input_seeds: of the inputs on which each plan is compared.
        progress: gets the program, and how many of how many are done.
    """
    header = {
        "study": "plans-tried", "schema": 1, "seed": seed,
        "plans_each": plans_each, "input_seeds": list(input_seeds),
    }  # fmt: skip
    with Journal(journal, header) as log:
        done = {entry["program"] for entry in _of_these_rules(log.entries) if entry["kind"] == "program"}
        for number, program in enumerate(programs):
            progress(program.id, number, len(programs))
            if program.id in done:
                continue
            captured = ""
            try:
                for row in _rows(program, target, plans_each, seed, input_seeds):
                    log.append({"kind": "plan", **_to_json(row)})
            except KernelcastError as error:
                captured = str(error)
            log.append({"kind": "program", "program": program.id, "problem": captured})
        wanted = {program.id for program in programs}
        return report([e for e in _of_these_rules(log.entries) if e["program"] in wanted])


def report(entries: Sequence[Mapping[str, Any]]) -> PlansReport:
    """The counts of a journal's entries.

    A killed run leaves rows of a program that is not finished; the next run writes them again, so the last
    row of a (program, case) counts.
    """
    finished = {e["program"]: e["problem"] for e in entries if e["kind"] == "program"}
    rows = {(e["program"], e["case"]): e for e in entries if e["kind"] == "plan" and e["program"] in finished}
    defaults = [row for row in rows.values() if row["case"] == DEFAULT]
    rebuilt = [row for row in rows.values() if row["case"] == REBUILT]
    distinct = {(row["program"], row["plan"]): row for row in rows.values() if row["case"] != REBUILT}
    compared = [r for r in distinct.values() if r["failure"] in ("", Reason.WRONG_RESULT.value)]
    return PlansReport(
        programs=len(finished),
        not_captured={name: problem for name, problem in finished.items() if problem},
        identical=sum(row["identical"] is True and not row["failure"] for row in defaults),
        rebuilt_equal=sum(not row["failure"] for row in rebuilt),
        tried=len(compared),
        wrong_values={
            f"{r['program']}, {r['case']}": r["message"] for r in [*compared, *rebuilt]
            if r["failure"] == Reason.WRONG_RESULT.value
        },
        failures=Counter(r["failure"] for r in distinct.values() if r not in compared),
        not_identical={
            r["program"]: r["message"] for r in defaults if r["identical"] is not True or r["failure"]
        },
        not_equal={r["program"]: f"{r['failure']}: {r['message']}" for r in rebuilt if r["failure"]},
    )  # fmt: skip


def _of_these_rules(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries whose plans are of the present fusion rules; a program's last line goes with its plans."""
    kept: list[Mapping[str, Any]] = []
    stale: set[str] = set()
    for entry in entries:
        program = entry["program"]
        if entry["kind"] == "plan":
            is_old = FusionPlan.decode(entry["plan"]).rules != XLA_CPU.identity
            (stale.add if is_old else stale.discard)(program)
        if program not in stale:
            kept.append(entry)
    return kept


def _rows(
    program: StudiedProgram, target: ChecksPlans, plans_each: int, seed: int, input_seeds: Sequence[int]
) -> Iterator[TriedRow]:
    space = captured(program, target)
    own = default(space)
    plans = {f"random {n}": plan for n, plan in enumerate(distinct_plans(space, plans_each, seed))}
    verbatim = _checked(program, target, space, [Untouched(), own, *plans.values()], input_seeds)
    rebuilt = _checked(program, target, space, [own], input_seeds, verbatim=False)
    final_text = verbatim[0][0].final_text
    yield _row(program, DEFAULT, own, verbatim[1], own_text=final_text)
    yield _row(program, REBUILT, own, rebuilt[0])
    for (case, plan), checks in zip(plans.items(), verbatim[2:], strict=True):
        yield _row(program, case, plan, checks)


def distinct_plans(space: FusionSpace, count: int, seed: int) -> list[FusionPlan]:
    """Up to so many distinct random plans, none of them the default; equal for equal seeds."""
    found: dict[FusionPlan, None] = {}
    own = default(space)
    rng = random.Random(f"{seed}/{space.digest}")
    # Small programs have fewer plans than asked for, so drawing must end by itself.
    for _ in range(4 * count):
        plan = random_plan(space, rng)
        if plan != own:
            found[plan] = None
        if len(found) == count:
            break
    return list(found)


def _checked(
    program: StudiedProgram,
    target: ChecksPlans,
    space: FusionSpace,
    plans: Sequence[FusionPlan | Untouched],
    input_seeds: Sequence[int],
    *,
    verbatim: bool = True,
) -> list[list[PlanCheck]]:
    """(plan, seed) checks."""
    each = [
        target.check_programs(
            space, plans, inputs=dict(enumerate(program.example_inputs(seed))), verbatim=verbatim
        )
        for seed in input_seeds
    ]
    return [list(checks) for checks in zip(*each, strict=True)]


def _row(
    program: StudiedProgram,
    case: str,
    plan: FusionPlan,
    checks: Sequence[PlanCheck],
    *,
    own_text: str | None = None,
) -> TriedRow:
    failure: Failure | None = next((c.failure for c in checks if c.failure is not None), None)
    difference = None
    if own_text is not None:
        difference = first_difference(_by_computation(own_text), _by_computation(checks[0].final_text))
    return TriedRow(
        program=program.id,
        case=case,
        plan=plan.encode(),
        identical=None if own_text is None else difference is None,
        output_error=max(c.output_error for c in checks),
        failure=failure.reason.value if failure else "",
        message=failure.message if failure else difference or "",
    )


def _by_computation(text: str) -> str:
    """A printed module with its computations sorted: XLA prints them in the order in which it met them, which
    is another one for a module that came as text.
    """
    header, _, rest = text.partition("\n")
    return "\n".join([header, *sorted(block.strip() for block in rest.split("\n\n"))])


def _to_json(row: TriedRow) -> dict[str, Any]:
    return {
        "program": row.program, "case": row.case, "plan": row.plan, "identical": row.identical,
        "output_error": null_or(row.output_error), "failure": row.failure, "message": row.message,
    }  # fmt: skip
