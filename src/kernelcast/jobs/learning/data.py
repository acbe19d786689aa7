"""A dataset as a model sees it: graphs and labels, cut into training, validation and test by program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.core.identity import TargetIdentity
from kernelcast.data.kernels import families, rebuilt
from kernelcast.data.outcomes import labels
from kernelcast.data.schema import KernelRow, OccurrenceRow, PlanRow, ProgramRow
from kernelcast.data.store import Dataset
from kernelcast.errors import SchemaError
from kernelcast.features.graph import Featuriser, KernelGraph
from kernelcast.model.examples import Examples
from kernelcast.split import Novelty, Split, SplitPart, assign_kernels, novelty


@dataclass(frozen=True, kw_only=True)
class Part:
    """The labelled kernels of one part.

    Attributes:
        fingerprints: one per kernel.
        examples: graphs and labels in the same order.
    """

    fingerprints: tuple[str, ...]
    examples: Examples

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
    part_of = {program: split.part_of(family) for program, family in families(dataset).items()}
    occurrences = list(dataset.columns(OccurrenceRow, "program", "plan", "kernel"))
    parts = assign_kernels(((kernel, program) for program, _, kernel in occurrences), part_of)
    found = labels(dataset)
    seconds = dict(zip(found.fingerprints, found.seconds.tolist(), strict=True))
    wanted = {
        SplitPart.TRAIN: parts.train,
        SplitPart.VALIDATION: parts.validation,
        SplitPart.TEST: parts.test,
    }
    made = _featurised(dataset, wanted, seconds)
    for part, held in made.items():
        if not len(held):
            raise SchemaError(
                f"split {split.name} has no labelled kernel for {part.value}: collect programs of the "
                f"families {', '.join(sorted(f for f, p in split.families.items() if p is part))[:200]}"
            )
    names = dict(dataset.columns(ProgramRow, "program", "name"))
    untouched = {(r.program, r.plan) for r in dataset.rows(PlanRow) if r.how == "default"}
    test_programs: dict[str, set[str]] = {}
    defaults: set[str] = set()
    for program, plan, kernel in occurrences:
        if part_of[program] is SplitPart.TEST:
            test_programs.setdefault(kernel, set()).add(names[program])
            if (program, plan) in untouched:
                defaults.add(kernel)
    return LearningData(
        train=made[SplitPart.TRAIN],
        validation=made[SplitPart.VALIDATION],
        test=made[SplitPart.TEST],
        test_programs={kernel: frozenset(held) for kernel, held in test_programs.items()},
        test_defaults=frozenset(defaults),
        novelty=novelty(parts, dict(dataset.columns(KernelRow, "fingerprint", "skeleton"))),
        target=dataset.manifest.target,
        digest=dataset.manifest.digest,
        split=split,
    )


def _featurised(
    dataset: Dataset, wanted: Mapping[SplitPart, frozenset[str]], seconds: Mapping[str, float]
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
        )
        for part, graphs in kernels.items()
    }
