"""One worker for all tests of a module that need a device: starting it takes two seconds."""

from collections.abc import Iterator

import pytest

from kernelcast.core.kernel import InputPolicy, InputSpec, Kernel, Kind
from kernelcast.hlo.text import parse
from kernelcast.targets.pjrt.xla_cpu import XlaCpu

ELEMENTWISE = """HloModule elementwise

%work {
  %x = f32[512]{0} parameter(0)
  %exponential = f32[512]{0} exponential(%x)
  ROOT %product = f32[512]{0} multiply(%exponential, %x)
}

ENTRY %main {
  %x = f32[512]{0} parameter(0)
  ROOT %kernel = f32[512]{0} fusion(%x), kind=kLoop, calls=%work
}
"""
TRANSPOSED = """HloModule transposed

ENTRY %main {
  %x = f32[16,32]{1,0} parameter(0)
  %y = f32[16,32]{0,1} parameter(1)
  ROOT %kernel = f32[16,16]{1,0} dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""
IN_PLACE = """HloModule in_place

%work {
  %buffer = f32[400000]{0} parameter(0)
  %values = f32[4]{0} parameter(1)
  %at = s32[] parameter(2)
  %exponential = f32[4]{0} exponential(%values)
  ROOT %updated = f32[400000]{0} dynamic-update-slice(%buffer, %exponential, %at)
}

ENTRY %main {
  %buffer = f32[400000]{0} parameter(0)
  %values = f32[4]{0} parameter(1)
  %at = s32[] parameter(2)
  ROOT %kernel = f32[400000]{0} fusion(%buffer, %values, %at), kind=kLoop, calls=%work
}
"""


@pytest.fixture(scope="session")
def elementwise() -> Kernel:
    return Kernel(program=parse(ELEMENTWISE), kind=Kind.LOOP)


@pytest.fixture(scope="session")
def transposed() -> Kernel:
    return Kernel(program=parse(TRANSPOSED), kind=Kind.DOT)


@pytest.fixture(scope="session")
def in_place() -> Kernel:
    floats = InputSpec(policy=InputPolicy.FLOAT)
    return Kernel(
        program=parse(IN_PLACE),
        kind=Kind.IN_PLACE,
        aliases=((0, 0),),
        inputs=(floats, floats, InputSpec(policy=InputPolicy.INDEX, bound=399_997)),
    )


@pytest.fixture(scope="module")
def xla_cpu() -> Iterator[XlaCpu]:
    with XlaCpu() as target:
        yield target
