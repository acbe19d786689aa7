"""The TPU chips that the ahead-of-time compiler knows."""

from __future__ import annotations

from dataclasses import dataclass

from kernelcast.errors import TargetError


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuChip:
    """One generation of TPU.

    Attributes:
        name: of the target, e.g. ``tpu_v3``.
        topology: the smallest one that the compiler accepts.
        is_validated: whether simulated times were compared with measured ones.
    """

    name: str
    topology: str
    is_validated: bool = False

    @property
    def validation(self) -> str:
        """What is known about simulated times of this chip, for people."""
        return (
            "the simulator was compared with published runs, on schedules narrowed to two buffers"
            if self.is_validated
            else "simulated times are not validated: no measured runs were compared"
        )


# A topology of a single chip is refused; one core of the smallest is compiled for.
_TOPOLOGIES = {
    "tpu_v2": "v2:2x2",
    "tpu_v3": "v3:2x2",
    "tpu_v4": "v4:2x2x1",
    "tpu_v5e": "v5e:2x2",
    "tpu_v5p": "v5p:2x2x1",
    "tpu_v6e": "v6e:2x2",
    "tpu7x": "tpu7x:2x2x1",
}
CHIPS = {
    name: TpuChip(name=name, topology=topology, is_validated=name == "tpu_v3")
    for name, topology in _TOPOLOGIES.items()
}


def chip(name: str) -> TpuChip:
    """The chip of that name.

    Raises:
        TargetError: there is no such chip.

    >>> chip("tpu_v3").topology
    'v3:2x2'
    """
    if name not in CHIPS:
        raise TargetError(f"got target {name!r}; the TPU targets are {', '.join(CHIPS)}")
    return CHIPS[name]
