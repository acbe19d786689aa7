"""Does the model spare the device? Tuning from un-fused plans and from defaults, with and without the model.

From the un-fused plan, neither default is a start, a candidate, a guard or the target of a move; the question
is how much of the default's speed comes back. From the default, the question is what is gained over it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.fusion.moves import Extensions
from kernelcast.fusion.plan import Untouched
from kernelcast.fusion.space import FusionSpace, unfused
from kernelcast.jobs.as_json import Choice, decode_choice, encode_choice, null_or, outcome_to_json
from kernelcast.jobs.programs.studied_program import StudiedProgram
from kernelcast.jobs.studies.journal import Journal
from kernelcast.jobs.studies.tuning_report import CONDITIONS, DEVICE_LONG, MODEL, TuningReport, report
from kernelcast.jobs.tuning.autotune import TuningOptions, autotune
from kernelcast.jobs.tuning.device_search import fastest_on_device, search_on_device
from kernelcast.jobs.tuning.explore import explore
from kernelcast.jobs.tuning.plan_search import SearchOptions, Start
from kernelcast.jobs.tuning.refine import RefineOptions
from kernelcast.jobs.tuning.result_file import write_tuning
from kernelcast.jobs.tuning.trial_search import TrialOptions
from kernelcast.jobs.tuning_target import TuningTarget
from kernelcast.search.anneal import AnnealingOptions, improvements
from kernelcast.targets.lowering import lower
from kernelcast.targets.protocol import DeviceBudget

# Single quick measurements differ by a few percent; less heat would take noise for hills.
_DEVICE_HOT, _DEVICE_COLD = 0.03, 0.003


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """Budgets of a tuning study.

    Attributes:
        long_s: device seconds of the long search without the model.
        short_s: device seconds beside the model, and of the short search without it.
        default_s: device seconds of tuning from the default.
        trials: of kernels, on which the device corrects the model.
        refine: how the device searches on from the model's best plans.
        candidates: plans that the model sends to the device.
        finalists: plans that the device decides among.
        model_steps: of each of the model's chains.
        model_chains: searched side by side.
        device_chains: of a search on the device; few, so that each gets far.
    """

    long_s: float = 300.0
    short_s: float = 30.0
    default_s: float = 60.0
    trials: TrialOptions = field(default_factory=TrialOptions)
    refine: RefineOptions = field(default_factory=RefineOptions)
    candidates: int = 12
    finalists: int = 6
    model_steps: int = 1500
    model_chains: int = 16
    device_chains: int = 2


@dataclass(frozen=True, kw_only=True)
class TuningStudy:
    """What a study works with.

    Attributes:
        target: careful enough to judge by.
        quick: the same machine with few rounds, for searches on the device.
        estimator: the model.
        estimator_name: of it, for the results.
        options: budgets.
        seed: of all searches and inputs.
        results: folder for the whole tuning results of the second part.
        progress: gets what is done next.
        clock: for the model's own seconds.
    """

    target: TuningTarget
    quick: TuningTarget
    estimator: Estimator
    estimator_name: str
    options: StudyOptions = field(default_factory=StudyOptions)
    seed: int = 0
    results: Path | None = None
    progress: Callable[[str], None] = lambda doing: None
    clock: Callable[[], float] = time.monotonic


def run_study(
    study: TuningStudy,
    *,
    unfused_start: Sequence[StudiedProgram],
    from_default: Mapping[str, StudiedProgram],
    journal: Path,
) -> TuningReport:
    """The report; what the journal holds already is not done again."""
    header = {
        "study": "tuning", "schema": 1, "seed": study.seed, "options": asdict(study.options),
        "estimator": study.estimator_name, "target": study.target.identity.digest,
    }  # fmt: skip
    with Journal(journal, header) as log:
        done = {entry["key"] for entry in log.entries}
        for program in unfused_start:
            for entry in _unfused_entries(study, program, log.entries, done):
                log.append(entry)
        for name, program in from_default.items():
            if f"default {name}" not in done:
                log.append(_default_entry(study, name, program))
        return report(log.entries)


def _unfused_entries(
    study: TuningStudy, program: StudiedProgram, entries: Sequence[Mapping[str, Any]], done: set[str]
) -> Iterator[dict[str, Any]]:
    if f"judged {program.id}" in done:
        return
    source, arguments = program.build()
    inputs = dict(enumerate(program.example_inputs(study.seed)))
    # Each target captures for itself; the plans of one fit the space of the other, which is equal.
    space, quick_space = (target.space(source, *arguments) for target in (study.target, study.quick))
    found = {e["key"]: e["plan"] for e in entries if e["key"].startswith("found ")}
    for condition in CONDITIONS:
        key = f"found {condition} {program.id}"
        if key in done:
            continue
        study.progress(f"{program.id}: {condition}")
        if condition == MODEL:
            entry = _by_model(study, space, inputs)
        else:
            limit_s = study.options.long_s if condition == DEVICE_LONG else study.options.short_s
            entry = _by_device(study, quick_space, inputs, limit_s)
        found[key] = entry["plan"]
        yield {"key": key, **entry}
    study.progress(f"{program.id}: judging")
    plans = {c: found[f"found {c} {program.id}"] for c in CONDITIONS if found[f"found {c} {program.id}"]}
    choices: list[Choice] = [Untouched(), Untouched(), unfused(space), *map(decode_choice, plans.values())]
    timed = study.target.time_programs(space, choices, inputs=inputs)
    yield {
        "key": f"judged {program.id}",
        "program": program.id,
        "outcomes": dict(
            zip(
                ("default", "control", "start", *plans),
                (outcome_to_json(t.outcome) for t in timed),
                strict=True,
            )
        ),
    }


def _search_options(*, chains: int, annealing: AnnealingOptions) -> SearchOptions:
    return SearchOptions(
        start=Start.UNFUSED,
        chains=chains,
        annealing=annealing,
        extensions=Extensions(reverts=False),
        forbid_default=True,
    )


def _by_model(study: TuningStudy, space: FusionSpace, inputs: Mapping[int, np.ndarray]) -> dict[str, Any]:
    """The model searches, corrected by kernels on the device, which searches on from its best plans."""
    options = study.options
    budget = DeviceBudget(limit_s=options.short_s)
    begun = study.clock()
    found = explore(
        [space],
        study.target,
        study.estimator,
        search=_search_options(
            chains=options.model_chains, annealing=AnnealingOptions(steps=options.model_steps, pool=256)
        ),
        trials=options.trials,
        refining=options.refine,
        candidates=options.candidates,
        budget=budget,
        seed=study.seed,
        inputs=inputs,
        clock=study.clock,
    )
    model_s = study.clock() - begun - budget.spent_s
    finalists = list(found.plans)[: options.finalists]
    best = fastest_on_device(space, study.target, finalists, budget=budget, inputs=inputs)
    return {
        "plan": encode_choice(best) if best is not None else "",
        "device_s": budget.spent_s, "model_s": model_s, "evaluations": found.evaluations,
        "kernels_timed": found.kernels_timed, "explored": len(found.explored),
        "trace": [asdict(step) for step in found.trace],
    }  # fmt: skip


def _by_device(
    study: TuningStudy, space: FusionSpace, inputs: Mapping[int, np.ndarray], limit_s: float
) -> dict[str, Any]:
    """The device alone searches, and chooses among its best."""
    budget = DeviceBudget(limit_s=limit_s)
    searched = _search_options(
        chains=study.options.device_chains, annealing=AnnealingOptions(hot=_DEVICE_HOT, cold=_DEVICE_COLD)
    )
    found = search_on_device(
        space, study.quick, options=searched, budget=budget, seed=study.seed, inputs=inputs
    )
    finalists = [f.state for f in found.pool[:4]]
    best = fastest_on_device(space, study.quick, finalists, budget=budget, inputs=inputs)
    if best is None and found.pool:
        best = found.best.state
    return {
        "plan": encode_choice(best) if best is not None else "",
        "device_s": budget.spent_s, "model_s": 0.0, "evaluations": found.evaluations,
        "trace": [asdict(step) for step in improvements(found.trace)],
    }  # fmt: skip


def _default_entry(study: TuningStudy, name: str, program: StudiedProgram) -> dict[str, Any]:
    """A whole tuning run from the default, defaults and guard included."""
    study.progress(f"{program.id}: from the default")
    source, arguments = program.build()
    stablehlo = lower(source, *arguments).stablehlo
    result = autotune(
        study.target,
        study.estimator,
        program=program.id,
        stablehlo=stablehlo,
        estimator_name=study.estimator_name,
        options=TuningOptions(
            search=SearchOptions(
                chains=study.options.model_chains,
                annealing=AnnealingOptions(steps=study.options.model_steps, pool=256),
            ),
            trials=study.options.trials,
            refine=study.options.refine,
            candidates=study.options.candidates,
            finalists=study.options.finalists,
            device_s=study.options.default_s,
        ),
        seed=study.seed,
        inputs=dict(enumerate(program.example_inputs(study.seed))),
        clock=study.clock,
    )
    if study.results is not None:
        write_tuning(result, study.results / f"tuning-{name}.json")
    answer = next(n for n, tried in enumerate(result.tried) if tried.choice == result.answer)
    return {
        "key": f"default {name}", "name": name, "program": program.id, "why": result.judgement.why,
        "answer": answer, "choice": encode_choice(result.answer), "device_s": result.device_s,
        "model_s": result.model_s, "output_error": null_or(result.tried[answer].output_error),
        "outcomes": [outcome_to_json(tried.outcome) for tried in result.tried],
    }  # fmt: skip
