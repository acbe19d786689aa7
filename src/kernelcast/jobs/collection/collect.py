"""Collects a dataset: surveys programs, then times their kernels on all given cores until time is up.

Everything final is committed every few seconds. What a killed collection had in flight is measured again by
the next one on the same folder; what it had committed is not.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Failure, Timing
from kernelcast.data.kernels import rebuilt
from kernelcast.data.rule import LabelRule
from kernelcast.data.samples import to_columns
from kernelcast.data.schema import AnchorRow, KernelRow, MeasurementRow, OccasionRow
from kernelcast.data.store import Writer
from kernelcast.jobs.collection.lanes import Interrupt, Lanes, TimerOn
from kernelcast.jobs.collection.survey import Source, survey_programs
from kernelcast.jobs.collection.worklist import attempted, work_list
from kernelcast.targets.protocol import Candidate

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectSettings:
    """How much is collected, and where it runs.

    Attributes:
        seed: of the random plans and of the order.
        random_plans: per program, besides both defaults.
        kernels_per_program: at most so many by one program's own turns.
        budget_s: wall seconds of timing, surveys apart, after which no batch is begun; None until nothing is
            left.
        cpus: one worker on each.
        occasion_s: seconds after which no batch is begun in an occasion; with the last visits to what is open
            it stays under thirty minutes.
        commit_period_s: what is final is written at least so often.
        drop_damaged: first take damaged parts out of the dataset; what they held is collected again.
    """

    seed: int = 0
    random_plans: int = 10
    kernels_per_program: int = 400
    budget_s: float | None = None
    cpus: tuple[int, ...] = (0, 1)
    occasion_s: float = 1500.0
    commit_period_s: float = 5.0
    drop_damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectTools:
    """What a collection works with; tests give fast ones.

    Attributes:
        timer_on: sets up a core for timing.
        anchors: times what all occasions have in common; outcomes by fingerprint or program.
        occasion: makes the row of an occasion that begins now, by the seed.
        clock: monotonic seconds.
    """

    timer_on: TimerOn
    anchors: Callable[[], Mapping[str, Timing | Failure]]
    occasion: Callable[[int], OccasionRow]
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectProgress:
    """Where a collection stands.

    Attributes:
        stage: ``survey``, ``anchors`` or ``timing``.
        detail: the program that is surveyed, or the occasion.
        left: programs or kernels that are left.
        finished: kernels that meet the dataset's rule, in this run.
        failures: kernels that failed in this run, by reason.
        elapsed_s: of timing, anchors included.
        left_s: estimate of what remains; NaN while unknown.
        quiet_share: fraction of the samples taken on a quiet machine.
    """

    stage: str
    detail: str
    left: int
    finished: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    elapsed_s: float = 0.0
    left_s: float = float("nan")
    quiet_share: float = float("nan")

    @property
    def kernels_per_s(self) -> float:
        return self.finished / self.elapsed_s if self.elapsed_s > 0 else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectReport:
    """What one run of ``collect`` did.

    Attributes:
        programs: surveyed with success, by this run or an earlier one.
        problems: why others gave nothing, by program.
        progress: the final counts.
        total: measured kernels in the dataset, failures included.
        was_interrupted: by ctrl-C; what was final then is committed.
    """

    programs: int
    problems: Mapping[str, str]
    progress: CollectProgress
    total: int
    was_interrupted: bool


def collect(
    folder: Path,
    sources: Sequence[Source],
    *,
    target: TargetIdentity,
    rule: LabelRule,
    tools: CollectTools,
    settings: CollectSettings,
    watch: Callable[[CollectProgress], None],
) -> CollectReport:
    """Surveys and measures until all is measured or the budget is used up; may be run again on its folder.

    Raises:
        StoreError: the folder cannot be written, is being written, or is damaged; what was committed is kept.
        SchemaError: the folder holds another target's data, or was made under another rule.
        TargetError: no worker can be started.
    """
    with Writer.open(folder, target=target, rule=rule) as writer:
        for problem in writer.drop_damaged() if settings.drop_damaged else ():
            _LOG.error("dropped: %s", problem)
        problems = survey_programs(
            writer, sources, seed=settings.seed, random_plans=settings.random_plans,
            watch=lambda program, left: watch(CollectProgress(stage="survey", detail=program, left=left)),
        )  # fmt: skip
        programs = [source.id for source in sources if source.id not in problems]
        dataset = writer.dataset()
        done = attempted(dataset, target=target.digest, input_policy=rule.input_policy)
        wanted = work_list(
            dataset, programs, seed=settings.seed, kernels_per_program=settings.kernels_per_program
        )
        todo = [kernel for kernel in wanted if kernel not in done]
        timing = Collection(writer, todo, tools=tools, settings=settings, watch=watch)
        was_interrupted = timing.run()
        total = len(attempted(writer.dataset(), target=target.digest, input_policy=rule.input_policy))
        return CollectReport(
            programs=len(programs), problems=problems, progress=timing.progress("timing"), total=total,
            was_interrupted=was_interrupted,
        )  # fmt: skip


class Collection:
    """Times a list of kernels on several cores, occasion by occasion, and commits what becomes final."""

    def __init__(
        self,
        writer: Writer,
        kernels: Sequence[str],
        *,
        tools: CollectTools,
        settings: CollectSettings,
        watch: Callable[[CollectProgress], None],
    ) -> None:
        """
        Args:
            writer: of a dataset that has the text of each kernel.
            kernels: fingerprints, in order.
        """
        self._writer = writer
        self._tools = tools
        self._settings = settings
        self._watch = watch
        self._todo = dict.fromkeys(kernels)
        self._texts = {
            row.fingerprint: row for row in writer.dataset().rows(KernelRow) if row.fingerprint in self._todo
        }
        self._begin_s = tools.clock()
        self._occasion = ""
        self._finished = 0
        self._failures: Counter[str] = Counter()
        self._samples = self._quiet_samples = 0

    def run(self) -> bool:
        """Times what is left; whether ctrl-C ended it. Call it from the main thread."""
        try:
            while self._todo and self._left_s() > 0:
                if self._run_occasion():
                    return True
        except KeyboardInterrupt:
            return True
        return False

    def progress(self, stage: str) -> CollectProgress:
        """Where it stands."""
        elapsed_s = self._tools.clock() - self._begin_s
        attempts = self._finished + sum(self._failures.values())
        work_s = len(self._todo) * elapsed_s / attempts if attempts else float("nan")
        left_s = max(0.0, min(work_s, self._left_s()) if attempts else self._left_s())
        return CollectProgress(
            stage=stage, detail=self._occasion, left=len(self._todo), finished=self._finished,
            failures=dict(self._failures.most_common()), elapsed_s=elapsed_s, left_s=left_s,
            quiet_share=self._quiet_samples / self._samples if self._samples else float("nan"),
        )  # fmt: skip

    def _left_s(self) -> float:
        budget_s = self._settings.budget_s
        return float("inf") if budget_s is None else budget_s - (self._tools.clock() - self._begin_s)

    def _run_occasion(self) -> bool:
        row = self._tools.occasion(self._settings.seed)
        self._occasion = row.occasion
        self._writer.commit([row])
        self._time_anchors("start")
        was_interrupted = self._run_lanes()
        if not was_interrupted:
            self._time_anchors("end")
        return was_interrupted

    def _time_anchors(self, end: str) -> None:
        self._watch(self.progress("anchors"))
        outcomes = self._tools.anchors()
        self._writer.commit(
            [
                AnchorRow(occasion=self._occasion, end=end, subject=subject, samples=to_columns(outcome))
                for subject, outcome in outcomes.items()
            ]
        )

    def _run_lanes(self) -> bool:
        rule = self._writer.manifest.rule
        begin_s = self._tools.clock()
        close_s = begin_s + min(self._settings.occasion_s, self._left_s())
        self._watch(self.progress("timing"))
        with Interrupt() as interrupt:
            lanes = Lanes(
                (Candidate(key=name, kernel=rebuilt(self._texts[name])) for name in tuple(self._todo)),
                timer_on=self._tools.timer_on, cpus=self._settings.cpus, clock=self._tools.clock,
                close_s=close_s,
                # Open batches get their regular visits and a little more; what is loud even then comes again
                # in the next occasion, rather than that both cores wait for it.
                end_s=close_s + rule.passes * rule.spacing_s + 30.0,
            )  # fmt: skip
            try:
                while lanes.are_running() and not interrupt.came:
                    self._commit(lanes.take(self._settings.commit_period_s, interrupt))
                    self._watch(self.progress("timing"))
            finally:
                lanes.abandon()
                self._commit(lanes.take(0.0, interrupt))
        lanes.raise_error()
        return interrupt.came

    def _commit(self, taken: Sequence[tuple[str, Timing | Failure]]) -> None:
        manifest = self._writer.manifest
        outcomes = [
            (
                kernel,
                manifest.rule.judge(outcome, manifest.target.label)
                if isinstance(outcome, Timing)
                else outcome,
            )
            for kernel, outcome in taken
        ]
        self._writer.commit(
            [
                MeasurementRow(
                    occasion=self._occasion, kernel=kernel, tile="", target=manifest.target.digest,
                    input_policy=manifest.rule.input_policy, samples=to_columns(outcome),
                )
                for kernel, outcome in outcomes
            ]
        )  # fmt: skip
        for kernel, outcome in outcomes:
            del self._todo[kernel]
            self._samples += len(outcome.samples)
            self._quiet_samples += sum(sample.gated for sample in outcome.samples)
            if isinstance(outcome, Timing):
                self._finished += 1
            else:
                self._failures[outcome.reason.value] += 1
