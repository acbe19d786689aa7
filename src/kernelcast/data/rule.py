"""When a dataset takes a kernel as measured: its own rule, written in its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kernelcast.core.timing import Failure, Reason, Statistic, Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRule:
    """How often and how far apart a kernel is timed, and what makes its samples good enough.

    Attributes:
        gated_rounds: least number of rounds taken on a quiet machine, over all visits.
        passes: visits that every kernel gets.
        extra_passes: more visits for kernels that lack gated rounds after those.
        spacing_s: least seconds between two visits, so that they meet different states of the machine.
        rounds_per_visit: gated rounds after which a visit ends.
        tries_per_visit: rounds after which it ends anyhow.
        input_policy: name of the rule that chooses the inputs' values.
    """

    gated_rounds: int = 3
    passes: int = 2
    extra_passes: int = 4
    spacing_s: float = 60.0
    rounds_per_visit: int = 3
    tries_per_visit: int = 8
    input_policy: str = "typical-1"

    def __post_init__(self) -> None:
        counts = (self.gated_rounds, self.passes, self.rounds_per_visit, self.tries_per_visit)
        if min(counts) < 1 or self.extra_passes < 0 or self.spacing_s < 0:
            raise ValueError(f"rounds and passes must be positive and spacing not negative, got {self}")

    def judge(self, timing: Timing, statistic: Statistic) -> Timing | Failure:
        """The timing where it meets this rule, else why not, samples kept."""
        slopes = timing.slopes_s()
        if slopes.size < self.gated_rounds:
            message = (
                f"{slopes.size} quiet rounds of {self.gated_rounds} wanted, {len(timing.samples)} samples"
            )
            return Failure(reason=Reason.TOO_LOUD, message=message, samples=timing.samples)
        label_s = timing.seconds(statistic)
        if not label_s > 0 or not np.isfinite(label_s):
            message = f"the label would be {label_s:.3g} s"
            return Failure(reason=Reason.NO_SLOPE, message=message, samples=timing.samples)
        return timing

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> LabelRule:
        """The rule that ``to_json`` wrote."""
        return LabelRule(**fields)
