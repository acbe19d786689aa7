"""A file as a program of the zoo."""

from pathlib import Path

import numpy as np
import pytest

from kernelcast import zoo
from kernelcast.errors import KernelcastError
from kernelcast.hlo.sources import to_stablehlo

TEXT = """HloModule lookup

ENTRY main {
  table = f32[100,8]{1,0} parameter(0)
  rows = s32[16,1]{1,0} parameter(1)
  keep = pred[16,8]{1,0} parameter(2)
  found = f32[16,8]{1,0} gather(table, rows), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  zero = f32[] constant(0)
  zeros = f32[16,8]{1,0} broadcast(zero), dimensions={}
  ROOT picked = f32[16,8]{1,0} select(keep, found, zeros)
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mine.hlo"
    path.write_text(TEXT)
    return path


def test_a_file_is_a_variant(path: Path) -> None:
    variant = zoo.from_hlo_file(path, family="lookups")
    assert (variant.id, variant.family) == ("lookup/as-is", "lookups")
    source, arguments = variant.build()
    assert arguments == ()
    assert "stablehlo" in to_stablehlo(source)


def test_inputs_of_a_file_follow_their_use(path: Path) -> None:
    table, rows, keep = zoo.from_hlo_file(path).example_inputs(seed=0)
    assert (table.shape, table.dtype, keep.dtype) == ((100, 8), np.float32, np.bool_)
    assert 0 <= rows.min() < 50 < rows.max() < 100
    assert zoo.from_hlo_file(path, name="x").family == "x"


def test_an_optimised_file_is_refused(path: Path) -> None:
    path.write_text(TEXT.replace("HloModule lookup", "HloModule lookup, is_scheduled=true"))
    with pytest.raises(KernelcastError, match="holds an optimised program"):
        zoo.from_hlo_file(path)
