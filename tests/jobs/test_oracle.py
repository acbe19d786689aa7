"""The oracle: what is drawn, what is compared, what is counted as dropped."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.core.timing import Failure, Reason, Timing
from kernelcast.data.outcomes import Labels
from kernelcast.data.samples import to_columns
from kernelcast.data.schema import MeasurementRow
from kernelcast.data.store import Dataset, Writer
from kernelcast.errors import StoreError
from kernelcast.jobs.collection.collect import CollectTools
from kernelcast.jobs.collection.oracle import draw, measure_again
from kernelcast.targets.protocol import Candidate, TimesKernels

sys.path.insert(0, str(Path(__file__).parent))

import collection_fakes as fakes


def labels_of(seconds: list[float]) -> Labels:
    return Labels(fingerprints=tuple(f"k{n}" for n in range(len(seconds))), seconds=np.array(seconds))


def test_half_of_the_draw_is_long() -> None:
    found = labels_of([1e-6] * 30 + [5e-6] * 20)
    drawn = draw(found, kernels=25, seed=3)
    assert len(set(drawn)) == 25
    assert sum(int(name[1:]) >= 30 for name in drawn) == 13
    assert drawn == draw(found, kernels=25, seed=3)
    assert drawn != draw(found, kernels=25, seed=4)
    with pytest.raises(StoreError, match="30 kernels from 5 µs up are wanted, the dataset has 20"):
        draw(found, kernels=60, seed=0)


def dataset(folder: Path, seconds: list[float]) -> Dataset:
    kernels = [fakes.negate(size) for size in range(1, 1 + len(seconds))]
    with Writer.open(folder, target=fakes.TARGET, rule=fakes.RULE) as writer:
        writer.commit(
            [replace(fakes.fake_occasion(0), occasion="first")],
            [fakes.kernel_row(k) for k in kernels],
            [
                MeasurementRow(
                    occasion="first", kernel=k.fingerprint, tile="", target=fakes.TARGET.digest,
                    input_policy=fakes.RULE.input_policy, samples=to_columns(fakes.timing(s, rounds=4)),
                )
                for k, s in zip(kernels, seconds, strict=True)
            ],
        )  # fmt: skip
    return Dataset.open(folder)


def tools(seconds: Callable[[int], float]) -> CollectTools:
    """Times a kernel of ``n`` floats as ``seconds(n)``, or not where that is zero."""

    class Timer:
        def time_kernels(self, candidates: Iterable[Candidate]) -> Iterator[tuple[str, Timing | Failure]]:
            for candidate in candidates:
                size = candidate.kernel.root.shape.dimensions[0]
                failure = Failure(reason=Reason.CRASH, message="gone")
                second_s = seconds(size)
                yield candidate.key, fakes.timing(second_s, rounds=4) if second_s else failure

    @contextmanager
    def timer_on(cpu: int, sleep: object) -> Iterator[TimesKernels]:
        yield Timer()

    later = lambda seed: replace(fakes.fake_occasion(seed), started="2026-01-01T00:45:00+00:00")  # noqa: E731
    return replace(fakes.tools(), timer_on=timer_on, occasion=later)


def test_the_second_occasion_is_judged_by_the_first(tmp_path: Path) -> None:
    first_s = [1.1e-6 * size for size in range(1, 13)]
    report = measure_again(
        dataset(tmp_path / "first", first_s), tmp_path / "again", kernels=8,
        tools=tools(lambda n: 0.0 if n == 6 else 1.1e-6 * n * (1.1 if n >= 5 else 0.98)),
        settings=fakes.SETTINGS, watch=lambda _: None,
    )  # fmt: skip
    long, short = report.bands
    assert long.mape == pytest.approx(10, rel=1e-3)
    assert long.median == pytest.approx(10, rel=1e-3)
    assert short.p90 == pytest.approx(2, rel=1e-3)
    assert long.tau == short.tau == 1.0
    assert short.kernels == 4
    assert report.drawn == 8
    assert report.drops == ({} if long.kernels == 4 else {"crash": 1})
    assert report.dropped_share == sum(report.drops.values()) / 8
    assert report.quiet_share == report.first_quiet_share == 1.0
    assert report.least_gap_s == 45 * 60
    assert report.footprints[0].kernels == long.kernels + short.kernels
    assert [band.kernels for band in report.footprints[1:]] == [0, 0, 0]


def test_what_was_not_reached_is_a_drop_until_it_is_measured(tmp_path: Path) -> None:
    first = dataset(tmp_path / "first", [1.1e-6 * size for size in range(1, 13)])
    ask = lambda settings: measure_again(  # noqa: E731
        first, tmp_path / "again", kernels=8, tools=tools(lambda n: 1e-6 * n), settings=settings,
        watch=lambda _: None,
    )  # fmt: skip
    assert ask(replace(fakes.SETTINGS, budget_s=0.0)).drops == {"not reached": 8}
    assert ask(fakes.SETTINGS).drops == {}
    assert ask(replace(fakes.SETTINGS, budget_s=0.0)).drops == {}
