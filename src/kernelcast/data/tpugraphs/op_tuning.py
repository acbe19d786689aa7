"""Kernels that were tuned alone: a module as HLO text, and beside it the runs as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelcast.data.durable import write_durably
from kernelcast.data.tpugraphs.tuning import Profile, TileSizes, TuningRun
from kernelcast.errors import KernelcastError, SchemaError
from kernelcast.hlo.program import Program
from kernelcast.hlo.verify import parse_verified

MOST_BYTES = 64 << 20
_BOUNDS = ("kernel_bounds", "output_bounds", "input_bounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTuning:
    """One kernel and the tiles that were tried on it.

    Attributes:
        name: of the kernel and of its two files.
        device: that ran it, in the publisher's words.
        text: the kernel's module as HLO text.
        runs: in the order of the file; each configuration is a ``TileSizes``.
    """

    name: str
    device: str
    text: str
    runs: tuple[TuningRun, ...]

    @property
    def program(self) -> Program:
        """The kernel's module.

        Raises:
            HloError: the text cannot be read.
        """
        return parse_verified(self.text)


def read_op_tuning(path: Path) -> OpTuning:
    """The kernel of ``<name>.json`` and, beside it, ``<name>.hlo``.

    Raises:
        SchemaError: the JSON is of another form.
        KernelcastError: one of the two files cannot be read.
    """
    content = _read(path)
    try:
        held = json.loads(content)
        return OpTuning(
            name=str(held["name"]),
            device=str(held["device"]),
            text=_read(path.with_suffix(".hlo")),
            runs=tuple(_run(run) for run in held["runs"]),
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise SchemaError(
            f"{path}: expected a JSON object with name, device and runs, each with bounds, is_default, error "
            f"and time_ns: {type(error).__name__}: {error}"
        ) from error


def write_op_tuning(folder: Path, tuning: OpTuning) -> Path:
    """Writes both files and returns the path of the JSON, ``folder/<name>.json``.

    Raises:
        ValueError: a run has another configuration than a tile.
        StoreError: the folder cannot be written.
    """
    held = {"name": tuning.name, "device": tuning.device, "runs": [_as_json(run) for run in tuning.runs]}
    path = folder / f"{tuning.name}.json"
    write_durably(path.with_suffix(".hlo"), tuning.text.encode())
    write_durably(path, json.dumps(held, indent=0).encode())
    return path


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SchemaError(f"{path}: has more than {MOST_BYTES:,} bytes, which no kernel's file has")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path}: is no text file: {error}") from error
    except OSError as error:
        raise KernelcastError(f"{path}: cannot be read: {error.strerror}") from error


def _run(held: dict[str, Any]) -> TuningRun:
    unknown = set(held) - {*_BOUNDS, "is_default", "error", "time_ns"}
    if unknown:
        raise ValueError(f"a run has no {', '.join(sorted(unknown))}")
    bounds = {name: tuple(_integer(bound) for bound in held.get(name, ())) for name in _BOUNDS}
    return TuningRun(
        config=TileSizes(**bounds),
        is_default=_flag(held["is_default"]),
        is_error=_flag(held["error"]),
        profile=Profile(compute_time_ns=_integer(held["time_ns"])),
    )


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {value!r}")
    return value


def _as_json(run: TuningRun) -> dict[str, Any]:
    sizes = run.config
    if not isinstance(sizes, TileSizes) or sizes.iteration_bounds:
        raise ValueError(f"this form holds kernel, output and input bounds alone, got {sizes}")
    # Input windows are written only where there are some, as in the published files.
    bounds = {
        name: list(getattr(sizes, name)) for name in _BOUNDS if name != "input_bounds" or sizes.input_bounds
    }
    return {
        **bounds,
        "is_default": run.is_default,
        "time_ns": run.profile.compute_time_ns if run.profile else 0,
        "error": run.is_error,
    }
