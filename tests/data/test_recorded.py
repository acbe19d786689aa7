"""Labels and the recording that replays them."""

from pathlib import Path

import numpy as np
import pytest

from kernelcast.core.estimate import Estimator, Status
from kernelcast.core.identity import TargetIdentity
from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Statistic, Timing, joined
from kernelcast.data.kernels import kernels, rebuilt
from kernelcast.data.outcomes import labels, outcomes
from kernelcast.data.recorded import Recording
from kernelcast.data.rule import LabelRule
from kernelcast.data.samples import to_columns
from kernelcast.data.schema import KernelRow, MeasurementRow, OccurrenceRow
from kernelcast.data.store import Dataset, Writer
from kernelcast.errors import StoreError
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.targets.protocol import Candidate, TimesKernels

TARGET = TargetIdentity(kind="xla-cpu", chip="test", compiler="jaxlib 0.0")
RULE = LabelRule()


def kernel(size: int) -> Kernel:
    return kernel_from_text(
        f"HloModule k\n\nENTRY e {{\n  a = f32[{size}]{{0}} parameter(0)\n"
        f"  ROOT r = f32[{size}]{{0}} negate(a)\n}}\n"
    )


def timing(seconds: float, *, rounds: int = 4, loudness: float = 1.0) -> Timing:
    samples = tuple(
        Sample(runs=runs, seconds=1e-4 + runs * seconds, loudness=loudness, round=round_)
        for round_ in range(rounds)
        for runs in (10, 50)
    )
    return Timing(samples=samples, clock=Clock.WALL, method="loop-slope")


def row(of: Kernel) -> KernelRow:
    return KernelRow(
        fingerprint=of.fingerprint, skeleton=of.skeleton, kind=of.kind, nodes=of.program.instruction_count,
        text=of.text,
    )  # fmt: skip


def measured(of: Kernel, outcome: Timing | Failure, occasion: str = "o1", tile: str = "") -> MeasurementRow:
    return MeasurementRow(
        occasion=occasion, kernel=of.fingerprint, tile=tile, target=TARGET.digest,
        input_policy=RULE.input_policy, samples=to_columns(outcome),
    )  # fmt: skip


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    first, second, third, fourth = (kernel(size) for size in (8, 16, 32, 64))
    crash = Failure(reason=Reason.CRASH, message="signal 11")
    occurrence = [
        OccurrenceRow(
            program=p, plan="untouched", kernel=first.fingerprint, calls=1, times=2.0, trip_source="known"
        )
        for p in ("p", "q")
    ]
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit(
            [row(k) for k in (first, second, third, fourth)],
            occurrence,
            [
                measured(first, timing(1e-6)),
                measured(second, crash),
                measured(third, crash),
                measured(first, timing(5e-6), tile="kernel[8]"),
            ],
        )
        writer.commit([measured(first, timing(2e-6), "o2"), measured(third, timing(3e-6), "o2")])
    return Dataset.open(tmp_path)


def test_the_first_timing_of_a_kernel_is_its_label(dataset: Dataset) -> None:
    found = labels(dataset)
    assert found.fingerprints == (kernel(8).fingerprint, kernel(32).fingerprint)
    np.testing.assert_allclose(found.seconds, [1e-6, 3e-6], rtol=1e-3)
    np.testing.assert_allclose(labels(dataset, occasions=["o2"]).seconds, [2e-6, 3e-6], rtol=1e-3)
    assert len(labels(dataset, occasions=[])) == 0
    assert isinstance(outcomes(dataset)[kernel(16).fingerprint], Failure)
    assert list(outcomes(dataset, tile="kernel[8]")) == [kernel(8).fingerprint]


def test_kernels_are_rebuilt_from_their_text(dataset: Dataset) -> None:
    assert list(kernels(dataset)) == [kernel(size) for size in (8, 16, 32, 64)]
    assert list(kernels(dataset, {kernel(16).fingerprint})) == [kernel(16)]


def test_a_text_with_another_fingerprint_is_refused() -> None:
    wrong = KernelRow(fingerprint="0" * 32, skeleton="", kind="loop", nodes=2, text=kernel(8).text)
    with pytest.raises(StoreError, match="another canonical form"):
        rebuilt(wrong)


def test_a_recording_estimates_what_was_measured(dataset: Dataset) -> None:
    recording = Recording.of(dataset)
    assert isinstance(recording, Estimator)
    asked = [kernel(size) for size in (64, 8, 16, 32)]
    estimates = recording.estimate(asked)
    assert estimates.status.tolist() == [Status.UNKNOWN, Status.KNOWN, Status.FAILED, Status.KNOWN]
    np.testing.assert_allclose(estimates.seconds, [np.nan, 1e-6, np.nan, 3e-6], rtol=1e-3)
    known = estimates.status == Status.KNOWN
    assert np.all(estimates.lower[known] <= estimates.seconds[known] * (1 + 1e-9))
    assert np.all(estimates.seconds[known] <= estimates.upper[known] * (1 + 1e-9))
    by_minimum = Recording(recording.outcomes, Statistic.GATED_MIN_DIFFERENCE).estimate(asked)
    assert np.isnan(by_minimum.lower).all()
    assert len(recording.estimate([])) == 0


def test_a_recording_times_what_was_measured(dataset: Dataset) -> None:
    recording = Recording.of(dataset)
    assert isinstance(recording, TimesKernels)
    candidates = [Candidate(key=str(size), kernel=kernel(size)) for size in (64, 8, 16)]
    tiled = Candidate(key="tiled", kernel=kernel(8), tile=Tile(levels=(("kernel", (8,)),)))
    found = dict(recording.time_kernels([*candidates, tiled]))
    assert list(found) == ["64", "8", "16", "tiled"]
    assert isinstance(found["8"], Timing)
    assert found["16"] == Failure(reason=Reason.CRASH, message="signal 11")
    for key in ("64", "tiled"):
        outcome = found[key]
        assert isinstance(outcome, Failure)
        assert "is not in the recording" in outcome.message


def test_a_rule_wants_enough_quiet_rounds_and_a_positive_slope() -> None:
    rule = LabelRule(gated_rounds=3)
    good = timing(1e-6)
    assert rule.judge(good, Statistic.GATED_MEDIAN) is good
    loud = rule.judge(timing(1e-6, loudness=1.3), Statistic.GATED_MEDIAN)
    assert isinstance(loud, Failure)
    assert loud.reason is Reason.TOO_LOUD
    assert len(loud.samples) == 8
    falling = Timing(
        samples=tuple(Sample(runs=r, seconds=1 / r, loudness=1.0, round=n) for n in range(3) for r in (1, 2)),
        clock=Clock.WALL,
        method="loop-slope",
    )
    assert rule.judge(falling, Statistic.GATED_MEDIAN).reason is Reason.NO_SLOPE  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="must be positive"):
        LabelRule(passes=0)


def test_joined_passes_keep_their_rounds_apart() -> None:
    both = joined([timing(1e-6, rounds=2), timing(3e-6, rounds=2)])
    np.testing.assert_allclose(np.sort(both.slopes_s()), [1e-6, 1e-6, 3e-6, 3e-6])
    assert both.seconds() == pytest.approx(2e-6)
    with pytest.raises(ValueError, match="one clock"):
        joined([])
