"""Choices and outcomes as what JSON holds, for result files and journals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kernelcast.core.timing import Failure, Timing
from kernelcast.data.samples import from_columns, to_columns
from kernelcast.data.schema import SampleColumns
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched

Choice = FusionPlan | Untouched | LibraryOff


def encode_choice(choice: Choice) -> str:
    """One line of text for a plan or a default."""
    return choice.encode() if isinstance(choice, FusionPlan) else str(choice)


def decode_choice(text: str) -> Choice:
    """What ``encode_choice`` wrote.

    Raises:
        PlanError: it is none of these.
    """
    defaults: dict[str, Choice] = {"untouched": Untouched(), "library-off": LibraryOff()}
    return defaults[text] if text in defaults else FusionPlan.decode(text)


def outcome_to_json(outcome: Timing | Failure) -> dict[str, Any]:
    """Raw samples or a failure as what JSON holds; a missing loudness is null."""
    columns = asdict(to_columns(outcome))
    columns["loudness"] = [None if math.isnan(x) else round(x, 4) for x in columns["loudness"]]
    return columns


def outcome_from_json(columns: Mapping[str, Any]) -> Timing | Failure:
    """What ``outcome_to_json`` made."""
    values = dict(columns)
    values["loudness"] = [math.nan if x is None else float(x) for x in values["loudness"]]
    return from_columns(SampleColumns(**values))


def null_or(value: float) -> float | None:
    """The number, or null for NaN and infinity, which JSON lacks."""
    return value if math.isfinite(value) else None


def number(value: float | None) -> float:
    """What ``null_or`` made; null is NaN."""
    return math.nan if value is None else float(value)
