import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelcast.errors import TargetError
from kernelcast.hlo.text import parse
from kernelcast.hlo.xla import proto_to_text
from kernelcast.targets import client
from kernelcast.targets.pjrt.imposed import compile_as, first_difference
from kernelcast.targets.worker import Failed


def row_sums(x: jax.Array, y: jax.Array) -> jax.Array:
    return (jnp.tanh(x) @ y).sum(0)


@pytest.fixture(scope="module")
def stablehlo() -> str:
    shape = jax.ShapeDtypeStruct((16, 16), "float32")
    return jax.jit(row_sums).lower(shape, shape).as_text()


@pytest.fixture
def arrays() -> list[np.ndarray]:
    values = np.random.default_rng(0).normal(size=(2, 16, 16)).astype(np.float32)
    return [values[0], values[1]]


def test_capture_is_the_module_that_runs_and_repeats(stablehlo: str) -> None:
    captured = client.capture(stablehlo)
    assert captured == client.capture(stablehlo)
    assert captured.startswith("HloModule jit_row_sums, is_scheduled=true")
    assert first_difference(captured, client.compile_program(stablehlo).final_text()) is None


def test_library_off_leaves_no_library_call(stablehlo: str) -> None:
    assert "__ynn_fusion" in client.capture(stablehlo)
    assert "__ynn_fusion" not in client.capture(stablehlo, library=False)


def test_transform_replaces_what_runs(stablehlo: str, arrays: list[np.ndarray]) -> None:
    text = client.capture(stablehlo, library=False)
    assert " tanh(" in text
    executable, final = compile_as(stablehlo, text.replace(" tanh(", " negate("))
    assert " negate(" in final
    (got,) = client.run(executable, arrays)
    np.testing.assert_allclose(got, (-arrays[0] @ arrays[1]).sum(0), rtol=1e-4, atol=1e-4)


def test_compiles_without_a_transform_are_not_touched(stablehlo: str, arrays: list[np.ndarray]) -> None:
    seen: list[bytes] = []
    client.compile_program(stablehlo, transform=lambda proto: (seen.append(proto), proto)[1])
    client.compile_program(stablehlo)
    jax.jit(lambda x: x * 3.0)(arrays[0]).block_until_ready()
    assert len(seen) == 1
    assert parse(proto_to_text(seen[0])).is_scheduled


def test_error_inside_a_transform_reaches_the_caller(stablehlo: str) -> None:
    def broken(_: bytes) -> bytes:
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        client.compile_program(stablehlo, transform=broken)
    assert client.capture(stablehlo)


def test_outputs_on_host_arrays(stablehlo: str, arrays: list[np.ndarray]) -> None:
    (got,) = client.run(client.compile_program(stablehlo), arrays)
    np.testing.assert_allclose(got, (np.tanh(arrays[0]) @ arrays[1]).sum(0), rtol=1e-4, atol=1e-4)


def test_wide_types_stay_wide() -> None:
    assert client.to_device(np.arange(3.0)).dtype == np.float64
    assert client.to_device(np.arange(3)).dtype == np.int64


def test_large_constants_are_printed() -> None:
    table = np.arange(1000, dtype=np.float32)
    text = jax.jit(lambda x: x + table).lower(jax.ShapeDtypeStruct((1000,), "float32")).as_text()
    assert "{...}" not in client.capture(text)


def test_text_without_a_module_name() -> None:
    with pytest.raises(
        TargetError, match="expected StableHLO text that starts with 'module @name', got 'func"
    ):
        client.capture("func.func @main() { return }")


def test_text_that_mlir_refuses() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError):
        client.capture("module @m { nonsense }")


def test_module_that_xla_refuses_is_a_failure(stablehlo: str) -> None:
    with pytest.raises(Failed, match="XLA's parser refuses"):
        compile_as(stablehlo, "HloModule m\n\nENTRY %e {\n  ROOT %r = f32[2]{0} nonsense()\n}\n")


def test_measuring_process_must_be_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(TargetError, match=r"pinned to one CPU, this one may use \[0, 1\]"):
        client.prepare_measuring()


def test_first_difference_names_the_line_and_ignores_names_and_metadata() -> None:
    asked = 'HloModule a, is_scheduled=true\n  %x = f32[] negate(%y), metadata={op_name="q" n={1}}\n}'
    final = "HloModule b\n  %x = f32[] negate(%y)\n}"
    assert first_difference(asked, final) is None
    other = first_difference(asked, final.replace("negate", "abs"))
    assert other == "'%x = f32[] negate(%y)' was asked for, '%x = f32[] abs(%y)' came out"
    assert first_difference(asked, final + "\nmore") == "2 lines were asked for, 3 came out"


def test_order_of_computations_does_not_count() -> None:
    one, other = "%a {\n  %x = f32[] negate(%y)\n}", "%b {\n  %x = f32[] abs(%y)\n}"
    assert (
        first_difference(f"HloModule m\n\n{one}\n\n{other}\n", f"HloModule m\n\n{other}\n\n{one}\n\n") is None
    )
