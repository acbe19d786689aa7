"""What two measured times must have in common to be comparable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kernelcast.core.timing import Statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetIdentity:
    """What two times must have in common to be comparable.

    Attributes:
        kind: ``xla-cpu``, ``xla-tpu-aot`` …
        chip: model name of the processor as the system reports it.
        compiler: name and version, e.g. ``jaxlib 0.10.2``.
        flags: compiler and allocator settings that change code or time.
        threads: of one execution.
        clock: what counts the seconds.
        label: the statistic that makes one number of the samples.
    """

    kind: str
    chip: str
    compiler: str
    flags: tuple[str, ...] = ()
    threads: int = 1
    clock: str = "wall"
    label: Statistic = Statistic.GATED_MEDIAN

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that stand for the whole identity in tables."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> TargetIdentity:
        """The identity whose ``asdict`` was written as JSON."""
        values: dict[str, Any] = dict(fields)
        values["flags"], values["label"] = tuple(values["flags"]), Statistic(values["label"])
        return TargetIdentity(**values)

    def differences(self, other: TargetIdentity) -> str:
        """What differs from another identity, in words: ``label: a, not b; threads: 1, not 2``."""
        mine, theirs = asdict(self), asdict(other)
        return "; ".join(f"{k}: {mine[k]}, not {theirs[k]}" for k in mine if mine[k] != theirs[k])
