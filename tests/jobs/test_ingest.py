"""What a program holds, from any source."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from kernelcast.errors import HloError, KernelcastError
from kernelcast.hlo.sources import Stage
from kernelcast.hlo.trips import Source
from kernelcast.jobs.ingest import ingest

TEXT = """HloModule dot, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY main {
  x = f32[8,8]{1,0} parameter(0)
  y = f32[8,8]{1,0} parameter(1)
  table = f32[8,8]{1,0} constant({...})
  d = f32[8,8]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[8,8]{1,0} add(d, table)
}
"""


def test_a_text_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "dot.hlo"
    path.write_text(TEXT)
    found = ingest(str(path))
    assert (found.name, found.origin, found.stage) == ("dot", str(path), Stage.UNOPTIMISED)
    assert (found.computations, found.instructions) == (1, 5)
    assert found.opcodes == {"parameter": 2, "constant": 1, "dot": 1, "add": 1}
    assert found.parameters == ("f32[8,8]", "f32[8,8]")
    assert (found.result, found.donated, found.elided) == ("f32[8,8]", (0,), ("table",))
    assert found.cost.flops == 2 * 8**3 + 64
    assert (found.loops, found.kernels) == ((), {})


def test_loops_multiply_the_work() -> None:
    def scan(x: jax.Array) -> jax.Array:
        return lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, length=50)[0]

    found = ingest(scan, jax.ShapeDtypeStruct((64, 64), jnp.float32))
    assert [(loop.trips.value, loop.trips.source) for loop in found.loops] == [(50.0, Source.EXACT)]
    assert found.cost.flops >= 50 * 2 * 64**3
    assert found.cost.transcendentals == 50 * 64**2


def test_a_zoo_program_by_name_in_both_stages() -> None:
    before = ingest("double_softmax/200x300")
    assert before.origin == "zoo program double_softmax/200x300"
    assert (before.stage, before.kernels) == (Stage.UNOPTIMISED, {})
    after = ingest("double_softmax/200x300", stage=Stage.OPTIMISED)
    assert after.stage is Stage.OPTIMISED
    assert sum(after.kernels.values()) >= 3
    assert after.parameters == before.parameters


def test_bad_names_and_files_say_what_is_valid(tmp_path: Path) -> None:
    with pytest.raises(KernelcastError, match=r"did you mean .*softmax"):
        ingest("double_softmx")
    with pytest.raises(KernelcastError, match=r"model\.hlo: there is no such file"):
        ingest("model.hlo")
    with pytest.raises(KernelcastError, match="takes neither arguments"):
        ingest("rbf", module="3")
    path = tmp_path / "bad.hlo"
    path.write_text(TEXT.replace("f32[8,8]{1,0} dot", "f32[8,9]{1,0} dot"))
    with pytest.raises(HloError, match=r"bad\.hlo: line 7, %d"):
        ingest(path)
