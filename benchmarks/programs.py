"""The programs and kernels that benchmarks work on."""

from __future__ import annotations

from collections.abc import Iterable

import jax

from kernelcast import zoo
from kernelcast.core.kernel import Kernel
from kernelcast.fusion.extract import kernels_of
from kernelcast.hlo.program import Program
from kernelcast.hlo.text import parse

TRAINING_STEP = "transformer_train/b4"
SEVERAL = (TRAINING_STEP, "gpt/b4", "unet/b1", "lstm_language_model/b16")


def final_text(name: str) -> str:
    """The compiler's final module of a zoo program."""
    function, arguments = zoo.find(name).build()
    if isinstance(function, Program):
        raise SystemExit(f"{name} is a file of HLO; benchmarks take the zoo's JAX functions")
    return jax.jit(function).lower(*arguments).compile().as_text() or ""


def distinct_kernels(names: Iterable[str]) -> list[Kernel]:
    """The distinct kernels of zoo programs, in order of first occurrence."""
    found = (kernel for name in names for _, _, kernel in kernels_of(parse(final_text(name))))
    return list(dict.fromkeys(found))
