"""How much faster the backend's library computes single operations than generated loops, as paired ratios.

Run: ``python benchmarks/offload.py [opcode …]``; the table that it is about is ``fusion/library.py``.
"""

from __future__ import annotations

import sys

from kernelcast.core.kernel import Kernel, Kind
from kernelcast.core.timing import Timing
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
        for opcode in chosen:
            timings = {way: outcomes[f"{opcode} {way}"] for way in ways}
            seconds = {
                way: t.seconds(target.identity.label) for way, t in timings.items() if isinstance(t, Timing)
            }
            if len(seconds) == len(ways):
                print(opcode, end=" ")
                print_result(
                    loops_us=round(1e6 * seconds["loops"], 1),
                    library_us=round(1e6 * seconds["library"], 1),
                    loops_over_library=round(seconds["loops"] / seconds["library"], 2),
                )
            else:
                raise SystemExit(f"{opcode}: {', '.join(map(str, timings.values()))}")


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
