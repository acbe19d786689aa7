"""The file of a tuning result: one JSON object with a version, which a replay can work from alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kernelcast.core.identity import TargetIdentity
from kernelcast.data.durable import write_durably
from kernelcast.errors import SchemaError
from kernelcast.fusion.plan import FusionPlan
from kernelcast.jobs.as_json import (
    decode_choice,
    encode_choice,
    null_or,
    number,
    outcome_from_json,
    outcome_to_json,
)
from kernelcast.jobs.comparison import Ratio
from kernelcast.jobs.tuning.judging import Judgement
from kernelcast.jobs.tuning.refine import Explored
from kernelcast.jobs.tuning.result import Tried, TuningResult
from kernelcast.report.files import read_text
from kernelcast.search.anneal import TraceStep

FORMAT = "kernelcast-tuning"
FORMAT_VERSION = 2


def write_tuning(result: TuningResult, path: Path) -> None:
    """Writes a result, whole or not at all.

    Raises:
        StoreError: the file cannot be written.
    """
    write_durably(path, (json.dumps(_to_json(result), ensure_ascii=False, indent=1) + "\n").encode())


def read_tuning(path: Path) -> TuningResult:
    """The result in a file.

    Raises:
        SchemaError: the file is something else, damaged, or of another version.
        OSError: it cannot be read.
    """
    try:
        record = json.loads(read_text(path))
        found = (record["format"], record["version"])
    except (ValueError, KeyError, TypeError):
        raise SchemaError(f"{path} is not a tuning result; `kernelcast tune` writes those") from None
    if found != (FORMAT, FORMAT_VERSION):
        raise SchemaError(
            f"{path} is a {found[0]} of version {found[1]}; this Kernelcast reads {FORMAT} version "
            f"{FORMAT_VERSION}"
        )
    try:
        return _from_json(record)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SchemaError(
            f"{path} is damaged: {type(error).__name__}: {error}; tune the program again"
        ) from error


def _to_json(result: TuningResult) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "program": result.program,
        "space": result.space,
        "rules": result.rules,
        "answer": encode_choice(result.answer),
        "judgement": {
            name: _ratio_to_json(value) if isinstance(value, Ratio) else value
            for name, value in ((name, getattr(result.judgement, name)) for name in _JUDGEMENT)
        },
        "tried": [
            {
                "choice": encode_choice(t.choice),
                "predicted_s": null_or(t.predicted_s),
                "output_error": null_or(t.output_error),
                "temporary_bytes": t.temporary_bytes,
                "outcome": outcome_to_json(t.outcome),
            }
            for t in result.tried
        ],
        "explored": [
            {
                "plan": e.plan.encode(),
                "predicted_s": null_or(e.predicted_s),
                "ratio": e.ratio,
                "batches": e.batches,
            }
            for e in result.explored
        ],
        "trace": [asdict(step) for step in result.trace],
        "estimator": result.estimator,
        "options": dict(result.options),
        "seed": result.seed,
        "target": asdict(result.target),
        "versions": dict(result.versions),
        "device_s": result.device_s,
        "model_s": result.model_s,
        "kernels_timed": result.kernels_timed,
        "date": result.date,
        "stablehlo": result.stablehlo,
    }


def _from_json(record: Mapping[str, Any]) -> TuningResult:
    judgement = record["judgement"]
    return TuningResult(
        program=str(record["program"]),
        stablehlo=str(record["stablehlo"]),
        space=str(record["space"]),
        rules=str(record["rules"]),
        answer=decode_choice(record["answer"]),
        judgement=Judgement(
            winner=judgement["winner"],
            answer=judgement["answer"],
            why=str(judgement["why"]),
            over_default=_ratio_from_json(judgement["over_default"]),
            over_library_off=_ratio_from_json(judgement["over_library_off"]),
            over_best_default=_ratio_from_json(judgement["over_best_default"]),
            control=_ratio(judgement["control"]),
        ),
        tried=tuple(
            Tried(
                choice=decode_choice(t["choice"]),
                predicted_s=number(t["predicted_s"]),
                output_error=number(t["output_error"]),
                temporary_bytes=int(t["temporary_bytes"]),
                outcome=outcome_from_json(t["outcome"]),
            )
            for t in record["tried"]
        ),
        explored=tuple(
            Explored(
                plan=FusionPlan.decode(e["plan"]),
                predicted_s=number(e["predicted_s"]),
                ratio=float(e["ratio"]),
                batches=int(e["batches"]),
            )
            for e in record["explored"]
        ),
        trace=tuple(TraceStep(**step) for step in record["trace"]),
        estimator=str(record["estimator"]),
        options=dict(record["options"]),
        seed=int(record["seed"]),
        target=TargetIdentity.from_json(record["target"]),
        versions=dict(record["versions"]),
        device_s=float(record["device_s"]),
        model_s=float(record["model_s"]),
        kernels_timed=int(record["kernels_timed"]),
        date=str(record["date"]),
    )


_JUDGEMENT = ("winner", "answer", "why", "over_default", "over_library_off", "over_best_default", "control")


def _ratio_to_json(ratio: Ratio) -> dict[str, Any]:
    return {**asdict(ratio), **{k: null_or(getattr(ratio, k)) for k in ("value", "lower", "upper")}}


def _ratio_from_json(fields: Mapping[str, Any] | None) -> Ratio | None:
    return None if fields is None else _ratio(fields)


def _ratio(fields: Mapping[str, Any]) -> Ratio:
    ratio = Ratio(**fields)
    return replace(ratio, value=number(ratio.value), lower=number(ratio.lower), upper=number(ratio.upper))
