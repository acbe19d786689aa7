"""The estimator that a user names: a checkpoint, several of them, or what this package brings along."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from kernelcast.core.estimate import Estimator
from kernelcast.errors import KernelcastError, SchemaError
from kernelcast.jobs.programs.target_terms import FILE_NAME, TargetTerms
from kernelcast.model.checkpoint import DESCRIPTION
from kernelcast.model.predict import Ensemble, Predictor
from kernelcast.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEstimator:
    """An estimator with a name that says which weights it has.

    Attributes:
        name: e.g. ``gnn_static × 3, 0123456789abcdef``: model, members, digest of their descriptions.
        terms: of the target, from the folder's file; None where it has none.
        splits: digests of the splits that its members were trained with.
    """

    name: str
    estimator: Estimator
    terms: TargetTerms | None
    splits: frozenset[str]

    def check_split(self, split: Split) -> None:
        """Nothing, where all members were trained with a split.

        Raises:
            SchemaError: one was not: the programs that this split tests may have trained it.
        """
        if self.splits != frozenset({split.digest}):
            raise SchemaError(
                f"{self.name} was trained with split {', '.join(sorted(self.splits))}, not with {split.name} "
                f"({split.digest}): it may know what is tested; name its own split with --split"
            )


def named_estimator(folder: Path | None) -> NamedEstimator:
    """The estimator of a checkpoint folder, or of a folder of checkpoint folders: their geometric mean.

    Args:
        folder: None for the bundled checkpoints.

    Raises:
        SchemaError: not a checkpoint, damaged, or of another schema.
        KernelcastError: nothing is bundled.
    """
    place = folder if folder is not None else bundled()
    found = checkpoints_in(place)
    members = [Predictor.load(path) for path in found]
    digest = hashlib.blake2b(digest_size=8)
    for path in found:
        digest.update((path / DESCRIPTION).read_bytes())
    models = sorted({member.provenance.name for member in members})
    return NamedEstimator(
        name=f"{'+'.join(models)} × {len(members)}, {digest.hexdigest()}",
        estimator=members[0] if len(members) == 1 else Ensemble(members),
        terms=TargetTerms.read(place / FILE_NAME) if (place / FILE_NAME).exists() else None,
        splits=frozenset(member.provenance.split for member in members),
    )


def checkpoints_in(folder: Path) -> list[Path]:
    """The folder itself where it is a checkpoint, else the checkpoints right below it, by name."""
    if (folder / DESCRIPTION).exists():
        return [folder]
    found = sorted(path.parent for path in folder.glob(f"*/{DESCRIPTION}"))
    if not found:
        raise SchemaError(
            f"{folder} is no checkpoint and holds none: expected {DESCRIPTION} in it or in folders below; "
            "`kernelcast train` makes checkpoints"
        )
    return found


def bundled() -> Path:
    """The folder of the checkpoints that come with the package."""
    folder = Path(str(resources.files("kernelcast"))) / "checkpoints"
    if not any(folder.glob(f"*/{DESCRIPTION}")):
        raise KernelcastError(
            "this installation brings no checkpoint along; train one with `kernelcast train` and name its "
            "folder with --checkpoint"
        )
    return folder


def checkpoints_by_model(folder: Path) -> dict[str, list[Path]]:
    """The checkpoints below a folder, by the model that each holds.

    Raises:
        SchemaError: there is none.
    """
    found: dict[str, list[Path]] = {}
    for path in checkpoints_in(folder):
        found.setdefault(Predictor.load(path).provenance.name, []).append(path)
    return found
