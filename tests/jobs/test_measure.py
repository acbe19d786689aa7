"""The measured halves of the cases: a factor of two, tried a second time on a loud machine."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import jax
import jax.numpy as jnp
import pytest

from kernelcast.core.timing import Timing
from kernelcast.hlo.text import parse
from kernelcast.jobs.programs.measure import ProgramMeasurement, measure_program
from kernelcast.jobs.programs.overheads import Overheads, measure_overheads, overhead_seconds
from kernelcast.targets.pjrt.xla_cpu import XlaCpu

Result = TypeVar("Result")


@pytest.fixture(scope="module")
def target() -> Iterator[XlaCpu]:
    with XlaCpu() as target:
        yield target


@pytest.fixture(scope="module")
def overheads(target: XlaCpu) -> Overheads:
    return measure_overheads(target)


def twice(attempt: Callable[[], Result], is_right: Callable[[Result], bool]) -> Result:
    """The result of the attempt; of a second one where the first is not right."""
    result = attempt()
    return result if is_right(result) else attempt()


def needs_quiet(*measured: ProgramMeasurement) -> None:
    """Skips where no round of a whole program was quiet: other work had the core all the time."""
    for one in measured:
        if not isinstance(one.program.outcome, Timing) or one.program.outcome.quiet_share == 0:
            pytest.skip(f"the machine is too loud: {one.program.outcome}")


def within_two(ratio: float) -> bool:
    return 0.5 <= ratio <= 2.0


def test_case_2_cumulative_sum_against_sum(target: XlaCpu, overheads: Overheads) -> None:
    x = jax.ShapeDtypeStruct((1024, 64), "float32")

    def ratio_of_ratios() -> float:
        cumsum, total = (
            measure_program(target.space(f, x), target, overheads=overheads)
            for f in (lambda x: jnp.cumsum(x, 0), lambda x: jnp.sum(x, 0))
        )
        needs_quiet(cumsum, total)
        return (cumsum.sum_s / total.sum_s) / (cumsum.whole_s / total.whole_s)

    assert within_two(twice(ratio_of_ratios, within_two))


def test_case_3_many_tiny_kernels(target: XlaCpu, overheads: Overheads) -> None:
    def loss(carries: list[jax.Array]) -> jax.Array:
        def step(c: list[jax.Array], _: None) -> tuple[list[jax.Array], None]:
            return [jnp.sin(c[i]) * 1.01 + 0.1 * c[(i + 1) % 60] for i in range(60)], None

        return jnp.sum(jnp.stack(jax.lax.scan(step, carries, None, length=200)[0]))

    space = target.space(jax.grad(loss), [jax.ShapeDtypeStruct((), "float32")] * 60)

    def measured() -> ProgramMeasurement:
        found = measure_program(space, target, overheads=overheads)
        needs_quiet(found)
        return found

    found = twice(measured, lambda m: within_two(m.sum_s / m.whole_s))
    assert within_two(found.sum_s / found.whole_s)
    tiny_s = sum(k.total_s for k in found.kernels if k.seconds < 1e-6)
    assert (tiny_s + found.overheads.launches_s + found.overheads.iterations_s) / found.sum_s >= 0.8


def test_overheads_by_hand() -> None:
    costs = Overheads(call_s=1000.0, sequential_launch_s=1.0, dataflow_launch_s=100.0, iteration_s=10.0)

    def chain(launches: int, elements: int) -> str:
        shape = f"f32[{elements}]{{0}}"
        lines = [f"  %x0 = {shape} parameter(0)"]
        lines += [f"  %x{n + 1} = {shape} negate(%x{n})" for n in range(launches)]
        lines[-1] = lines[-1].replace("  %", "  ROOT %", 1)
        return "HloModule m, is_scheduled=true\n\nENTRY %e {\n" + "\n".join(lines) + "\n}\n"

    def launches_s(launches: int, elements: int) -> float:
        return overhead_seconds(parse(chain(launches, elements)), costs).launches_s

    assert launches_s(8, 1000) == 8.0
    assert launches_s(9, 128) == 9.0
    assert launches_s(9, 129) == 900.0
    total = overhead_seconds(parse(chain(1, 1)), costs)
    assert (total.call_s, total.iterations_s, total.total_s) == (1000.0, 0.0, 1001.0)
