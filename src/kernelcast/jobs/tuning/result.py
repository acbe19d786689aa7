"""What a tuning run found: the answer, all raw timings, and what it takes to measure it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Failure, Timing
from kernelcast.jobs.as_json import Choice
from kernelcast.jobs.tuning.judging import Judgement
from kernelcast.jobs.tuning.refine import Explored
from kernelcast.search.anneal import TraceStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One candidate that was timed.

    Attributes:
        choice: a plan or one of the two defaults.
        predicted_s: by the estimator; NaN where it did not say.
        outcome: raw samples, or why there are none.
        output_error: against the untouched program on the same inputs, as a fraction of the output's largest
            magnitude.
        temporary_bytes: of the executable.
    """

    choice: Choice
    predicted_s: float
    outcome: Timing | Failure
    output_error: float
    temporary_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """A tuning run and its answer.

    Attributes:
        program: a zoo id, a file name or a function's name; for people.
        stablehlo: the program itself, so that the file can be replayed alone.
        space: digest of the program's own fusion space; plans may also be of the one without the library.
        rules: name and version of the legality rules.
        answer: what to run; ``Untouched`` where nothing passed the guard.
        judgement: how the answer was chosen and what it gains; its candidates are ``tried`` from the third.
        tried: the untouched default, its A/A control, the library-off default, and the plans that the device
            decided among; timed in the same rounds.
        explored: plans that the device timed whole on the way, the fastest first.
        trace: the proposals that lowered the best predicted cost.
        estimator: what stood in for the hardware.
        options: of the run, as set.
        seed: of search and inputs.
        target: whose times these are; ``target.threads`` says for how many threads the answer is measured.
        versions: of Python and libraries.
        device_s: device seconds spent. model_s: seconds spent searching, apart from those.
        kernels_timed: kernels of which the search used the device's times in place of the estimator's.
        date: ISO, UTC.
    """

    program: str
    stablehlo: str
    space: str
    rules: str
    answer: Choice
    judgement: Judgement
    tried: tuple[Tried, ...]
    explored: tuple[Explored, ...]
    trace: tuple[TraceStep, ...]
    estimator: str
    options: Mapping[str, Any]
    seed: int
    target: TargetIdentity
    versions: Mapping[str, str]
    device_s: float
    model_s: float
    kernels_timed: int
    date: str
