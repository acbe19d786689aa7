"""Tuning a JAX function on this machine's CPU: the answer computes the same and says what it is for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.jobs.tuning_fakes import PriceEstimator

import kernelcast
from kernelcast.errors import TargetError
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.sample import all_fused
from kernelcast.fusion.space import default, unfused
from kernelcast.jobs.tuning.autotune import TuningOptions
from kernelcast.jobs.tuning.plan_search import SearchOptions
from kernelcast.jobs.tuning.replay import replay
from kernelcast.jobs.tuning.spaces import spaces_of
from kernelcast.jobs.tuning.tuned_function import compile_choice, tune_function
from kernelcast.search.anneal import AnnealingOptions
from kernelcast.targets import client
from kernelcast.targets.lowering import lower
from kernelcast.targets.pjrt.program_timer import ProgramRule
from kernelcast.targets.pjrt.xla_cpu import XlaCpu, XlaCpuOptions

QUICK = XlaCpuOptions(programs=ProgramRule(gated_rounds=4, rounds=8, rounds_per_request=4, wait_s=0.001))
OPTIONS = TuningOptions(
    search=SearchOptions(chains=4, annealing=AnnealingOptions(steps=20)), candidates=3, device_s=20.0
)


def model(tree: dict[str, jax.Array], scale: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    hidden = jnp.tanh(tree["x"] @ tree["w"]) * scale
    return hidden.sum(0), {"softmax": jax.nn.softmax(hidden), "square": (hidden - 1) ** 2}


def arguments(seed: int = 0) -> tuple[dict[str, jax.Array], jax.Array]:
    draw = np.random.default_rng(seed)
    tree = {"x": draw.standard_normal((32, 48)), "w": draw.standard_normal((48, 64))}
    return {k: jnp.asarray(v, jnp.float32) for k, v in tree.items()}, jnp.float32(0.5)


@pytest.fixture(scope="module")
def target():
    with XlaCpu(options=QUICK) as target:
        yield target


def test_the_tuned_function_computes_the_same(target: XlaCpu) -> None:
    tuned, result = tune_function(
        model,
        *arguments(),
        estimator=PriceEstimator(),
        estimator_name="prices",
        options=OPTIONS,
        target=target,
    )
    assert result.program == "model"
    assert result.target.threads == 1
    assert result.device_s <= 25
    for seed in (0, 1):
        expected, got = jax.jit(model)(*arguments(seed)), tuned(*arguments(seed))
        assert jax.tree.structure(expected) == jax.tree.structure(got)
        for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(got), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    with pytest.raises(TargetError, match=r"argument 1 is float32\[2, 48\]; this program was tuned for"):
        tuned({"x": jnp.zeros((2, 48)), "w": jnp.zeros((48, 64))}, jnp.float32(1))
    with pytest.raises(TargetError, match="tuned for arguments of structure"):
        tuned(jnp.zeros((2, 48)))
    again = replay(result, target, device_s=20.0)
    assert again.answer == result.answer
    assert again.output_error <= 1e-4


def test_arrays_of_numpy_are_taken_as_jax_takes_them(target: XlaCpu) -> None:
    wide = np.random.default_rng(0).standard_normal((16, 16))
    tuned, result = tune_function(
        lambda x, count: jnp.tanh(x) * count,
        wide,
        np.arange(16),
        estimator=PriceEstimator(),
        estimator_name="prices",
        options=OPTIONS,
        target=target,
    )
    assert result.tried
    np.testing.assert_allclose(tuned(wide, np.arange(16)), np.tanh(wide) * np.arange(16), rtol=1e-4)


def test_every_choice_compiles_in_this_process(target: XlaCpu) -> None:
    stablehlo = lower(model, *arguments()).stablehlo
    spaces = spaces_of(target, stablehlo)
    space, library_off = spaces
    inputs = [np.asarray(x) for x in jax.tree.leaves(arguments())]
    expected = jax.tree.leaves(model(*arguments()))
    plans = (default(space), unfused(space), all_fused(space), default(library_off), unfused(library_off))
    for choice in (Untouched(), LibraryOff(), *plans):
        assert isinstance(choice, FusionPlan | Untouched | LibraryOff)
        outputs = client.run(compile_choice(spaces, stablehlo, choice), inputs)
        for one, other in zip(expected, outputs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_donated_arguments_are_refused_unless_copies_are_acceptable(target: XlaCpu) -> None:
    donating = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    shape = jax.ShapeDtypeStruct((1000,), jnp.float32)
    with pytest.raises(TargetError, match=r"arguments 0 are donated.*copies_are_acceptable=True"):
        tune_function(
            donating,
            shape,
            estimator=PriceEstimator(),
            estimator_name="prices",
            options=OPTIONS,
            target=target,
        )
    tuned, _ = tune_function(
        donating,
        shape,
        estimator=PriceEstimator(),
        estimator_name="prices",
        options=OPTIONS,
        target=target,
        copies_are_acceptable=True,
    )
    x = jnp.ones(1000)
    np.testing.assert_array_equal(tuned(x), 3 * np.ones(1000))
    np.testing.assert_array_equal(x, np.ones(1000))


def test_public_names_are_there_and_others_are_not() -> None:
    assert set(dir(kernelcast)) >= {"autotune", "predict", "parse", "XlaCpu"}
    assert (
        kernelcast.Program
        is kernelcast.parse("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }").__class__
    )
    with pytest.raises(AttributeError, match="no attribute 'autotuna'"):
        _ = kernelcast.autotuna  # pyright: ignore[reportAttributeAccessIssue]
