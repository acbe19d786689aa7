import jax
import jax.numpy as jnp
import pytest
from jax import export

from kernelcast.errors import HloError, KernelcastError, TargetError
from kernelcast.hlo.sources import to_stablehlo
from kernelcast.hlo.text import parse
from kernelcast.targets import client
from kernelcast.targets.lowering import lower

SHAPE = jax.ShapeDtypeStruct((8, 8), "float32")


def step(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x + 1.0, (x * 2.0).sum()


def parameters(stablehlo: str) -> int:
    return len(parse(client.capture(stablehlo)).entry_computation.parameters)


def test_unused_arguments_stay_parameters() -> None:
    assert parameters(lower(step, SHAPE, SHAPE).stablehlo) == 2


def test_arguments_may_be_trees() -> None:
    assert parameters(lower(lambda tree: tree["a"] + tree["b"][0], {"a": SHAPE, "b": [SHAPE]}).stablehlo) == 2


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_donation_is_told_and_taken_out() -> None:
    jitted = jax.jit(step, donate_argnums=(0,), keep_unused=True)
    for source, arguments in ((jitted, (SHAPE, SHAPE)), (jitted.lower(SHAPE, SHAPE), ())):
        lowering = lower(source, *arguments)
        assert lowering.donated == (0,)
        assert "input_output_alias" not in client.capture(lowering.stablehlo)
    both = jax.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1), keep_unused=True)
    assert lower(both.lower(SHAPE, SHAPE)).donated == (0, 1)


def test_taking_out_donation_leaves_the_rest_alone() -> None:
    def loop(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.where(y > 0, y, -y) @ y, x)

    donating = jax.jit(loop, donate_argnums=(0,)).lower(SHAPE)
    keeping = jax.jit(loop).lower(SHAPE)
    assert lower(donating).donated == (0,)
    assert lower(donating).stablehlo == keeping.as_text()
    assert lower(keeping).stablehlo == keeping.as_text()


def test_all_sources_of_one_program_give_one_module() -> None:
    lowered = jax.jit(step, keep_unused=True).lower(SHAPE, SHAPE)
    exported = export.export(jax.jit(step, keep_unused=True))(SHAPE, SHAPE)
    hlo = lowered.as_text(dialect="hlo")
    sources = [lowered, lowered.as_text(), exported, exported.mlir_module_serialized, hlo, parse(hlo)]
    counts = {parse(client.capture(lower(source).stablehlo)).instruction_count for source in sources}
    assert len(counts) == 1


def test_hlo_that_donates() -> None:
    hlo = jax.jit(step, donate_argnums=(0,), keep_unused=True).lower(SHAPE, SHAPE).as_text(dialect="hlo")
    for source in (hlo, parse(hlo), to_stablehlo(hlo)):
        lowering = lower(source)
        assert lowering.donated == (0,)
        assert "input_output_alias" not in client.capture(lowering.stablehlo)


def test_hlo_that_donates_elements_of_a_result() -> None:
    jitted = jax.jit(lambda x, y, z: (x + y, z * 2.0), donate_argnums=(0, 2))
    hlo = jitted.lower(SHAPE, SHAPE, SHAPE).as_text(dialect="hlo")
    assert "{1}: (2" in hlo
    lowering = lower(hlo)
    assert lowering.donated == (0, 2)
    assert "input_output_alias" not in client.capture(lowering.stablehlo)


def test_what_cannot_be_lowered() -> None:
    with pytest.raises(KernelcastError, match="cannot read a program from int; give a function"):
        lower(3)
    with pytest.raises(HloError, match="does not read the StableHLO module"):
        lower(b"ML\xefR damaged")
    with pytest.raises(TargetError, match="no function @main"):
        lower("module @m {}")


def test_element_types_survive() -> None:
    types = ["bool", "int4", "uint8", "float16", "bfloat16", "float8_e4m3fn", "complex64"]
    shapes = [jax.ShapeDtypeStruct((4,), jnp.dtype(t)) for t in types]
    text = client.capture(lower(lambda *xs: xs[::-1], *shapes).stablehlo)
    hlo_types = [p.shape.element_type for p in parse(text).entry_computation.parameters]
    assert hlo_types == ["pred", "s4", "u8", "f16", "bf16", "f8e4m3fn", "c64"]
