"""What a study asks of a program, e.g. of a zoo variant."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from kernelcast.fusion.space import FusionSpace
from kernelcast.targets.protocol import Fuses


class StudiedProgram(Protocol):
    """A program with typical inputs."""

    @property
    def id(self) -> str:
        """Name that stays the same over time."""
        ...

    def build(self) -> tuple[object, tuple[Any, ...]]:
        """What a target captures: a function with its arguments as trees of shapes, or HLO without any."""
        ...

    def example_inputs(self, seed: int) -> list[np.ndarray]:
        """Valid values, one array per parameter, in order."""
        ...


def captured(program: StudiedProgram, target: Fuses) -> FusionSpace:
    """The fusion space of a program on a target."""
    source, arguments = program.build()
    return target.space(source, *arguments)
