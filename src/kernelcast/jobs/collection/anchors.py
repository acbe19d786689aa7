"""What every occasion times at both its ends: ten kernels and one program that never change.

Hosts, and hours of one host, differ by more than what is studied; anchors tell by how much.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Failure, Timing
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.fusion.plan import Untouched
from kernelcast.targets.pjrt.xla_cpu import XlaCpu
from kernelcast.targets.protocol import Candidate

_ELEMENTWISE = """HloModule anchor

f {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  z = {shape} {opcode}(x)
  ROOT r = {shape} multiply(z, y)
}}

ENTRY e {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  ROOT r = {shape} fusion(x, y), kind=kLoop, calls=f
}}
"""
_REDUCE = """HloModule anchor

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

f {
  x = f32[256,1024]{1,0} parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[256]{0} reduce(x, zero), dimensions={1}, to_apply=add
}

ENTRY e {
  x = f32[256,1024]{1,0} parameter(0)
  ROOT r = f32[256]{0} fusion(x), kind=kLoop, calls=f
}
"""
_DOT = """HloModule anchor

ENTRY e {{
  x = f32[{n},{n}]{{1,0}} parameter(0)
  y = f32[{n},{n}]{{1,0}} parameter(1)
  ROOT r = f32[{n},{n}]{{1,0}} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
_TRANSPOSE = """HloModule anchor

ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  ROOT r = f32[512,512]{1,0} transpose(x), dimensions={1,0}
}
"""
_CONCATENATE = """HloModule anchor

f {
  x = f32[300,250]{1,0} parameter(0)
  y = f32[300,6]{1,0} parameter(1)
  ROOT r = f32[300,256]{1,0} concatenate(x, y), dimensions={1}
}

ENTRY e {
  x = f32[300,250]{1,0} parameter(0)
  y = f32[300,6]{1,0} parameter(1)
  ROOT r = f32[300,256]{1,0} fusion(x, y), kind=kLoop, calls=f
}
"""
_BROADCAST = """HloModule anchor

f {
  x = f32[256,512]{1,0} parameter(0)
  y = f32[512]{0} parameter(1)
  wide = f32[256,512]{1,0} broadcast(y), dimensions={1}
  sum = f32[256,512]{1,0} add(x, wide)
  ROOT r = f32[256,512]{1,0} tanh(sum)
}

ENTRY e {
  x = f32[256,512]{1,0} parameter(0)
  y = f32[512]{0} parameter(1)
  ROOT r = f32[256,512]{1,0} fusion(x, y), kind=kLoop, calls=f
}
"""

KERNEL_TEXTS = (
    _ELEMENTWISE.format(shape="f32[1024]{0}", opcode="exponential"),
    _ELEMENTWISE.format(shape="f32[65536]{0}", opcode="negate"),
    _ELEMENTWISE.format(shape="f32[1048576]{0}", opcode="negate"),
    _ELEMENTWISE.format(shape="f32[8192]{0}", opcode="sine"),
    _REDUCE,
    _DOT.format(n=32),
    _DOT.format(n=192),
    _TRANSPOSE,
    _CONCATENATE,
    _BROADCAST,
)
PROGRAM_NAME = "anchor-program"
PROGRAM = """
module @anchor {
  func.func public @main(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %1 = stablehlo.tanh %0 : tensor<256x256xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<256x256xf32>) -> tensor<256x256xf32>
    %3 = stablehlo.add %2, %x : tensor<256x256xf32>
    return %3 : tensor<256x256xf32>
  }
}
"""


def anchor_kernels() -> tuple[Kernel, ...]:
    """The ten kernels: vector and library functions, memory-bound and compute-bound, views and reductions."""
    return tuple(kernel_from_text(text) for text in KERNEL_TEXTS)


def time_anchors(target: XlaCpu) -> Mapping[str, Timing | Failure]:
    """Outcomes by fingerprint, and that of the program by ``PROGRAM_NAME``."""
    candidates = [Candidate(key=kernel.fingerprint, kernel=kernel) for kernel in anchor_kernels()]
    outcomes = dict(target.time_kernels(candidates))
    timed = target.time_programs(target.space(PROGRAM), [Untouched()])
    return {**outcomes, PROGRAM_NAME: timed[0].outcome}
