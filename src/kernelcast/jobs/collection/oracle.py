"""How well labels repeat: kernels of a dataset measured again, in another process, by the dataset's own rule.

One independent occasion as the predictor of another is the accuracy that no model can be seen to beat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from kernelcast import metrics
from kernelcast.core.timing import Failure, Timing
from kernelcast.data.kernels import kernels as kernels_of
from kernelcast.data.outcomes import Labels, labels, outcomes
from kernelcast.data.schema import KernelRow, MeasurementRow, OccasionRow
from kernelcast.data.store import Dataset, Writer
from kernelcast.errors import StoreError
from kernelcast.jobs.collection.collect import Collection, CollectProgress, CollectSettings, CollectTools

# Below it the cost of a launch and of an empty loop iteration matters; errors are told apart there.
BOUNDARY_S = 5e-6
_FOOTPRINTS = (
    ("< 1 MB", 0, 1e6), ("1–4 MB", 1e6, 4e6), ("4–16 MB", 4e6, 16e6), ("≥ 16 MB", 16e6, float("inf")),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeatability:
    """How far two occasions differ over some kernels.

    Attributes:
        name: which kernels.
        kernels: that both occasions gave a label.
        mape, median, p90: of |second − first| / first, in percent.
        tau: Kendall's τ-b of the two.
    """

    name: str
    kernels: int
    mape: float
    median: float
    p90: float
    tau: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleReport:
    """The repeatability of a dataset's labels.

    Attributes:
        drawn: kernels to be measured again.
        drops: those without a second label, by reason; ``not reached`` where time ran out.
        bands: from ``BOUNDARY_S`` up, and below, by the first occasion's label.
        footprints: by the bytes of parameters and outputs.
        quiet_share: of the samples of the second measurement; ``first_quiet_share`` of the first.
        least_gap_s: seconds between the start of a kernel's two occasions, the smallest.
        was_interrupted: by ctrl-C.
    """

    drawn: int
    drops: Mapping[str, int]
    bands: tuple[Repeatability, Repeatability]
    footprints: tuple[Repeatability, ...]
    quiet_share: float
    first_quiet_share: float
    least_gap_s: float
    was_interrupted: bool = False

    @property
    def dropped_share(self) -> float:
        return sum(self.drops.values()) / self.drawn


def measure_again(
    first: Dataset,
    folder: Path,
    *,
    kernels: int,
    tools: CollectTools,
    settings: CollectSettings,
    watch: Callable[[CollectProgress], None],
) -> OracleReport:
    """Measures randomly drawn kernels of a dataset again into another folder, and compares.

    Run again with the same folder and seed, it goes on where it was stopped.

    Args:
        first: a dataset with labels.
        folder: of the second measurement; a dataset of the same target and rule.
        kernels: how many, half of them from ``BOUNDARY_S`` up.
        settings: seed of the draw, budget, cores.
    """
    drawn = draw(labels(first), kernels=kernels, seed=settings.seed)
    wanted = frozenset(drawn)
    with Writer.open(folder, target=first.manifest.target, rule=first.manifest.rule) as writer:
        present = {name for (name,) in writer.dataset().columns(KernelRow, "fingerprint")}
        texts = [r for r in first.rows(KernelRow) if r.fingerprint in wanted and r.fingerprint not in present]
        writer.commit(texts)
        done = outcomes(writer.dataset())
        todo = [name for name in drawn if name not in done]
        was_interrupted = Collection(writer, todo, tools=tools, settings=settings, watch=watch).run()
        return compare(first, writer.dataset(), drawn, was_interrupted=was_interrupted)


def draw(found: Labels, *, kernels: int, seed: int) -> list[str]:
    """Fingerprints at random, half of them from ``BOUNDARY_S`` up; the same for the same labels and seed.

    Raises:
        StoreError: too few kernels in one of the halves.
    """
    generator = np.random.default_rng(seed)
    drawn: list[str] = []
    for name, members, count in (
        ("from 5 µs up", np.flatnonzero(found.seconds >= BOUNDARY_S), (kernels + 1) // 2),
        ("below 5 µs", np.flatnonzero(found.seconds < BOUNDARY_S), kernels // 2),
    ):
        if members.size < count:
            raise StoreError(
                f"{count} kernels {name} are wanted, the dataset has {members.size}: ask for fewer"
            )
        drawn.extend(found.fingerprints[i] for i in generator.choice(members, size=count, replace=False))
    return [drawn[i] for i in generator.permutation(len(drawn))]


def compare(
    first: Dataset, second: Dataset, drawn: Sequence[str], *, was_interrupted: bool = False
) -> OracleReport:
    """What the two measurements of some kernels say about each other."""
    before, after = outcomes(first), outcomes(second)
    label_s = [
        dict(zip((found := labels(d)).fingerprints, found.seconds, strict=True)) for d in (first, second)
    ]
    both: list[str] = []
    drops: Counter[str] = Counter()
    for name in drawn:
        outcome = after.get(name)
        if isinstance(outcome, Timing):
            both.append(name)
        else:
            drops[outcome.reason.value if isinstance(outcome, Failure) else "not reached"] += 1
    seconds = [np.array([label[name] for name in both]) for label in label_s]
    footprint = _footprints(first, frozenset(both))
    bytes_ = np.array([footprint[name] for name in both])
    is_long = seconds[0] >= BOUNDARY_S
    measured_twice = lambda name, members: _repeatability(name, *(s[members] for s in seconds))  # noqa: E731
    return OracleReport(
        drawn=len(drawn),
        drops=dict(drops),
        bands=(measured_twice("≥ 5 µs", is_long), measured_twice("< 5 µs", ~is_long)),
        footprints=tuple(
            measured_twice(name, (low <= bytes_) & (bytes_ < high)) for name, low, high in _FOOTPRINTS
        ),
        quiet_share=_quiet_share([after[name] for name in drawn if name in after]),
        first_quiet_share=_quiet_share([before[name] for name in drawn]),
        least_gap_s=_least_gap_s(first, second, frozenset(both)),
        was_interrupted=was_interrupted,
    )


def _repeatability(name: str, first: np.ndarray, second: np.ndarray) -> Repeatability:
    errors = metrics.absolute_percentage_errors(second, first)
    nothing = float("nan")
    return Repeatability(
        name=name,
        kernels=errors.size,
        mape=metrics.mape(second, first),
        median=float(np.median(errors)) if errors.size else nothing,
        p90=float(np.quantile(errors, 0.9)) if errors.size else nothing,
        tau=metrics.kendall_tau(second, first),
    )


def _footprints(dataset: Dataset, wanted: frozenset[str]) -> dict[str, int]:
    """Bytes of parameters and outputs of each kernel."""
    return {kernel.fingerprint: kernel.footprint_bytes for kernel in kernels_of(dataset, wanted)}


def _quiet_share(found: Sequence[Timing | Failure]) -> float:
    samples = [sample for outcome in found for sample in outcome.samples]
    return sum(sample.gated for sample in samples) / len(samples) if samples else float("nan")


def _least_gap_s(first: Dataset, second: Dataset, wanted: frozenset[str]) -> float:
    """Seconds between the starts of a kernel's two occasions, the smallest over kernels; NaN of none."""
    starts = [_starts(dataset, wanted) for dataset in (first, second)]
    gaps = [abs((starts[1][name] - starts[0][name]).total_seconds()) for name in wanted]
    return min(gaps, default=float("nan"))


def _starts(dataset: Dataset, wanted: frozenset[str]) -> dict[str, datetime]:
    """When the occasion of each kernel's label began."""
    began = {row.occasion: datetime.fromisoformat(row.started) for row in dataset.rows(OccasionRow)}
    found: dict[str, datetime] = {}
    for kernel, occasion, failure in dataset.columns(MeasurementRow, "kernel", "occasion", "failure"):
        if kernel in wanted and not failure:
            found.setdefault(kernel, began[occasion])
    return found
