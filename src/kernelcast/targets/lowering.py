"""Whatever describes a program, as StableHLO text without donation: what a PJRT compiler takes here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import jax

from kernelcast.errors import TargetError
from kernelcast.hlo.sources import to_stablehlo

_MAIN = re.compile(r"func\.func (?:public )?@main\((?P<arguments>.*?)\)\s*->", re.DOTALL)
_ARGUMENT = re.compile(r"%arg(?P<number>\d+):")
_DONATION = re.compile(r"(?:tf\.aliasing_output = \d+ : i32|jax\.buffer_donor = true)(?:, )?")
# How a module that comes from HLO says the same.
_ALIASES = re.compile(r"mhlo\.input_output_alias = \[(?P<aliases>[^]]*(?:\[[^]]*\][^]]*)*)\]")
_ALIASED_PARAMETER = re.compile(r"parameter_number = (\d+)")


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


def lower(source: object, *arguments: object, platform: str | None = None) -> Lowering:
    """The StableHLO of a program.

    Args:
        source: a function of arrays, with ``arguments`` or their shapes, or anything else that
            ``kernelcast.hlo.sources.to_stablehlo`` takes: ``jax.stages.Lowered``, exported functions,
            StableHLO, HLO before optimisation, ``Program``, paths.
        platform: that a function is lowered for, e.g. ``tpu``; this machine's for None. What is lowered
            already stays as it is.

    Raises:
        KernelcastError: for anything else, and for HLO that StableHLO has no words for, such as fusions.
    """
    donated: tuple[int, ...] = ()
    if isinstance(source, jax.stages.Wrapped):
        leaves = jax.tree.leaves(source.lower(*arguments).args_info)
        donated = tuple(number for number, leaf in enumerate(leaves) if leaf.donated)
    elif platform is None or isinstance(source, jax.stages.Compiled) or not callable(source):
        return _without_donation(to_stablehlo(source, *arguments))
    # Jitted anew, it does not give its arguments away, and unused ones stay parameters.
    anew = jax.jit(cast("Callable[..., Any]", source), keep_unused=True)
    platforms = None if platform is None else (platform,)
    lowered = anew.trace(*arguments).lower(lowering_platforms=platforms)
    return Lowering(stablehlo=str(lowered.as_text()), donated=donated)


def _without_donation(text: str) -> Lowering:
    main = _MAIN.search(text)
    if main is None:
        raise TargetError("the StableHLO has no function @main; a program needs one")
    aliases = _ALIASES.search(text)
    pieces = _ARGUMENT.split(main["arguments"])
    donated = [
        int(number)
        for number, piece in zip(pieces[1::2], pieces[2::2], strict=True)
        if _DONATION.search(piece)
    ]
    if aliases is not None:
        donated += [int(number) for number in _ALIASED_PARAMETER.findall(aliases["aliases"])]
    signature = re.sub(r" \{\s*\}", "", re.sub(r", \}", "}", _DONATION.sub("", main["arguments"])))
    stablehlo = text[: main.start("arguments")] + signature + text[main.end("arguments") :]
    stablehlo = _ALIASES.sub("mhlo.input_output_alias = []", stablehlo)
    return Lowering(stablehlo=stablehlo, donated=tuple(sorted(set(donated))))
