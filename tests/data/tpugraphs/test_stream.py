"""Streaming batches from folders of tile files."""

from pathlib import Path

import numpy as np
import pytest

from kernelcast.data.tpugraphs import stream
from kernelcast.data.tpugraphs.stream import StreamOptions, TileStream, tile_files
from kernelcast.data.tpugraphs.tile_file import TileGraph, read_tile_file, write_tile_file
from kernelcast.errors import SchemaError


def graph(name: str, tiles: int, *, untimed: int = 0) -> TileGraph:
    """A kernel whose tile k takes 100 + k ns and has k in all features; the last ones have no time."""
    times = np.arange(100, 100 + tiles)
    times[tiles - untimed :] = 0
    return TileGraph(
        name=name,
        node_feat=np.zeros((2, 140), dtype=np.float32),
        opcode=np.array([63, 96], dtype=np.uint8),
        edges=np.array([[1, 0]]),
        config_feat=np.repeat(np.arange(tiles, dtype=np.float32)[:, None], 24, axis=1),
        runtime_ns=times,
        normalizer_ns=np.full(tiles, 100),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """25 training kernels of 1 to 25 tiles, and a test kernel without times."""
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
    for number in range(25):
        write_tile_file(tmp_path / "train", graph(f"k{number:02}", number + 1))
    write_tile_file(tmp_path / "test", graph("hidden", 5, untimed=5))
    return tmp_path


def test_an_epoch_serves_every_kernel_once_in_batches(folder: Path) -> None:
    batches = list(TileStream(tile_files(folder, "train"), seed=0).epoch(0))
    assert [len(batch) for batch in batches] == [10, 10, 5]
    served = [g for batch in batches for g in batch]
    assert sorted(g.name for g in served) == [f"k{n:02}" for n in range(25)]
    assert [g.name for g in served] != sorted(g.name for g in served)
    for g in served:
        tiles = int(g.name[1:]) + 1
        assert g.tile_count == min(10, tiles)
        assert len(set(g.runtime_ns.tolist())) == g.tile_count
        # Features, times and normalizers stay together.
        np.testing.assert_array_equal(g.config_feat[:, 0] + 100, g.runtime_ns)


def test_seed_and_epoch_alone_decide(folder: Path) -> None:
    files = tile_files(folder, "train")

    def trace(seed: int, epoch: int, cache_bytes: int = 0) -> list[tuple[str, list[int]]]:
        options = StreamOptions(cache_bytes=cache_bytes)
        stream = TileStream(files, seed=seed, options=options)
        for earlier in range(epoch if cache_bytes else 0):
            list(stream.epoch(earlier))
        return [(g.name, g.runtime_ns.tolist()) for batch in stream.epoch(epoch) for g in batch]

    assert trace(0, 1) == trace(0, 1) == trace(0, 1, 1 << 20) == trace(0, 1, 3000)
    assert trace(0, 1) != trace(0, 2)
    assert trace(0, 1) != trace(1, 1)


def test_the_first_tile_stands_anywhere(folder: Path) -> None:
    """The published files list the default first."""
    files = [folder / "train" / "k09.npz"]
    stream = TileStream(files, seed=0)
    places = [g.runtime_ns.tolist().index(100) for epoch in range(300) for (g,) in stream.epoch(epoch)]
    counts = np.bincount(places, minlength=10)
    assert counts.min() > 10
    assert counts.max() < 60


def test_tiles_without_times_are_not_drawn(tmp_path: Path) -> None:
    path = write_tile_file(tmp_path, graph("k", 12, untimed=8))
    ((served,),) = TileStream([path], seed=0).epoch(0)
    assert sorted(served.runtime_ns.tolist()) == [100, 101, 102, 103]


def test_a_test_file_is_told(folder: Path) -> None:
    hidden = TileStream(tile_files(folder, "test"), seed=0)
    with pytest.raises(
        SchemaError, match=r"hidden.npz: all its runtimes are missing, as in the published test"
    ):
        next(hidden.epoch(0))


def test_a_damaged_file_is_named(folder: Path) -> None:
    (folder / "train" / "k03.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(SchemaError, match=r"k03.npz: is no .npz archive"):
        list(TileStream(tile_files(folder, "train"), seed=0).epoch(0))


def test_kernels_in_the_cache_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(path: Path) -> TileGraph:
        read.append(path.name)
        return read_tile_file(path)

    monkeypatch.setattr(stream, "read_tile_file", counted)
    files = tile_files(folder, "train")
    size = sum(read_tile_file(path).byte_size for path in files)
    for cache_bytes, reads in ((size, 25), (0, 75)):
        read.clear()
        whole = TileStream(files, seed=0, options=StreamOptions(cache_bytes=cache_bytes))
        for epoch in range(3):
            list(whole.epoch(epoch))
        assert len(read) == reads
    read.clear()
    half = TileStream(files, seed=0, options=StreamOptions(cache_bytes=size // 2))
    list(half.epoch(0))
    list(half.epoch(1))
    assert 25 < len(read) < 42


@pytest.mark.parametrize("place", [".", "tile", "tile/xla", "npz/tile/xla"])
def test_parts_are_found_where_the_archives_unpack_them(place: str, tmp_path: Path) -> None:
    part = tmp_path / place / "valid"
    part.mkdir(parents=True)
    written = write_tile_file(part, graph("k", 2))
    assert [path.resolve() for path in tile_files(tmp_path, "valid")] == [written.resolve()]
    with pytest.raises(SchemaError, match=r"holds no tile files of part train; looked for .npz files in"):
        tile_files(tmp_path, "train")
    with pytest.raises(SchemaError, match="expected a part among train, valid, test, got 'dev'"):
        tile_files(tmp_path, "dev")


def test_published_files_stream(shared_data: Path) -> None:
    for part, tiles in (("train", 2), ("valid", 9)):
        files = tile_files(shared_data / "tpugraphs", part)
        ((served,),) = TileStream(files, seed=0).epoch(0)
        assert served.tile_count == tiles
        assert served.is_timed.all()


@pytest.mark.parametrize("options", [{"graphs": 0}, {"tiles": 0}])
def test_empty_batches_and_caches_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one graph and one tile"):
        StreamOptions(**options)
    with pytest.raises(ValueError, match="a cache has no negative size, got -1"):
        TileStream([], seed=0, options=StreamOptions(cache_bytes=-1))
