"""The evidence of the library's table: each operation, handed to it, computes what generated loops do."""

import jax
import jax.numpy as jnp
import pytest

from kernelcast.fusion.library import YNNPACK
from kernelcast.fusion.plan import Setting
from kernelcast.fusion.space import default
from kernelcast.targets.pjrt.xla_cpu import XlaCpu

UNARY = {
    "abs": jnp.abs, "ceil": jnp.ceil, "erf": jax.lax.erf, "exponential": jnp.exp,
    "exponential-minus-one": jnp.expm1, "floor": jnp.floor, "log": lambda x: jnp.log(abs(x)),
    "log-plus-one": lambda x: jnp.log1p(abs(x)), "negate": jnp.negative,
    "round-nearest-even": jnp.round, "rsqrt": lambda x: jax.lax.rsqrt(abs(x)), "sign": jnp.sign,
    "sqrt": lambda x: jnp.sqrt(abs(x)), "tanh": jnp.tanh,
}  # fmt: skip
BINARY = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "divide": jnp.divide,
    "maximum": jnp.maximum, "minimum": jnp.minimum, "power": lambda x, y: jnp.power(abs(x), y),
}  # fmt: skip


def test_every_operation_of_the_table_is_tried() -> None:
    assert {*UNARY, *BINARY} == YNNPACK.opcodes - YNNPACK.moves


@pytest.mark.parametrize("opcode", [*UNARY, *BINARY])
def test_the_library_computes_what_loops_do(opcode: str, xla_cpu: XlaCpu) -> None:
    """Each row's evidence, on numbers from 0.5 to 2 and their negatives where that has a value."""

    def f(x: jax.Array, y: jax.Array) -> jax.Array:
        inner = UNARY[opcode](x * 1.5) if opcode in UNARY else BINARY[opcode](x * 1.5, y)
        return jnp.sin(inner)

    space = xla_cpu.space(f, *[jax.ShapeDtypeStruct((24, 40), "float32")] * 2)
    root = next(
        n
        for n, found in enumerate(space.scopes[0].nodes)
        if found.instruction.opcode == opcode and found.rule
    )
    plan = space.plan(default(space).fused, settings=[Setting(scope=0, root=root, emission="library")])
    if not plan.settings:
        plan = space.plan(0, settings=[Setting(scope=0, root=root, emission="library")])
    assert plan.settings
    (check,) = xla_cpu.check_programs(space, [plan])
    assert check.failure is None
    assert check.output_error <= 1e-5
