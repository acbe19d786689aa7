"""Published tile files as what tile training reads."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kernelcast.data.tpugraphs.tile_file import TileGraph, write_tile_file
from kernelcast.errors import SchemaError
from kernelcast.features.tpugraphs_schema import TPUGRAPHS_140
from kernelcast.jobs.learning.published_tiles import PublishedTiles, published_examples, tiled_kernel


def graph(name: str, tiles: int, *, untimed: int = 0) -> TileGraph:
    """A kernel of three nodes whose tile k takes 100 + k ns, the default 50 ns, and whose features hold k."""
    times = np.arange(100, 100 + tiles)
    times[tiles - untimed :] = 0
    return TileGraph(
        name=name,
        node_feat=np.ones((3, 140), dtype=np.float32),
        opcode=np.array([63, 96, 2], dtype=np.uint8),
        edges=np.array([[1, 0], [2, 0], [2, 1]]),
        config_feat=np.repeat(np.arange(tiles, dtype=np.float32)[:, None], 24, axis=1),
        runtime_ns=times,
        normalizer_ns=np.full(tiles, 50),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train").mkdir()
    for number, tiles in enumerate([1, 2, 11, 40, 300]):
        write_tile_file(tmp_path / "train", graph(f"k{number}", tiles))
    return tmp_path


def test_a_kernel_keeps_its_timed_tiles_relative_to_the_default() -> None:
    kernel = tiled_kernel(graph("k", 5, untimed=2))
    assert kernel.seconds.tolist() == [2.0, 2.02, 2.04]
    assert kernel.tiles[:, 0].tolist() == [0, 1, 2]
    assert kernel.tiles.shape[1] == len(TPUGRAPHS_140.tile_columns)
    assert np.isnan(kernel.analytical).all()
    assert kernel.graph.rows.shape == (3, len(TPUGRAPHS_140.node))
    assert list(zip(kernel.graph.senders, kernel.graph.receivers, strict=True)) == [(0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_an_epoch_draws_each_kernel_as_often_as_it_says(folder: Path, cache_bytes: int) -> None:
    source = PublishedTiles(sorted((folder / "train").glob("*.npz")), cache_bytes=cache_bytes)
    for epoch in range(2):
        drawn = list(source.epoch(np.random.default_rng(epoch), tiles=10, groups=4))
        assert len(drawn) == source.group_count(tiles=10, groups=4) == 0 + 1 + 1 + 4 + 4
        sizes = Counter(len(group) for group in drawn)
        assert sizes == {2: 1, 10: 9}
        for group in drawn:
            places = group.tiles[:, 0]
            assert len(set(places.tolist())) == len(group)
            np.testing.assert_allclose(group.seconds, (100 + places) / 50)


def test_the_same_random_numbers_draw_the_same(folder: Path) -> None:
    files = sorted((folder / "train").glob("*.npz"))

    def trace(seed: int) -> list[list[float]]:
        source = PublishedTiles(files)
        return [g.tiles[:, 0].tolist() for g in source.epoch(np.random.default_rng(seed), tiles=10, groups=4)]

    assert trace(0) == trace(0)
    assert trace(0) != trace(1)


def test_groups_of_one_kernel_come_apart(tmp_path: Path) -> None:
    for number in range(60):
        write_tile_file(tmp_path, graph(f"k{number}", 100))
    source = PublishedTiles(sorted(tmp_path.glob("*.npz")))
    drawn = [id(group.graph) for group in source.epoch(np.random.default_rng(0), tiles=10, groups=8)]
    neighbours = sum(one == other for one, other in pairwise(drawn))
    assert neighbours < 0.1 * len(drawn)


def test_a_sample_is_spread_over_files_and_tiles(folder: Path) -> None:
    source = PublishedTiles(sorted((folder / "train").glob("*.npz")))
    assert [len(kernel) for kernel in source.sample(2)] == [1, 64]
    assert len(source.sample(100)) == len(source) == 5
    assert source.sample(1)[0].tiles[:, 0].tolist() == [0]


def test_validation_is_held_in_memory(folder: Path) -> None:
    assert [len(kernel) for kernel in published_examples(folder, "train").kernels] == [1, 2, 11, 40, 300]
    with pytest.raises(SchemaError, match="holds no tile files of part valid"):
        published_examples(folder, "valid")


def test_files_without_times_or_with_damage_are_told_before_training(folder: Path) -> None:
    hidden = write_tile_file(folder, graph("hidden", 5, untimed=5))
    with pytest.raises(SchemaError, match=r"hidden.npz: all its runtimes are missing"):
        PublishedTiles([hidden]).sample(1)
    hidden.write_bytes(b"PK")
    with pytest.raises(SchemaError, match=r"hidden.npz: is no \.npz archive"):
        PublishedTiles([hidden])


def test_published_files_are_read(shared_data: Path) -> None:
    for part, tiles in (("train", 2), ("valid", 9)):
        (kernel,) = published_examples(shared_data / "tpugraphs", part).kernels
        assert len(kernel) == tiles
        assert 1.0 in kernel.seconds  # the default
