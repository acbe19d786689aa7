"""A dataset as a model sees it: graphs and labels, cut into training, validation and test by program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.core.identity import TargetIdentity
from kernelcast.data.kernels import rebuilt
from kernelcast.data.outcomes import labels, untiled_analytical_s
from kernelcast.data.schema import KernelRow
from kernelcast.data.store import Dataset
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.jobs.learning.placement import placement
from kernelcast.model.examples import Examples
from kernelcast.split import Novelty, Split, SplitPart


@dataclass(frozen=True, kw_only=True)
class Part:
    """The labelled kernels of one part.

    Attributes:
        fingerprints: one per kernel.
        examples: graphs and labels in the same order.
        analytical_s: (kernel,) seconds by the analytical model of the target's compiler; NaN where it gives
            none, as on targets without such a model.
    """

    fingerprints: tuple[str, ...]
    examples: Examples
    analytical_s: np.ndarray

    def __len__(self) -> int:
        return len(self.fingerprints)


@dataclass(frozen=True, kw_only=True)
class LearningData:
    """A dataset under a split. No kernel of a test program trains, whatever else it occurs in.

    Attributes:
        train, validation, test: labelled kernels.
        test_programs: names of the test programs that launch each test kernel, by fingerprint.
        test_defaults: test kernels that the compiler's own default launches, by fingerprint.
        novelty: the test kernels by how new they are.
        target: what the labels were measured on.
        digest: of the dataset.
        split: as given.
    """

    train: Part
    validation: Part
    test: Part
    test_programs: Mapping[str, frozenset[str]]
    test_defaults: frozenset[str]
    novelty: Novelty
    target: TargetIdentity
    digest: str
    split: Split


def learning_data(dataset: Dataset, split: Split) -> LearningData:
    """The labelled kernels of a dataset, featurised and cut by program.

    Raises:
        SchemaError: a family that the split does not know, or a part without any labelled kernel.
    """
    placed = placement(dataset, split)
    found = labels(dataset)
    seconds = dict(zip(found.fingerprints, found.seconds.tolist(), strict=True))
    made = _featurised(dataset, placed.kernels, seconds, untiled_analytical_s(dataset))
    for part, held in made.items():
        placed.check_filled(part, len(held))
    return LearningData(
        train=made[SplitPart.TRAIN],
        validation=made[SplitPart.VALIDATION],
        test=made[SplitPart.TEST],
        test_programs=placed.test_programs,
        test_defaults=placed.test_defaults,
        novelty=placed.novelty,
        target=dataset.manifest.target,
        digest=dataset.manifest.digest,
        split=split,
    )


def _featurised(
    dataset: Dataset,
    wanted: Mapping[SplitPart, frozenset[str]],
    seconds: Mapping[str, float],
    analytical_s: Mapping[str, float],
) -> dict[SplitPart, Part]:
    """The labelled kernels of each part, in the order of the dataset."""
    featuriser = Featuriser()
    kernels: dict[SplitPart, dict[str, KernelGraph]] = {part: {} for part in wanted}
    for row in dataset.rows(KernelRow):
        for part, held in wanted.items():
            # A label that is not a positive number is no label: its kernel cannot be learned from or judged.
            if row.fingerprint in held and seconds.get(row.fingerprint, 0.0) > 0:
                kernels[part][row.fingerprint] = featuriser.graph(rebuilt(row))
    return {
        part: Part(
            fingerprints=tuple(graphs),
            examples=Examples(graphs=list(graphs.values()), seconds=np.array([seconds[f] for f in graphs])),
            analytical_s=np.array([analytical_s.get(f, np.nan) for f in graphs], dtype=np.float64),
        )
        for part, graphs in kernels.items()
    }
