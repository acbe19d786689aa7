"""Where the kernels of a dataset belong under a split: the same for every task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.data.kernels import families
from kernelcast.data.schema import KernelRow, OccurrenceRow, PlanRow, ProgramRow
from kernelcast.data.store import Dataset
from kernelcast.errors import SchemaError
from kernelcast.split import Novelty, Split, SplitPart, assign_kernels, novelty


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The kernels of a dataset by part, labelled or not; fingerprints.

    Attributes:
        kernels: by part.
        test_programs: names of the test programs that launch each test kernel.
        test_defaults: test kernels that the compiler's own default launches.
        novelty: the test kernels by how new they are.
        split: as given.
    """

    kernels: Mapping[SplitPart, frozenset[str]]
    test_programs: Mapping[str, frozenset[str]]
    test_defaults: frozenset[str]
    novelty: Novelty
    split: Split

    def check_filled(self, part: SplitPart, labelled: int) -> None:
        """Nothing, where a part has labelled kernels.

        Raises:
            SchemaError: it has none.
        """
        if not labelled:
            named = ", ".join(sorted(f for f, p in self.split.families.items() if p is part))
            raise SchemaError(
                f"split {self.split.name} has no labelled kernel for {part.value}: collect programs of the "
                f"families {named[:200]}"
            )


def placement(dataset: Dataset, split: Split) -> Placement:
    """Puts the kernels of a dataset into the parts of a split.

    Raises:
        SchemaError: a family that the split does not know.
    """
    part_of = {program: split.part_of(family) for program, family in families(dataset).items()}
    occurrences = list(dataset.columns(OccurrenceRow, "program", "plan", "kernel"))
    parts = assign_kernels(((kernel, program) for program, _, kernel in occurrences), part_of)
    names = dict(dataset.columns(ProgramRow, "program", "name"))
    untouched = {(r.program, r.plan) for r in dataset.rows(PlanRow) if r.how == "default"}
    test_programs: dict[str, set[str]] = {}
    defaults: set[str] = set()
    for program, plan, kernel in occurrences:
        if part_of[program] is SplitPart.TEST:
            test_programs.setdefault(kernel, set()).add(names[program])
            if (program, plan) in untouched:
                defaults.add(kernel)
    return Placement(
        kernels={
            SplitPart.TRAIN: parts.train,
            SplitPart.VALIDATION: parts.validation,
            SplitPart.TEST: parts.test,
        },
        test_programs={kernel: frozenset(held) for kernel, held in test_programs.items()},
        test_defaults=frozenset(defaults),
        novelty=novelty(parts, dict(dataset.columns(KernelRow, "fingerprint", "skeleton"))),
        split=split,
    )
