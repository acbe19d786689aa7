"""What has been read of a module while its text is being read."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelcast.hlo.program import Computation
from kernelcast.hlo.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One instruction's call of a computation, with its place in the text for an error message."""

    caller: str
    instruction: str
    callee: str
    position: int


@dataclass(slots=True, kw_only=True)
class ModuleParts:
    """What has been read of a module so far.

    Attributes:
        is_scheduled: whether the order of instructions is a schedule, and must not be changed.
        places: where each instruction of each computation stands in the text.
        results: the shape of each computation's root.
        unnamed: how many computations were written in place of a name.
        nesting: how many computations and operands, each written inside the other, are being read.
    """

    is_scheduled: bool = False
    computations: dict[str, Computation] = field(default_factory=dict[str, Computation])
    calls: list[Call] = field(default_factory=list[Call])
    places: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    results: dict[str, Shape] = field(default_factory=dict[str, Shape])
    unnamed: int = 0
    nesting: int = 0

    def unused_name(self) -> str:
        """A name for a computation that has none, as XLA's parser makes it."""
        name = "_"
        while name in self.computations:
            self.unnamed += 1
            name = f"_.{self.unnamed}"
        return name
