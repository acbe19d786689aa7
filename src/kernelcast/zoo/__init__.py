"""Programs by name: what the dataset is collected from, and what examples and tests compile.

Listing needs no JAX; building does.
"""

from __future__ import annotations

import difflib

from kernelcast.errors import KernelcastError
from kernelcast.zoo.catalogue import PROGRAMS
from kernelcast.zoo.file import from_hlo_file as from_hlo_file
from kernelcast.zoo.program import Variant as Variant
from kernelcast.zoo.program import ZooProgram as ZooProgram


def programs() -> tuple[ZooProgram, ...]:
    """All programs, in the catalogue's order."""
    return PROGRAMS


def variants() -> tuple[Variant, ...]:
    """All variants of all programs, in the catalogue's order."""
    return tuple(variant for program in PROGRAMS for variant in program.variants)


def find(name: str) -> Variant:
    """The variant of a ``program/variant`` id, or the first variant of a bare program name.

    Raises:
        KernelcastError: no such program or variant; names the closest ones.

    >>> find("rbf/512").id
    'rbf/512'
    """
    known = {variant.id: variant for variant in variants()}
    known |= {program.name: program.variants[0] for program in PROGRAMS}
    if name in known:
        return known[name]
    head, _, tail = name.partition("/")
    program = next((program for program in PROGRAMS if program.name == head), None)
    if program is not None:
        raise KernelcastError(
            f"zoo program {head} has no variant {tail!r}; it has: {', '.join(program.options)}"
        )
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else "`kernelcast zoo list` lists all of them."
    raise KernelcastError(f"there is no zoo program {name!r}; {hint}")
