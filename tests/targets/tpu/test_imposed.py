"""Plans imposed on programs for v3 and found again in the final module."""

import random
from collections import Counter
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

from kernelcast.core.timing import Failure
from kernelcast.errors import TargetError
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.sample import random_plan
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.text import parse
from kernelcast.targets.protocol import Fuses
from kernelcast.targets.tpu.compiled import CompiledProgram
from kernelcast.targets.tpu.imposed import difference
from kernelcast.targets.tpu.xla_tpu import XlaTpu

ASKED = """HloModule m, is_scheduled=true
%f {
  %p = f32[8,128]{1,0:T(8,128)} parameter(0)
  %t = f32[8,128]{1,0:T(8,128)} tanh(%p)
  ROOT %n = f32[8,128]{1,0:T(8,128)} negate(%t)
}
ENTRY %e {
  %p = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT %k = f32[8,128]{1,0:T(8,128)} fusion(%p), kind=kLoop, calls=%f
}
"""
SHAPES = ((64, 128), (128, 256), (3, 3, 8, 16), (2, 8, 8, 8))


def model(x: jax.Array, w: jax.Array, kernel: jax.Array, image: jax.Array) -> tuple[jax.Array, ...]:
    y = jax.nn.softmax(jnp.tanh(jnp.exp(x) @ w), axis=-1)
    dimensions = ("NHWC", "HWIO", "NHWC")
    convolved = jax.lax.conv_general_dilated(
        jnp.abs(image), kernel, (1, 1), "SAME", dimension_numbers=dimensions
    )
    return y, jnp.sum(y, axis=0), jax.nn.relu(convolved) * 2.0


@pytest.fixture(scope="module")
def xla_tpu() -> Iterator[XlaTpu]:
    with XlaTpu("tpu_v3") as target:
        yield target


@pytest.fixture(scope="module")
def space(xla_tpu: XlaTpu) -> FusionSpace:
    return xla_tpu.space(model, *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in SHAPES))


def compiled(target: XlaTpu, space: FusionSpace, plan: FusionPlan) -> CompiledProgram:
    answer = target.compile_plan(space, plan)
    assert not isinstance(answer, Failure), answer
    return answer


def cycles(program: CompiledProgram) -> int:
    return sum(kernel.estimated_cycles or 0 for _, kernel in program.kernels)


def test_a_module_does_not_differ_from_itself() -> None:
    assert difference(parse(ASKED), parse(ASKED)) == ""


def test_windows_and_bitcasts_are_no_difference() -> None:
    final = ASKED.replace("calls=%f\n", 'calls=%f, backend_config={"window_config":{}}\n').replace(
        "ROOT %n = f32[8,128]{1,0:T(8,128)} negate(%t)",
        "%m = f32[8,128]{1,0:T(8,128)} negate(%t)\n  ROOT %n = f32[8,128]{1,0:T(8,128)} bitcast(%m)",
    )
    assert difference(parse(ASKED), parse(final)) == ""


def test_what_is_missing_is_named() -> None:
    assert (
        difference(parse(ASKED), parse(ASKED.replace("%k =", "%other ="))) == "%k is not in the final module"
    )
    changed = difference(parse(ASKED), parse(ASKED.replace("tanh", "cosine")))
    assert changed == "%k lacks tanh[8, 128] and has cosine[8, 128] besides"


@pytest.mark.tpu
def test_the_default_imposed_again_is_the_default(xla_tpu: XlaTpu, space: FusionSpace) -> None:
    assert space.unexpressed == ()
    shapes = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in SHAPES)
    untouched = xla_tpu.compile_program(model, *shapes)
    assert not isinstance(untouched, Failure)
    imposed = compiled(xla_tpu, space, default(space))
    assert Counter(k.kernel for _, k in imposed.kernels) == Counter(k.kernel for _, k in untouched.kernels)
    assert cycles(imposed) == cycles(untouched)


@pytest.mark.tpu
def test_un_fused_it_is_slower_by_the_estimate(xla_tpu: XlaTpu, space: FusionSpace) -> None:
    alone = compiled(xla_tpu, space, unfused(space))
    assert len(alone.kernels) > len(compiled(xla_tpu, space, default(space)).kernels)
    assert cycles(alone) > 1.5 * cycles(compiled(xla_tpu, space, default(space)))


@pytest.mark.tpu
def test_random_plans_are_honoured(xla_tpu: XlaTpu, space: FusionSpace) -> None:
    plans = {random_plan(space, random.Random(seed)) for seed in range(5)}
    assert len(plans) > 1
    for plan in plans:
        program = compiled(xla_tpu, space, plan)
        assert all(kernel.listing for _, kernel in program.kernels)


@pytest.mark.tpu
def test_a_space_of_another_target_is_refused(xla_tpu: XlaTpu) -> None:
    assert isinstance(xla_tpu, Fuses)
    other = space_of(parse(ASKED))
    with pytest.raises(TargetError, match="was not captured by this target"):
        xla_tpu.compile_plan(other, default(other))
