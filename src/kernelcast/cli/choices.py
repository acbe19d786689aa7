"""Options that name several things: processors, seeds, programs."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from kernelcast.zoo import Variant


class Task(StrEnum):
    """What is learned: times of kernels under fusion plans, or the order of a kernel's tiles."""

    FUSION = "fusion"
    TILE = "tile"


def usable_cpus(text: str) -> tuple[int, ...]:
    """The processors that an option names; all of this process where it names none."""
    return tuple(integers(text, "--cpus")) if text else tuple(sorted(os.sched_getaffinity(0)))


def integers(text: str, option: str) -> list[int]:
    """The numbers of a comma-separated list."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise typer.BadParameter(f"{option} takes numbers with commas between them, got {text!r}") from None


def chosen_variants(names: list[str] | None) -> list[Variant]:
    """The zoo's variants of these names: a program's name stands for all its variants; all for none."""
    from kernelcast import zoo

    if not names:
        return list(zoo.variants())
    by_program = {p.name: p.variants for p in zoo.programs()}
    return [v for name in names for v in by_program.get(name) or (zoo.find(name),)]
