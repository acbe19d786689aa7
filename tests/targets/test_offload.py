"""The evidence of the library's table: each operation, handed to it, computes what generated loops do."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelcast.fusion.apply import apply
from kernelcast.fusion.library import YNNPACK
from kernelcast.fusion.plan import Setting
from kernelcast.fusion.space import unfused
from kernelcast.hlo.format import format_program
from kernelcast.targets import client
from kernelcast.targets.lowering import lower
from kernelcast.targets.pjrt.imposed import compile_as
from kernelcast.targets.pjrt.xla_cpu import XlaCpu

OPERATIONS: dict[str, Callable[..., jax.Array]] = {
    "abs": lambda x, y: jnp.abs(x),
    "add": lambda x, y: x + y,
    "ceil": lambda x, y: jnp.ceil(x),
    "divide": lambda x, y: x / y,
    "exponential": lambda x, y: jnp.exp(x),
    "floor": lambda x, y: jnp.floor(x),
    "log": lambda x, y: jnp.log(x),
    "multiply": lambda x, y: x * y,
    "power": jnp.power,
    "round-nearest-even": lambda x, y: jnp.round(x),
    "rsqrt": lambda x, y: jax.lax.rsqrt(x),
    "sqrt": lambda x, y: jnp.sqrt(x),
    "subtract": lambda x, y: x - y,
}
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
EDGES = [
    np.nan, np.inf, 0.0, 1.0, 1e-40, 1e-30, 1e-7, 1e-3, 0.5, 0.99999994, 1.5, 2.5, 7.3, 88.0, 89.0, 104.0,
    1234567.0, 1e30, 3e38,
]  # fmt: skip


def test_every_operation_of_the_table_is_tried() -> None:
    assert set(OPERATIONS) == YNNPACK.opcodes - YNNPACK.moves


@pytest.mark.parametrize("opcode", OPERATIONS)
def test_the_library_computes_what_loops_do(opcode: str, xla_cpu: XlaCpu) -> None:
    """On all pairs of numbers at the edges of what a float can be, signs of zeros included."""
    values = np.array([*EDGES, *(-x for x in EDGES)], np.float32)
    inputs = [np.ascontiguousarray(grid) for grid in np.meshgrid(values, values)]
    shape = jax.ShapeDtypeStruct(inputs[0].shape, "float32")
    stablehlo = lower(OPERATIONS[opcode], shape, shape).stablehlo
    space = xla_cpu.space(stablehlo)
    root = next(
        n
        for n, found in enumerate(space.scopes[0].nodes)
        if found.instruction.opcode == opcode and found.rule
    )
    plan = space.plan(0, settings=[Setting(scope=0, root=root, emission="library")])
    assert '"kind":"__ynn_fusion"' in format_program(apply(space, plan))
    loops, library = (
        np.asarray(client.run(compile_as(stablehlo, format_program(apply(space, one)))[0], inputs)[0])
        for one in (unfused(space), plan)
    )
    assert np.array_equal(np.isnan(loops), np.isnan(library))
    assert np.array_equal(np.isinf(loops), np.isinf(library))
    numbers = ~np.isnan(loops)
    assert np.array_equal(np.signbit(loops)[numbers], np.signbit(library)[numbers])
    finite = np.isfinite(loops)
    error = np.abs(loops[finite] - library[finite]) / np.maximum(np.abs(loops[finite]), SMALLEST_NORMAL)
    assert error.max() <= 1e-6
