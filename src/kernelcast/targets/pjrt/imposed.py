"""Compiling a given scheduled module in place of what XLA made, and checking that this is what ran."""

from __future__ import annotations

import re

import jax

from kernelcast.core.timing import Reason
from kernelcast.errors import HloError
from kernelcast.hlo.xla import proto_to_text, text_to_proto
from kernelcast.targets import client
from kernelcast.targets.worker import Failed

_METADATA = re.compile(r", (?:metadata|frontend_attributes|origin)=\{(?:[^{}]|\{[^{}]*\})*\}")


def compile_as(stablehlo: str, text: str, *, library: bool = True) -> tuple[client.Executable, str]:
    """An executable of a scheduled HLO module, and the compiler's final module as text.

    Args:
        stablehlo: a program of the same signature; what XLA makes of it is thrown away.
        text: the scheduled module that takes its place.

    Raises:
        Failed: COMPILE where XLA refuses the module, NOT_AS_ASKED where it compiled another one.
    """
    try:
        asked = text_to_proto(text)
        executable = client.compile_program(stablehlo, library=library, transform=lambda _: asked)
    except (HloError, jax.errors.JaxRuntimeError) as error:
        raise Failed(reason_of(error, Reason.COMPILE), str(error)) from error
    final = executable.final_text()
    difference = first_difference(proto_to_text(asked), final)
    if difference is not None:
        raise Failed(Reason.NOT_AS_ASKED, f"the final module differs from what was asked: {difference}")
    return executable, final


def reason_of(error: Exception, otherwise: Reason) -> Reason:
    """MEMORY where XLA says that it ran out of it, else the given reason."""
    return Reason.MEMORY if "RESOURCE_EXHAUSTED" in str(error) else otherwise


def first_difference(asked: str, final: str) -> str | None:
    """The first line in which two printed modules differ, or None.

    Metadata, the module's name and the order of its computations do not count.
    """
    asked_lines, final_lines = normalised(asked), normalised(final)
    for one, other in zip(asked_lines, final_lines, strict=False):
        if one != other:
            return f"{one.strip()[:200]!r} was asked for, {other.strip()[:200]!r} came out"
    if len(asked_lines) != len(final_lines):
        return f"{len(asked_lines)} lines were asked for, {len(final_lines)} came out"
    return None


def normalised(text: str) -> list[str]:
    """Lines of a printed module without its header and metadata, its computations sorted by name."""
    body = _METADATA.sub("", text.partition("\n")[2])
    computations = sorted(part.strip() for part in body.split("\n\n"))
    return [line for computation in computations for line in computation.splitlines()]
