"""A tile dataset as a model sees it: kernels with their timed tiles, cut into parts by program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.tile import parse_tile
from kernelcast.data.kernels import rebuilt
from kernelcast.data.outcomes import TileLabels, tile_labels
from kernelcast.data.schema import KernelRow
from kernelcast.data.store import Dataset
from kernelcast.features.graph import Featuriser
from kernelcast.features.tiles import tile_rows
from kernelcast.jobs.learning.placement import placement
from kernelcast.model.examples import TiledKernel, TileExamples
from kernelcast.split import Novelty, Split, SplitPart


@dataclass(frozen=True, kw_only=True)
class TilePart:
    """The kernels of one part that have timed tiles.

    Attributes:
        fingerprints: one per kernel.
        examples: the kernels in the same order.
        defaults: number of the compiler's own tile of each; None where it has no time.
    """

    fingerprints: tuple[str, ...]
    examples: TileExamples
    defaults: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.fingerprints)


@dataclass(frozen=True, kw_only=True)
class TileLearningData:
    """A tile dataset under a split. No kernel of a test program trains, whatever else it occurs in.

    Attributes:
        train, validation, test: kernels with timed tiles.
        test_programs: names of the test programs that launch each test kernel, by fingerprint.
        novelty: the test kernels by how new they are.
        target: what the labels were timed on.
        digest: of the dataset.
        split: as given.
    """

    train: TilePart
    validation: TilePart
    test: TilePart
    test_programs: Mapping[str, frozenset[str]]
    novelty: Novelty
    target: TargetIdentity
    digest: str
    split: Split


def tile_learning_data(dataset: Dataset, split: Split) -> TileLearningData:
    """The kernels of a dataset that have timed tiles, featurised and cut by program.

    Raises:
        SchemaError: a family that the split does not know, or a part without any such kernel.
    """
    placed = placement(dataset, split)
    labelled = tile_labels(dataset)
    featuriser = Featuriser()
    found: dict[SplitPart, dict[str, TiledKernel]] = {part: {} for part in SplitPart}
    for row in dataset.rows(KernelRow):
        for part, members in placed.kernels.items():
            if row.fingerprint in members and row.fingerprint in labelled:
                found[part][row.fingerprint] = _tiled(row, labelled[row.fingerprint], featuriser)
    for part, held in found.items():
        placed.check_filled(part, len(held))
    made = {
        part: TilePart(
            fingerprints=tuple(held),
            examples=TileExamples(kernels=tuple(held.values())),
            defaults=tuple(labelled[fingerprint].default for fingerprint in held),
        )
        for part, held in found.items()
    }
    return TileLearningData(
        train=made[SplitPart.TRAIN],
        validation=made[SplitPart.VALIDATION],
        test=made[SplitPart.TEST],
        test_programs=placed.test_programs,
        novelty=placed.novelty,
        target=dataset.manifest.target,
        digest=dataset.manifest.digest,
        split=split,
    )


def _tiled(row: KernelRow, labels: TileLabels, featuriser: Featuriser) -> TiledKernel:
    return TiledKernel(
        graph=featuriser.graph(rebuilt(row)),
        tiles=tile_rows([parse_tile(text) for text in labels.tiles]),
        seconds=labels.seconds,
        analytical=labels.analytical_s,
    )
