"""Learned performance models for XLA programs, and a fusion autotuner that uses them instead of hardware.

>>> import kernelcast
>>> program = kernelcast.parse('''HloModule m
... ENTRY e {
...   x = f32[4] parameter(0)
...   ROOT y = f32[4] tanh(x)
... }''')
>>> program.entry_computation.root_instruction.opcode
'tanh'

Names are imported when they are first used: ``import kernelcast`` loads neither JAX nor NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelcast.errors import KernelcastError as KernelcastError
    from kernelcast.hlo.format import format_program as format_program
    from kernelcast.hlo.program import Program as Program
    from kernelcast.hlo.sources import load as load
    from kernelcast.hlo.text import parse as parse
    from kernelcast.jobs.functions import autotune as autotune
    from kernelcast.jobs.functions import predict as predict
    from kernelcast.jobs.tuning.result import TuningResult as TuningResult
    from kernelcast.jobs.tuning.tuned_function import TunedFunction as TunedFunction
    from kernelcast.model.predict import Predictor as Predictor
    from kernelcast.targets.pjrt.xla_cpu import XlaCpu as XlaCpu

_HOME = {
    "KernelcastError": "kernelcast.errors",
    "Predictor": "kernelcast.model.predict",
    "Program": "kernelcast.hlo.program",
    "TunedFunction": "kernelcast.jobs.tuning.tuned_function",
    "TuningResult": "kernelcast.jobs.tuning.result",
    "XlaCpu": "kernelcast.targets.pjrt.xla_cpu",
    "autotune": "kernelcast.jobs.functions",
    "format_program": "kernelcast.hlo.format",
    "load": "kernelcast.hlo.sources",
    "parse": "kernelcast.hlo.text",
    "predict": "kernelcast.jobs.functions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kernelcast' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
