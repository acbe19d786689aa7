"""Traces as short text, for journals: a study compiles once and replays under many constants."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

from kernelcast.errors import SchemaError
from kernelcast.targets.tpu.schedule.trace import Adjust, Compute, Direction, Event, Transfer, Wait

_DIRECTIONS = tuple(Direction)


def pack(events: Iterable[Event]) -> str:
    """The events as one word.

    >>> unpack(pack([Compute(3), Wait(flag=1, granules=4)]))
    (Compute(cycles=3), Wait(flag=1, granules=4))
    """
    rows = json.dumps([_row(event) for event in events], separators=(",", ":"))
    return base64.b85encode(zlib.compress(rows.encode(), level=9)).decode()


def unpack(text: str) -> tuple[Event, ...]:
    """The events that ``pack`` took.

    Raises:
        SchemaError: another text.
    """
    try:
        rows = json.loads(zlib.decompress(base64.b85decode(text)))
        return tuple(_event(row) for row in rows)
    except (ValueError, zlib.error, TypeError, IndexError) as error:
        raise SchemaError(
            f"got {text[:40]!r}… where a packed trace is needed; remove the file that holds it: {error}"
        ) from error


def _row(event: Event) -> list[Any]:
    match event:
        case Compute():
            return [event.cycles]
        case Wait():
            return ["w", event.flag, event.granules]
        case Adjust():
            return ["a", event.flag, event.granules]
        case Transfer():
            return [
                "t", _DIRECTIONS.index(event.direction), event.granules, event.hbm_steps, event.hbm_stride,
                event.vmem_steps, event.vmem_stride, event.flag, int(event.is_described),
            ]  # fmt: skip


def _event(row: list[Any]) -> Event:
    if len(row) == 1:
        return Compute(row[0])
    kind, *values = row
    if kind == "w":
        return Wait(*values)
    if kind == "a":
        return Adjust(*values)
    direction, *rest, is_described = values
    return Transfer(_DIRECTIONS[direction], *rest, is_described=bool(is_described))
