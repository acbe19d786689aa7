"""Whatever describes a program, as StableHLO text: what a PJRT compiler takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import jax
from jax import export

from kernelcast.errors import TargetError
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import Program
from kernelcast.hlo.text import parse
from kernelcast.hlo.xla import text_to_proto
from kernelcast.targets import client

_MAIN = re.compile(r"func\.func (?:public )?@main\((?P<arguments>.*)\)\s*->", re.DOTALL)
_ARGUMENT = re.compile(r"%arg(?P<number>\d+):")
_DONATION = re.compile(r"(?:tf\.aliasing_output = \d+ : i32|jax\.buffer_donor = true)(?:, )?")
_BYTECODE = b"ML\xefR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowering:
    """A program ready to compile.

    Attributes:
        stablehlo: MLIR text without donation: every form of the program that is timed must treat its inputs
            alike, and a module that comes from a transformation loses the donation.
        donated: parameters whose buffers the source gave away.
    """

    stablehlo: str
    donated: tuple[int, ...] = ()


def lower(source: object, *arguments: object) -> Lowering:
    """The StableHLO of a program.

    Args:
        source: a function of arrays, with ``arguments`` or their shapes; a ``jax.stages.Lowered``; a
            ``jax.export.Exported``; StableHLO as text or bytecode; HLO before optimisation as text or
            ``Program``.

    Raises:
        TargetError: for anything else, and for HLO that StableHLO has no words for, such as fusions.
    """
    if isinstance(source, str) and source.lstrip().startswith("HloModule"):
        source = parse(source)
    if isinstance(source, Program):
        kept = source.with_attribute("input_output_alias", None).with_attribute("buffer_donor", None)
        donated = tuple(sorted({alias.parameter for alias in source.aliases}))
        return Lowering(stablehlo=_of_hlo(kept), donated=donated)
    if isinstance(source, jax.stages.Wrapped):
        # Jitted once more below, it does not give its arguments away.
        leaves = jax.tree.leaves(source.lower(*arguments).args_info)
        donated = tuple(number for number, leaf in enumerate(leaves) if leaf.donated)
        return Lowering(stablehlo=_stablehlo(source, arguments), donated=donated)
    return _without_donation(_stablehlo(source, arguments))


def _without_donation(text: str) -> Lowering:
    main = _MAIN.search(text)
    if main is None:
        raise TargetError("the StableHLO has no function @main; a program needs one")
    pieces = _ARGUMENT.split(main["arguments"])
    donated = [
        int(number)
        for number, piece in zip(pieces[1::2], pieces[2::2], strict=True)
        if _DONATION.search(piece)
    ]
    signature = re.sub(r" \{\s*\}", "", re.sub(r", \}", "}", _DONATION.sub("", main["arguments"])))
    stablehlo = text[: main.start("arguments")] + signature + text[main.end("arguments") :]
    return Lowering(stablehlo=stablehlo, donated=tuple(donated))


def _stablehlo(source: object, arguments: tuple[object, ...]) -> str:
    if isinstance(source, jax.stages.Lowered):
        return str(source.as_text())
    if isinstance(source, export.Exported):
        return str(source.mlir_module())
    if isinstance(source, bytes) and source.startswith(_BYTECODE):
        return client.stablehlo_text(source)
    if isinstance(source, str):
        return source
    if callable(source):
        function = cast("Callable[..., Any]", source)
        # Unused arguments stay parameters, so that parameters and arguments have the same numbers.
        return str(jax.jit(function, keep_unused=True).lower(*arguments).as_text())
    raise TargetError(
        f"cannot lower a {type(source).__name__}; give a function, jax.stages.Lowered, jax.export.Exported, "
        "StableHLO text or bytecode, or HLO text before optimisation"
    )


def _of_hlo(program: Program) -> str:
    try:
        return client.stablehlo_of_hlo(text_to_proto(format_program(program)))
    except RuntimeError as error:
        raise TargetError(
            f"this HLO has no StableHLO ({error}); give the program before optimisation, or time its kernels"
        ) from error
