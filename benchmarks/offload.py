"""How much longer generated loops take for a single operation than the backend's library.

Run: ``python benchmarks/offload.py [opcode …]``; the table that it is about is ``fusion/library.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from kernelcast.core.kernel import Kernel, Kind
from kernelcast.core.timing import Failure, Statistic, Timing
from kernelcast.fusion.library import YNNPACK
from kernelcast.hlo.text import parse
from kernelcast.targets.pjrt.xla_cpu import XlaCpu
from kernelcast.targets.protocol import Candidate
from rounds import print_result

_BINARY = frozenset({"add", "divide", "maximum", "minimum", "multiply", "power", "subtract"})
_ARRAY = "f32[512,512]{1,0}"


def main() -> None:
    chosen = sys.argv[1:] or sorted(YNNPACK.opcodes - YNNPACK.moves)
    ways = {"loops": "kind=kLoop", "library": f"kind=kCustom, backend_config={YNNPACK.backend_config}"}
    candidates = [
        Candidate(key=f"{opcode} {way}", kernel=_kernel(opcode, how))
        for opcode in chosen
        for way, how in ways.items()
    ]
    with XlaCpu() as target:
        outcomes = dict(target.time_kernels(candidates))
        print_result(**{opcode: _ratio(opcode, outcomes, target.identity.label) for opcode in chosen})


def _ratio(opcode: str, outcomes: Mapping[str, Timing | Failure], label: Statistic) -> float:
    """Seconds of loops over seconds of the library."""
    loops, library = outcomes[f"{opcode} loops"], outcomes[f"{opcode} library"]
    if isinstance(loops, Timing) and isinstance(library, Timing):
        return round(loops.seconds(label) / library.seconds(label), 2)
    raise SystemExit(f"{opcode}: loops {loops}; library {library}")


def _kernel(opcode: str, how: str) -> Kernel:
    names = ("x", "y") if opcode in _BINARY else ("x",)
    parameters = [f"%{name} = {_ARRAY} parameter({number})" for number, name in enumerate(names)]
    operands = ", ".join(f"%{name}" for name in names)
    fused = ["%fused {", *parameters, f"ROOT %out = {_ARRAY} {opcode}({operands})", "}"]
    launch = f"ROOT %kernel = {_ARRAY} fusion({operands}), calls=%fused, {how}"
    text = "\n".join(["HloModule one, is_scheduled=true", *fused, "ENTRY %main {", *parameters, launch, "}"])
    return Kernel(program=parse(text), kind=Kind.OTHER)


if __name__ == "__main__":
    main()
