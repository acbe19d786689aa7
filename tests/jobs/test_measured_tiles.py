"""Rankers against published runs: what is judged, what is left out, and the mean."""

import json
import math

import numpy as np
import pytest

from kernelcast.core.tile import Tile, TileSet
from kernelcast.core.timing import Failure, Reason
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs_tile import UNIT
from kernelcast.jobs.records import measured_tile_figures
from kernelcast.jobs.studies.measured_tiles import judge_on_measured

HLO = "HloModule k\nENTRY e {\n  x = f32[64,128]{1,0} parameter(0)\n  ROOT y = f32[64,128]{1,0} tanh(x)\n}\n"


class _Seed:
    seed = 3


class Ranker:
    """Orders tiles by one bound, in the given direction."""

    trained = _Seed()

    def __init__(self, sign):
        self.sign = sign

    def rank(self, kernel, tiles):
        return np.array([self.sign * tile.levels[0][1][0] for tile in tiles], dtype=np.float64)


class Lister:
    """Knows all tiles but the largest."""

    def valid_tiles(self, kernel):
        tiles = tuple(Tile(levels=(("output", (n,)),), unit=UNIT) for n in range(1, 12))
        return TileSet(
            tiles=tiles, analytical_cycles=tuple(range(len(tiles))), default=tiles[0], is_complete=True
        )


class WithInputs(Lister):
    """Lists every output window with two input windows, the second of which costs more."""

    def valid_tiles(self, kernel):
        tiles = tuple(
            Tile(levels=(("output", (n,)), ("input", (n, m))), unit=UNIT)
            for n in range(1, 13)
            for m in (1, 2)
        )
        cycles = tuple(tile.levels[0][1][0] + 100 * (tile.levels[1][1][1] - 1) for tile in tiles)
        return TileSet(tiles=tiles, analytical_cycles=cycles, default=tiles[0], is_complete=True)


class Broken:
    def valid_tiles(self, kernel):
        return Failure(reason=Reason.CRASH, message="signal 6")


def write(folder, name, times_ns):
    runs = [
        {"output_bounds": [n + 1], "is_default": n == 0, "time_ns": t, "error": t == 0}
        for n, t in enumerate(times_ns)
    ]
    (folder / f"{name}.json").write_text(json.dumps({"name": name, "device": "TPU v3", "runs": runs}))
    (folder / f"{name}.hlo").write_text(HLO)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "many", [100 + n for n in range(12)])
    write(tmp_path, "few", [30, 20, 10, 0])  # the last run failed
    write(tmp_path, "equal", [5, 5, 5])
    return tmp_path


def test_all_models_are_judged_on_the_same_runs(folder):
    rankers = {"rank": [Ranker(1), Ranker(-1)], "upward": [Ranker(1)]}
    found = judge_on_measured(folder, rankers, Lister())
    few, many = found.kernels
    assert (few.name, few.runs, few.without_analytical) == ("few", 3, 0)
    assert (many.name, many.runs, many.without_analytical) == ("many", 11, 1)
    assert many.tau == {"rank": 0.0, "upward": 1.0, "analytical": 1.0}
    assert few.tau == {"rank": 0.0, "upward": -1.0, "analytical": -1.0}
    assert found.judged == (many,)
    assert found.tau_mean("upward") == 1.0
    assert "no two different times" in found.problems["equal"]
    assert (found.device, found.seeds) == ("TPU v3", (3,))
    names = {f.name: f for f in measured_tile_figures(found, chip="tpu_v3")}
    assert names["tile.tpu_v3.measured.tau_mean.analytical"].value == 1.0
    assert "measured times, 1 kernels, 11 runs" in names["tile.tpu_v3.measured.tau_mean.rank"].noise


def test_windows_that_are_not_published_are_those_of_the_cheapest_listed_tile(folder):
    seen = []

    class Watching(Ranker):
        def rank(self, kernel, tiles):
            seen.extend(tiles)
            return super().rank(kernel, tiles)

    found = judge_on_measured(folder, {"upward": [Watching(1)]}, WithInputs())
    assert found.kernels[1].tau == {"upward": 1.0, "analytical": 1.0}
    assert found.kernels[1].without_analytical == 0
    assert {tile.levels[1][1][1] for tile in seen} == {1}


def test_without_a_target_every_run_counts(folder):
    found = judge_on_measured(folder, {"upward": [Ranker(1)]}, None)
    assert [k.runs for k in found.kernels] == [3, 12]
    assert set(found.kernels[0].tau) == {"upward"}


def test_a_kernel_that_the_compiler_fails_on_is_told_of(folder):
    found = judge_on_measured(folder, {"upward": [Ranker(1)]}, Broken())
    assert not found.kernels
    assert found.problems["many"] == "crash: signal 6"
    assert math.isnan(found.tau_mean("upward"))
    assert not list(measured_tile_figures(found, chip="tpu_v3"))


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(SchemaError, match=r"holds no <kernel>\.json"):
        judge_on_measured(tmp_path, {}, None)
