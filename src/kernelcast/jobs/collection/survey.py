"""What a program offers for collection: its plans, and the kernels that each of them launches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelcast.core.timing import Failure
from kernelcast.data.schema import KernelRow, OccurrenceRow, PlanRow, ProgramRow, SurveyRow
from kernelcast.data.store import Writer

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A program with plans and kernels, as rows; kernels and plans each once."""

    program: ProgramRow
    plans: Sequence[PlanRow]
    occurrences: Sequence[OccurrenceRow]
    kernels: Sequence[KernelRow]


class Source(Protocol):
    """A program that can be surveyed."""

    @property
    def id(self) -> str:
        """Identifier, unique in a dataset."""
        ...

    def survey(self, *, seed: int, random_plans: int) -> Survey | Failure:
        """Both defaults and so many random plans; equal for equal arguments."""
        ...


def survey_programs(
    writer: Writer,
    sources: Sequence[Source],
    *,
    seed: int,
    random_plans: int,
    watch: Callable[[str, int], None],
) -> dict[str, str]:
    """Surveys the programs that the dataset has no survey of, each committed as a whole.

    Args:
        watch: gets the program about to be surveyed and how many are left with it.

    Returns:
        Why a program gave nothing, by program, those of earlier runs included.
    """
    dataset = writer.dataset()
    known = {
        (program, asked_seed, plans): problem
        for program, asked_seed, plans, problem in dataset.columns(
            SurveyRow, "program", "seed", "random_plans", "problem"
        )
    }
    seen = _Seen(
        kernels={kernel for (kernel,) in dataset.columns(KernelRow, "fingerprint")},
        plans=set(dataset.columns(PlanRow, "program", "plan")),
        programs={program for (program,) in dataset.columns(ProgramRow, "program")},
    )
    todo = [source for source in sources if (source.id, seed, random_plans) not in known]
    for number, source in enumerate(todo):
        watch(source.id, len(todo) - number)
        found = source.survey(seed=seed, random_plans=random_plans)
        problem = str(found) if isinstance(found, Failure) else ""
        row = SurveyRow(program=source.id, seed=seed, random_plans=random_plans, problem=problem)
        known[source.id, seed, random_plans] = problem
        if isinstance(found, Failure):
            _LOG.warning("program %s is left out: %s", source.id, problem)
            writer.commit([row])
        else:
            writer.commit([row], *_new_rows(found, seen))
    return {source.id: problem for source in sources if (problem := known[source.id, seed, random_plans])}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Keys that the dataset has; kernels are shared by many programs."""

    kernels: set[str]
    plans: set[tuple[str, ...]]
    programs: set[str]


def _new_rows(
    survey: Survey, seen: _Seen
) -> tuple[list[ProgramRow], list[PlanRow], list[OccurrenceRow], list[KernelRow]]:
    """The rows of a survey whose keys are not there yet; marks them as seen."""
    programs = [survey.program] if survey.program.program not in seen.programs else []
    plans = [plan for plan in survey.plans if (plan.program, plan.plan) not in seen.plans]
    new_plans = {plan.plan for plan in plans}
    occurrences = [occurrence for occurrence in survey.occurrences if occurrence.plan in new_plans]
    kernels = [kernel for kernel in survey.kernels if kernel.fingerprint not in seen.kernels]
    seen.programs.update(program.program for program in programs)
    seen.plans.update((plan.program, plan.plan) for plan in plans)
    seen.kernels.update(kernel.fingerprint for kernel in kernels)
    return programs, plans, occurrences, kernels
