"""The tables of a dataset: one row type each, its key, and the Parquet columns that hold it.

Times are kept as raw samples in four parallel list columns (``runs``, ``seconds``, ``loudness``, ``round``);
every statistic is derived on reading. float32 holds a call's seconds to 6e-8 of its value, far below the
clock's own noise, at half the size of float64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Protocol, TypeVar

SCHEMA = "kernelcast-dataset-1"


class Column(Enum):
    """What a column holds."""

    TEXT = "text"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT32_LIST = "list of int32"
    FLOAT32_LIST = "list of float32"


_TEXT = Column.TEXT
SAMPLES: Mapping[str, Column] = MappingProxyType(
    {
        "clock": _TEXT,
        "method": _TEXT,
        "cache": _TEXT,
        "overhead_s": Column.FLOAT64,
        "runs": Column.INT32_LIST,
        "seconds": Column.FLOAT32_LIST,
        "loudness": Column.FLOAT32_LIST,
        "round": Column.INT32_LIST,
        "failure": _TEXT,
        "message": _TEXT,
    }
)


class Row(Protocol):
    """One row of a table: a frozen dataclass whose fields are the columns."""

    TABLE: ClassVar[str]
    KEY: ClassVar[tuple[str, ...]]
    COLUMNS: ClassVar[Mapping[str, Column]]


RowT = TypeVar("RowT", bound=Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """A ``Timing`` or ``Failure`` as columns; ``data.samples`` converts.

    Attributes:
        failure: reason of a failure, empty for a timing.
        message: of the failure, empty for a timing.
    """

    clock: str
    method: str
    cache: str
    overhead_s: float
    runs: Sequence[int]
    seconds: Sequence[float]
    loudness: Sequence[float]
    round: Sequence[int]
    failure: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """A unique kernel.

    Attributes:
        text: canonical HLO text, from which the kernel is rebuilt and whose hash is the fingerprint.
        nodes: instructions, those of fused computations included.
    """

    TABLE: ClassVar[str] = "kernels"
    KEY: ClassVar[tuple[str, ...]] = ("fingerprint",)
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "fingerprint": _TEXT, "skeleton": _TEXT, "kind": _TEXT, "nodes": Column.INT32, "text": _TEXT,
    }  # fmt: skip

    fingerprint: str
    skeleton: str
    kind: str
    nodes: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRow:
    """The outcome of timing one kernel once.

    Attributes:
        occasion: when and where; see ``OccasionRow``.
        kernel: fingerprint.
        tile: ``Tile.text``, empty for none.
        target: digest of the target's identity.
        input_policy: name of the rule that chose the inputs' values.
        samples: raw samples or failure.
    """

    TABLE: ClassVar[str] = "measurements"
    KEY: ClassVar[tuple[str, ...]] = ("occasion", "kernel", "tile", "target", "input_policy")
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "occasion": _TEXT, "kernel": _TEXT, "tile": _TEXT, "target": _TEXT, "input_policy": _TEXT, **SAMPLES,
    }  # fmt: skip

    occasion: str
    kernel: str
    tile: str
    target: str
    input_policy: str
    samples: SampleColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRow:
    """A program that kernels came from.

    Attributes:
        program: identifier, unique: the zoo name with its variant.
        name: the zoo name; counts of programs count names.
        family: programs of one architecture.
        variant: batch, size, precision, inference or training, as text.
        source: where it comes from: ``zoo``, a file name …
        licence: of the source, SPDX where there is one.
        space: digest of its fusion space.
    """

    TABLE: ClassVar[str] = "programs"
    KEY: ClassVar[tuple[str, ...]] = ("program",)
    COLUMNS: ClassVar[Mapping[str, Column]] = dict.fromkeys(
        ("program", "name", "family", "variant", "source", "licence", "space"), _TEXT
    )

    program: str
    name: str
    family: str
    variant: str
    source: str
    licence: str
    space: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A fusion plan of a program.

    Attributes:
        plan: digest of the encoded plan, or ``untouched`` or ``library-off``.
        encoded: the plan as text, empty for the two defaults.
        how: how it was made: ``default``, ``library-off``, ``random`` …
    """

    TABLE: ClassVar[str] = "plans"
    KEY: ClassVar[tuple[str, ...]] = ("program", "plan")
    COLUMNS: ClassVar[Mapping[str, Column]] = dict.fromkeys(("program", "plan", "encoded", "how"), _TEXT)

    program: str
    plan: str
    encoded: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceRow:
    """That one plan of a program launches a kernel.

    Attributes:
        calls: places in the program that launch it.
        times: launches in one run of the program, over all those places, loops included.
        trip_source: the least certain of the trip counts behind ``times``: exact, known, assumed or measured.
    """

    TABLE: ClassVar[str] = "occurrences"
    KEY: ClassVar[tuple[str, ...]] = ("program", "plan", "kernel")
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "program": _TEXT, "plan": _TEXT, "kernel": _TEXT, "calls": Column.INT32, "times": Column.FLOAT64,
        "trip_source": _TEXT,
    }  # fmt: skip

    program: str
    plan: str
    kernel: str
    calls: int
    times: float
    trip_source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRow:
    """That a program's plans were drawn, so that a resumed collection need not draw them again.

    Attributes:
        random_plans: how many were asked for besides the two defaults.
        problem: why the program gave nothing, empty where it gave plans.
    """

    TABLE: ClassVar[str] = "surveys"
    KEY: ClassVar[tuple[str, ...]] = ("program", "seed", "random_plans")
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "program": _TEXT, "seed": Column.INT64, "random_plans": Column.INT32, "problem": _TEXT,
    }  # fmt: skip

    program: str
    seed: int
    random_plans: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTimingRow:
    """The outcome of timing a whole program under one plan.

    Attributes:
        output_error: largest error of an output against the untouched program, over that output's magnitude.
        temporary_bytes: what the executable allocates besides inputs and outputs.
    """

    TABLE: ClassVar[str] = "program_timings"
    KEY: ClassVar[tuple[str, ...]] = ("program", "plan", "target", "occasion")
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "program": _TEXT, "plan": _TEXT, "target": _TEXT, "occasion": _TEXT,
        "output_error": Column.FLOAT64, "temporary_bytes": Column.INT64, **SAMPLES,
    }  # fmt: skip

    program: str
    plan: str
    target: str
    occasion: str
    output_error: float
    temporary_bytes: int
    samples: SampleColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionRow:
    """At most thirty minutes of collection by one process.

    Attributes:
        occasion: identifier: UTC start and process.
        started: UTC, ISO 8601.
        machine: processor and operating system.
        versions: ``name version`` of what could change a time, joined by commas.
        load: one-minute load average at the start.
        seed: of the collection.
    """

    TABLE: ClassVar[str] = "occasions"
    KEY: ClassVar[tuple[str, ...]] = ("occasion",)
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "occasion": _TEXT, "started": _TEXT, "machine": _TEXT, "versions": _TEXT, "load": Column.FLOAT32,
        "seed": Column.INT64,
    }  # fmt: skip

    occasion: str
    started: str
    machine: str
    versions: str
    load: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorRow:
    """The same few kernels and one program, timed at both ends of each occasion to compare occasions.

    Attributes:
        end: ``start`` or ``end`` of the occasion.
        subject: fingerprint of the kernel, or identifier of the program.
    """

    TABLE: ClassVar[str] = "anchors"
    KEY: ClassVar[tuple[str, ...]] = ("occasion", "end", "subject")
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "occasion": _TEXT, "end": _TEXT, "subject": _TEXT, **SAMPLES,
    }  # fmt: skip

    occasion: str
    end: str
    subject: str
    samples: SampleColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class TileRow:
    """A valid tile of a kernel. What it costs is told by two columns that never mix: the analytical seconds
    of the target's own compiler here, the measured or simulated samples in ``measurements``, whose ``tile``
    is this one.

    Attributes:
        kernel: fingerprint.
        target: digest of the identity of the target whose compiler listed it.
        tile: ``Tile.text``; empty for the kernel as the compiler compiles it by itself, whatever its tile.
        is_default: 1 where the compiler itself chooses it, else 0.
        analytical_s: seconds by the compiler's analytical model; NaN where it gives none.
    """

    TABLE: ClassVar[str] = "tiles"
    KEY: ClassVar[tuple[str, ...]] = ("kernel", "target", "tile")
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "kernel": _TEXT, "target": _TEXT, "tile": _TEXT, "is_default": Column.INT32,
        "analytical_s": Column.FLOAT64,
    }  # fmt: skip

    kernel: str
    target: str
    tile: str
    is_default: int
    analytical_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TileListingRow:
    """That a kernel's valid tiles were listed, so that a resumed collection need not list them again.

    Attributes:
        seed: of the sample, where not all tiles were taken.
        most: tiles that were to be taken, at most.
        valid: how many the compiler listed.
        problem: why the kernel gave no list, empty where it gave one.
    """

    TABLE: ClassVar[str] = "tile_listings"
    KEY: ClassVar[tuple[str, ...]] = ("kernel", "target", "seed", "most")
    COLUMNS: ClassVar[Mapping[str, Column]] = {
        "kernel": _TEXT, "target": _TEXT, "seed": Column.INT64, "most": Column.INT32, "valid": Column.INT64,
        "problem": _TEXT,
    }  # fmt: skip

    kernel: str
    target: str
    seed: int
    most: int
    valid: int
    problem: str


_FUSION_ROW_TYPES: tuple[type[Row], ...] = (
    KernelRow, MeasurementRow, ProgramRow, PlanRow, OccurrenceRow, SurveyRow, ProgramTimingRow, OccasionRow,
    AnchorRow,
)  # fmt: skip
ROW_TYPES: tuple[type[Row], ...] = (*_FUSION_ROW_TYPES, TileRow, TileListingRow)


def columns_digest(row_types: Sequence[type[Row]] = ROW_TYPES) -> str:
    """16 hexadecimal digits that change with any table, column, type or key."""
    text = "\n".join(
        f"{t.TABLE} {t.KEY} {[(name, kind.value) for name, kind in t.COLUMNS.items()]}" for t in row_types
    )
    return hashlib.blake2b(f"{SCHEMA}\n{text}".encode(), digest_size=8).hexdigest()


# Datasets from before there were tiles: the same tables without those two.
READABLE_COLUMNS = frozenset({columns_digest(), columns_digest(_FUSION_ROW_TYPES)})
