"""A program that a user names: one of the zoo's, or a file or folder that holds one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernelcast import zoo
from kernelcast.errors import KernelcastError
from kernelcast.hlo.program import Program
from kernelcast.hlo.sources import Stage, load, to_stablehlo
from kernelcast.hlo.text import parse
from kernelcast.targets.lowering import lower


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProgram:
    """A program ready to compile.

    Attributes:
        name: zoo id, or the path as given.
        stablehlo: MLIR text, without donation.
        donated: parameters that the source gives away; copied here.
        inputs: typical values by parameter number, where the program brings them.
    """

    name: str
    stablehlo: str
    donated: tuple[int, ...] = ()
    inputs: Mapping[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])


def named_program(name: str, *, seed: int = 0) -> NamedProgram:
    """The program behind a name.

    Args:
        name: ``program/variant`` or ``program`` of the zoo, unless a file or folder of that name exists; else
            the path of HLO before optimisation, StableHLO, an exported JAX function or an XLA dump folder.
        seed: of a zoo program's inputs.

    Raises:
        KernelcastError: neither the zoo nor the file system has it, or it holds no program.
        HloError: it cannot be read.
    """
    if Path(name).exists():
        lowering = lower(to_stablehlo(Path(name)))
        return NamedProgram(name=name, stablehlo=lowering.stablehlo, donated=lowering.donated)
    if looks_like_path(name):
        raise KernelcastError(f"{name}: there is no such file or folder")
    variant = zoo.find(name)
    function, arguments = variant.build()
    lowering = lower(function, *arguments)
    return NamedProgram(
        name=variant.id,
        stablehlo=lowering.stablehlo,
        donated=lowering.donated,
        inputs=dict(enumerate(variant.example_inputs(seed))),
    )


def final_module(name: str, capture: Callable[[str], str]) -> Program:
    """The scheduled module behind a name: the file's own where it is optimised already, else a compiler's.

    Args:
        name: as ``named_program`` takes it; optimised HLO too.
        capture: from StableHLO to the compiler's final module as text.

    Raises:
        KernelcastError: as ``named_program``.
    """
    if Path(name).exists():
        loaded = load(Path(name))
        if loaded.stage is Stage.OPTIMISED:
            return loaded.program
    return parse(capture(named_program(name).stablehlo))


def looks_like_path(name: str) -> bool:
    """Whether a name that the zoo lacks was meant as a path."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or Path(name).suffix != ""
