"""The target with its real worker. Times are not asserted, except where two differ a hundredfold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelcast.core.kernel import Kernel, Kind
from kernelcast.core.timing import Failure, Reason, Timing
from kernelcast.errors import KernelcastError, TargetError
from kernelcast.fusion.extract import kernels_of
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.space import FusionSpace, default, unfused
from kernelcast.hlo.text import parse
from kernelcast.targets.inputs import dtype_of
from kernelcast.targets.pjrt.imposed import normalised
from kernelcast.targets.pjrt.options import XlaCpuOptions
from kernelcast.targets.pjrt.program_inputs import program_inputs
from kernelcast.targets.pjrt.program_timer import Form
from kernelcast.targets.pjrt.xla_cpu import XlaCpu
from kernelcast.targets.protocol import Candidate, DeviceBudget, Fuses, TimesKernels, TimesPrograms

CUSTOM_CALL = """HloModule custom

ENTRY %main {
  %x = f32[8]{0} parameter(0)
  ROOT %kernel = f32[8]{0} custom-call(%x), custom_call_target="no_such_target"
}
"""
NOISE = (Reason.TOO_LOUD, Reason.NO_SLOPE)


def softmax_of_squares(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    z = jnp.exp(x - x.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True) * jnp.tanh(y), (x * x).sum()


@pytest.fixture(scope="module")
def space(xla_cpu: XlaCpu) -> FusionSpace:
    return xla_cpu.space(softmax_of_squares, *[jax.ShapeDtypeStruct((64, 96), "float32")] * 2)


def times(target: XlaCpu, *kernels: Kernel) -> list[Timing | Failure]:
    outcomes = dict(target.time_kernels(Candidate(key=str(n), kernel=k) for n, k in enumerate(kernels)))
    return [outcomes[str(n)] for n in range(len(kernels))]


def test_offers_all_three_capabilities(xla_cpu: XlaCpu) -> None:
    assert isinstance(xla_cpu, Fuses)
    assert isinstance(xla_cpu, TimesKernels)
    assert isinstance(xla_cpu, TimesPrograms)


def test_identity_tells_what_changes_times(xla_cpu: XlaCpu) -> None:
    identity = xla_cpu.identity
    assert (identity.kind, identity.threads) == ("xla-cpu", 1)
    stock = XlaCpu(options=XlaCpuOptions(raised_allocator=False)).identity
    assert identity.digest != stock.digest
    assert identity.digest == XlaCpu().identity.digest


def test_cpu_that_cannot_be_used() -> None:
    with pytest.raises(TargetError, match="CPU 9999 cannot be used; this process may use"):
        XlaCpu(cpu=9999)


def test_times_kernels(xla_cpu: XlaCpu, elementwise: Kernel, transposed: Kernel, in_place: Kernel) -> None:
    for outcome in times(xla_cpu, elementwise, transposed, in_place):
        if isinstance(outcome, Failure):
            assert outcome.reason in NOISE
            continue
        assert outcome.method == "loop-slope"
        assert len({s.runs for s in outcome.samples}) == 2
        assert outcome.overhead_s < 1e-6


def test_update_in_place_does_not_copy_its_buffer(xla_cpu: XlaCpu, in_place: Kernel) -> None:
    (outcome,) = times(xla_cpu, in_place)
    if isinstance(outcome, Failure):
        pytest.skip(f"the machine is too loud: {outcome}")
    assert outcome.seconds(xla_cpu.identity.label) < 5e-6  # a copy of 1.6 MB takes 60 µs


@pytest.mark.parametrize("element_type", ["pred", "s4", "s8", "u32", "f8e4m3fn", "f16", "bf16", "f64", "c64"])
def test_inputs_of_every_kind_of_element(xla_cpu: XlaCpu, element_type: str) -> None:
    shape = jax.ShapeDtypeStruct((24, 16), dtype_of(element_type))
    with jax.enable_x64(True):
        captured = xla_cpu.space(lambda x: x.T, shape)
    ((_, _, kernel),) = kernels_of(captured.original)
    (outcome,) = times(xla_cpu, kernel)
    assert isinstance(outcome, Timing) or outcome.reason in NOISE


def test_kernel_that_xla_refuses_costs_only_itself(xla_cpu: XlaCpu, elementwise: Kernel) -> None:
    refused = Kernel(program=parse(CUSTOM_CALL), kind=Kind.CUSTOM_CALL)
    first, second, third = times(xla_cpu, elementwise, refused, elementwise)
    assert isinstance(second, Failure)
    assert second.reason in (Reason.COMPILE, Reason.RUN)
    assert "no_such_target" in second.message
    for outcome in (first, third):
        assert isinstance(outcome, Timing) or outcome.reason in NOISE


def test_default_imposed_again_is_the_compilers_own_module(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    own, again, bare = xla_cpu.check_programs(space, [Untouched(), default(space), unfused(space)])
    assert [c.failure for c in (own, again, bare)] == [None, None, None]
    assert normalised(own.final_text) == normalised(again.final_text)
    assert again.output_error == 0.0
    assert bare.output_error < 1e-5


def test_plan_of_another_program_is_a_failure(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    foreign = FusionPlan(space="0" * 16, rules=space.rules.identity, fused=0)
    (check,) = xla_cpu.check_programs(space, [foreign])
    assert check.failure is not None
    assert check.failure.reason is Reason.UNSUPPORTED
    assert "of another program" in check.failure.message


def test_wrong_values_are_found(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    (own,) = xla_cpu.check_programs(space, [Untouched()])
    timer = xla_cpu._timer_of(space, None)
    wrong = Form(text=own.final_text.replace(" tanh(", " negate("))
    timer.compare(wrong, DeviceBudget(limit_s=100))
    assert wrong.failure is not None
    assert wrong.failure.reason is Reason.WRONG_RESULT
    assert wrong.failure.message.startswith("output 0 (float32[64,96]): error")


def test_times_programs_in_common_rounds(space: FusionSpace, xla_cpu: XlaCpu) -> None:
    plans = [Untouched(), Untouched(), LibraryOff(), default(space)]
    budget = DeviceBudget(limit_s=60)
    timed = xla_cpu.time_programs(space, plans, budget=budget)
    assert [t.plan for t in timed] == plans
    rounds = []
    for one in timed:
        assert isinstance(one.outcome, Timing)
        assert one.outcome.method == "whole-program"
        assert one.final_text
        rounds.append([s.round for s in one.outcome.samples])
    assert all(r == rounds[0] for r in rounds)
    assert 0 < budget.spent_s < 60


def test_plans_of_both_spaces_run_side_by_side(xla_cpu: XlaCpu) -> None:
    shape = jax.ShapeDtypeStruct((64, 96), "float32")
    own, other = (xla_cpu.space(softmax_of_squares, shape, shape, library=on) for on in (True, False))
    assert own.regions
    assert not other.regions
    assert own.digest != other.digest
    plans = [Untouched(), default(own), default(other), unfused(other)]
    checks = xla_cpu.check_programs(own, plans)
    assert [c.failure for c in checks] == [None] * 4
    assert all(c.output_error <= 1e-4 for c in checks)
    again = xla_cpu.check_programs(other, plans)
    assert [c.final_text for c in again] == [c.final_text for c in checks]


def test_a_plan_of_another_program_fails(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    other = xla_cpu.space(lambda x: jnp.sin(x).sum(), jax.ShapeDtypeStruct((1000,), "float32"))
    (check,) = xla_cpu.check_programs(space, [default(other)])
    assert check.failure is not None
    assert check.failure.reason is Reason.UNSUPPORTED
    assert "the plan is of another program" in check.failure.message


def test_a_budget_ends_the_timing_of_kernels(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    kernels = [space.kernel(group) for group in space.groups(unfused(space))]
    candidates = [Candidate(key=str(n), kernel=kernel) for n, kernel in enumerate(kernels)]
    assert list(xla_cpu.time_kernels(candidates, budget=DeviceBudget(limit_s=0.0))) == []
    budget = DeviceBudget(limit_s=60.0)
    outcomes = dict(xla_cpu.time_kernels(candidates, budget=budget))
    assert set(outcomes) == {c.key for c in candidates}
    assert 0 < budget.spent_s < 60


def test_spent_budget_ends_the_rounds(xla_cpu: XlaCpu) -> None:
    other = xla_cpu.space(lambda x: jnp.sin(x).sum(), jax.ShapeDtypeStruct((1000,), "float32"))
    budget = DeviceBudget(limit_s=1e-6, spent_s=1e-6)
    (timed,) = xla_cpu.time_programs(other, [default(other)], budget=budget)
    assert isinstance(timed.outcome, Failure)
    assert timed.outcome.reason is Reason.TIMEOUT
    assert "budget of 1e-06 device seconds is spent" in timed.outcome.message


def test_next_budget_is_not_charged_for_one_that_was_spent(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    spent = DeviceBudget(limit_s=1.0, spent_s=1.0)
    xla_cpu.worker.close()
    xla_cpu.time_programs(space, [Untouched()], budget=spent)
    (timed,) = xla_cpu.time_programs(space, [Untouched()], budget=DeviceBudget(limit_s=60))
    assert isinstance(timed.outcome, Timing), timed.outcome


def test_timing_goes_on_after_the_worker_died(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    xla_cpu.check_programs(space, [Untouched()])
    xla_cpu.worker.close()
    timed = xla_cpu.time_programs(space, [Untouched(), default(space)])
    assert all(isinstance(t.outcome, Timing) for t in timed)


def test_program_that_fails_as_it_is(xla_cpu: XlaCpu) -> None:
    bad = (
        "module @m { func.func public @main(%arg0: tensor<2xf32>) -> tensor<3xf32> "
        "{ return %arg0 : tensor<2xf32> } }"
    )
    with pytest.raises(KernelcastError, match="doesn't match function result type"):
        xla_cpu.space(bad)


def test_space_of_another_target(xla_cpu: XlaCpu, space: FusionSpace) -> None:
    with XlaCpu() as other, pytest.raises(TargetError, match="was not captured by this target"):
        other.time_programs(space, [Untouched()])


def test_given_inputs_are_used(xla_cpu: XlaCpu) -> None:
    halves = xla_cpu.space(lambda x: 1.0 / x, jax.ShapeDtypeStruct((4,), "float32"))
    checks = xla_cpu.check_programs(halves, [Untouched()], inputs={0: np.zeros(4, np.float32)})
    assert checks[0].failure is None
    assert np.array_equal(program_inputs(halves, {0: np.full(4, 3, np.float32)})[0], [3, 3, 3, 3])


def test_inputs_that_do_not_fit(space: FusionSpace) -> None:
    with pytest.raises(TargetError, match=r"parameter 1 is f32\[64,96\].*the given array is float64\(2,\)"):
        program_inputs(space, {1: np.zeros(2)})
    with pytest.raises(TargetError, match=r"inputs for parameters \[7\]; the program has 2 parameters"):
        program_inputs(space, {7: np.zeros(2)})
