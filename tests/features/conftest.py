"""Small kernels written by hand, whose features can be worked out on paper."""

from collections.abc import Callable

import pytest

from kernelcast.core.kernel import Kernel
from kernelcast.fusion.extract import kernel_from_text


@pytest.fixture(scope="session")
def fusion() -> Callable[..., Kernel]:
    """Makes a kernel of one loop fusion from its body and its parameters' shapes."""

    def make(body: str, *parameters: str, result: str, alias: str = "") -> Kernel:
        inner = "\n".join(f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters))
        outer = "\n".join(f"  a{n} = {shape} parameter({n})" for n, shape in enumerate(parameters))
        arguments = ", ".join(f"a{n}" for n in range(len(parameters)))
        header = f"HloModule k, input_output_alias={{ {alias} }}" if alias else "HloModule k"
        return kernel_from_text(
            f"{header}\n\nadder {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
            f"  ROOT s = f32[] add(x, y)\n}}\n\nfused {{\n{inner}\n{body}\n}}\n\n"
            f"ENTRY e {{\n{outer}\n  ROOT r = {result} fusion({arguments}), kind=kLoop, calls=fused\n}}\n"
        )

    return make


@pytest.fixture(scope="session")
def bare() -> Callable[..., Kernel]:
    """Makes a kernel of one operation from its text and its parameters' shapes."""

    def make(operation: str, *parameters: str) -> Kernel:
        outer = "\n".join(f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters))
        return kernel_from_text(
            "HloModule k\n\nadder {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
            f"  ROOT s = f32[] add(x, y)\n}}\n\nENTRY e {{\n{outer}\n  ROOT r = {operation}\n}}\n"
        )

    return make
