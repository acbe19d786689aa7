"""Published files: read, written and read back equal; what is wrong with one is told, in bounded memory."""

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.data.tpugraphs.layout_file import LayoutGraph, read_layout_file, write_layout_file
from kernelcast.data.tpugraphs.tile_file import TileGraph, read_tile_file, write_tile_file
from kernelcast.errors import KernelcastError, SchemaError

ENDLESS = np.iinfo(np.int64).max


def tile_graph(**changes: object) -> TileGraph:
    """Three nodes and four tiles."""
    graph = TileGraph(
        name="program_-1f",
        node_feat=np.arange(420, dtype=np.float32).reshape(3, 140),
        opcode=np.array([63, 96, 2], dtype=np.uint8),
        edges=np.array([[1, 0], [2, 0], [2, 1]]),
        config_feat=np.arange(96, dtype=np.float32).reshape(4, 24),
        runtime_ns=np.array([100, 50, 0, ENDLESS]),
        normalizer_ns=np.array([100, 200, 100, 100]),
    )
    return replace(graph, **changes)  # pyright: ignore[reportArgumentType]


def layout_graph(**changes: object) -> LayoutGraph:
    """Three nodes, one of them configurable, and two layouts."""
    graph = LayoutGraph(
        name="program",
        node_feat=np.zeros((3, 140), dtype=np.float32),
        opcode=np.array([63, 75, 2], dtype=np.uint8),
        edges=np.array([[1, 0], [2, 1]]),
        config_feat=np.full((2, 1, 18), -1, dtype=np.float32),
        configurable=np.array([1]),
        runtime_ns=np.array([7, 8]),
        splits=np.array([0, 2, 3]),
    )
    return replace(graph, **changes)  # pyright: ignore[reportArgumentType]


def assert_equal(first: object, second: object) -> None:
    for field in fields(first):  # pyright: ignore[reportArgumentType]
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype, field.name
        else:
            assert one == other


def assert_same_arrays(first: Path, second: Path) -> None:
    with np.load(first) as one, np.load(second) as other:
        assert list(one) == list(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
            assert one[name].dtype == other[name].dtype


def test_every_published_tile_file_reads_and_writes_back_equal(shared_data: Path, tmp_path: Path) -> None:
    paths = sorted((shared_data / "tpugraphs" / "tile").rglob("*.npz"))
    assert len(paths) == 8
    for path in paths:
        graph = read_tile_file(path)
        written = write_tile_file(tmp_path, graph)
        assert written.name == path.name
        assert_equal(read_tile_file(written), graph)
        assert_same_arrays(path, written)
        assert graph.is_timed.all() == ("test" not in path.parts)


def test_every_published_layout_file_reads_and_writes_back_equal(shared_data: Path, tmp_path: Path) -> None:
    paths = sorted((shared_data / "tpugraphs" / "layout").rglob("*.npz"))
    assert len(paths) == 8
    for path in paths:
        graph = read_layout_file(path)
        written = write_layout_file(tmp_path, graph)
        assert_equal(read_layout_file(written), graph)
        assert_same_arrays(path, written)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert_equal(read_tile_file(write_tile_file(tmp_path, tile_graph())), tile_graph())
    assert_equal(read_layout_file(write_layout_file(tmp_path, layout_graph())), layout_graph())


def test_graphs_without_edges_or_configurations_are_read(tmp_path: Path) -> None:
    bare = tile_graph(
        edges=np.zeros((0, 2), np.int64),
        config_feat=np.zeros((0, 24), np.float32),
        runtime_ns=np.zeros(0, np.int64),
        normalizer_ns=np.zeros(0, np.int64),
    )
    assert_equal(read_tile_file(write_tile_file(tmp_path, bare)), bare)


def test_equal_graphs_are_equal_files_and_compressed(tmp_path: Path) -> None:
    first = write_tile_file(tmp_path, tile_graph()).read_bytes()
    assert len(first) < tile_graph().byte_size
    assert write_tile_file(tmp_path, tile_graph()).read_bytes() == first


def test_missing_times_are_no_times() -> None:
    graph = tile_graph()
    assert graph.is_timed.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(graph.relative_time, [1.0, 0.25, np.nan, np.nan])
    assert graph.with_tiles(np.array([1])).relative_time.tolist() == [0.25]
    assert graph.with_tiles(np.array([3, 1])).config_feat[0].tolist() == list(range(72, 96))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": np.array([[0, 1]])}, r"edge 0 is \[0, 1\]; a node reads only nodes with smaller numbers"),
        ({"edges": np.array([[3, 1]])}, "an edge joins nodes 1 to 3, the graph has 3 nodes"),
        ({"edges": np.array([[1, -1]])}, "an edge joins nodes -1 to 1"),
        ({"edges": np.array([1, 0])}, r"edge_index has shape \(2,\), expected \(edge, 2\)"),
        ({"opcode": np.array([1, 2], np.uint8)}, r"node_opcode has shape \(2,\), expected \(node=3\)"),
        ({"opcode": np.array([1.0, 2.0, 3.0])}, "node_opcode holds float64, expected uint8"),
        ({"opcode": np.array([1, 2, 256])}, "values from 1 to 256, which do not fit uint8"),
        ({"config_feat": np.zeros((4, 24))}, "config_feat holds float64, expected float32"),
        ({"config_feat": np.zeros((4, 18), np.float32)}, r"shape \(4, 18\), expected \(tile=4, 24\)"),
        ({"node_feat": np.full((3, 140), np.nan, np.float32)}, "node_feat holds values that are no finite"),
        ({"runtime_ns": np.array([1, 2, 3, -1])}, "smallest runtime is -1 ns"),
        ({"normalizer_ns": np.array([1, 2, 3, 0])}, "smallest normalizer 0; expected runtimes of at least 0"),
        ({"runtime_ns": np.array([1, 2, 3])}, r"config_runtime has shape \(3,\), expected \(tile=4\)"),
        (
            {"node_feat": np.zeros((0, 140), np.float32), "opcode": np.zeros(0, np.uint8)},
            "a graph without nodes",
        ),
    ],
)  # fmt: skip
def test_contradictions_in_a_tile_file_are_told(
    changes: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    path = write_tile_file(tmp_path, tile_graph(**changes))
    with pytest.raises(SchemaError, match=message) as raised:
        read_tile_file(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"configurable": np.array([3])}, "node_config_ids holds numbers from 3 to 3, the graph has 3 nodes"),
        ({"splits": np.array([0, 4])}, "node_splits holds numbers from 0 to 4"),
        ({"runtime_ns": np.array([7, -8])}, "runtimes down to -8 ns"),
        ({"configurable": np.array([1, 2])}, r"expected \(configurable node=1\)"),
    ],
)
def test_contradictions_in_a_layout_file_are_told(
    changes: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    path = write_layout_file(tmp_path, layout_graph(**changes))
    with pytest.raises(SchemaError, match=message):
        read_layout_file(path)


def test_a_file_of_the_other_kind_is_told_by_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(
        SchemaError, match="is not a TpuGraphs tile file: it lacks config_feat, config_runtime_nor"
    ):
        read_tile_file(write_layout_file(tmp_path, layout_graph()))
    with pytest.raises(SchemaError, match=r"is not a TpuGraphs layout file: it lacks node_config_feat"):
        read_layout_file(write_tile_file(tmp_path, tile_graph()))


@pytest.mark.parametrize("kept", [0, 10, 0.3, 0.6, 0.95, -1])
def test_a_truncated_file_is_told(kept: float, tmp_path: Path) -> None:
    path = write_tile_file(tmp_path, tile_graph())
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if 0 < kept < 1 else int(kept)])
    with pytest.raises(SchemaError, match=r"is no \.npz archive, or is cut short or damaged"):
        read_tile_file(path)


def test_damage_anywhere_never_gives_another_graph(tmp_path: Path) -> None:
    path = write_tile_file(tmp_path, tile_graph())
    content = path.read_bytes()
    random = np.random.default_rng(0)
    for place in random.integers(len(content), size=300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << random.integers(8)
        path.write_bytes(damaged)
        try:
            graph = read_tile_file(path)
        except SchemaError:
            continue
        assert_equal(graph, tile_graph())  # the damage is in a date or another field that nobody reads


def test_other_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(KernelcastError, match="cannot be read: No such file"):
        read_tile_file(tmp_path / "absent.npz")
    with pytest.raises(KernelcastError, match="cannot be read: Is a directory"):
        read_tile_file(tmp_path)
    (tmp_path / "picture.npz").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(SchemaError, match=r"is no \.npz archive"):
        read_tile_file(tmp_path / "picture.npz")


def rewritten(path: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Changes the bytes of one array of an archive, checksums and all."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, change(content) if member == f"{name}.npy" else content)


@pytest.mark.parametrize("count", ["9999999999", "-4"])
def test_an_absurd_count_is_refused_before_anything_is_allocated(count: str, tmp_path: Path) -> None:
    path = write_tile_file(tmp_path, tile_graph())

    def lie(content: bytes) -> bytes:
        return content.replace(b"(4, 24), }" + b" " * (len(count) - 1), f"({count}, 24), }}".encode())

    rewritten(path, "config_feat", lie)
    with pytest.raises(
        SchemaError, match=r"config_feat (states 239,999,999,976 values|has shape \(-4, 24\))"
    ):
        read_tile_file(path)


def test_a_size_that_the_bytes_cannot_expand_to_is_refused(tmp_path: Path) -> None:
    path = write_tile_file(tmp_path, tile_graph())
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("config_feat.npy").file_size
    wrong = size.to_bytes(4, "little")
    path.write_bytes(content.replace(wrong, (200 << 20).to_bytes(4, "little")))
    with pytest.raises(
        SchemaError, match=r"config_feat.npy states 209,715,200 bytes, which the [0-9,]+ bytes"
    ):
        read_tile_file(path)
    path.write_bytes(content.replace(wrong, (3 << 30).to_bytes(4, "little")))
    with pytest.raises(
        SchemaError, match=r"states 3,\d+,\d+,\d+ bytes of arrays; at most 268,435,456 are read"
    ):
        read_tile_file(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_expand_without_bound_are_refused(method: int, tmp_path: Path) -> None:
    write_tile_file(tmp_path, tile_graph(name="g"))
    path = tmp_path / "g.npz"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression=method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(SchemaError, match=f"compressed by method {method}; expected stored or deflated"):
        read_tile_file(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its memory from /proc, as on Linux")
def test_a_bomb_is_refused_in_little_memory(tmp_path: Path) -> None:
    """300 MB of zeros in a file of 300 kB, with a header to match."""
    path = tmp_path / "bomb.npz"
    write_tile_file(tmp_path, tile_graph(name="bomb"))
    header = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (3_200_000, 24)}
    np.lib.format.write_array_header_1_0(header, shape)
    rewritten(path, "config_feat", lambda _: header.getvalue() + bytes(3_200_000 * 96))
    assert path.stat().st_size < 400_000
    check = (
        "import sys\n"
        "from pathlib import Path\n"
        "from kernelcast.data.tpugraphs.tile_file import read_tile_file\n"
        "from kernelcast.errors import SchemaError\n"
        # Not getrusage: that also counts what the parent held when it started this process.
        "def peak():\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))\n"
        "before = peak()\n"
        "try:\n    read_tile_file(Path(sys.argv[1]))\n"
        "except SchemaError as error:\n    assert 'at most 268,435,456' in str(error), error\n"
        "else:\n    raise AssertionError\n"
        "print(peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", check, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < 20 << 20


def test_integers_of_another_width_are_taken_where_they_fit(tmp_path: Path) -> None:
    path = write_tile_file(tmp_path, tile_graph(opcode=np.array([63, 96, 2], dtype=np.int32)))
    assert_equal(read_tile_file(path), tile_graph())


def test_narrow_integers_do_not_grow_beyond_the_limit(tmp_path: Path) -> None:
    many = 50_000
    path = write_tile_file(
        tmp_path,
        tile_graph(
            config_feat=np.zeros((many, 24), np.float32),
            runtime_ns=np.ones(many, np.int8),
            normalizer_ns=np.ones(many, np.int8),
        ),
    )
    size = read_tile_file(path).byte_size
    with pytest.raises(SchemaError, match=r"states \d,\d+,\d+ bytes of arrays; at most \d,\d+,\d+ are read"):
        read_tile_file(path, most_bytes=size - many)


def test_an_encrypted_or_object_array_is_refused(tmp_path: Path) -> None:
    path = write_tile_file(tmp_path, tile_graph())
    rewritten(path, "config_runtime", lambda content: content.replace(b"'<i8'", b"'|O' "))
    with pytest.raises(SchemaError, match="config_runtime holds object, expected int64"):
        read_tile_file(path)
    rewritten(path, "config_runtime", lambda content: b"\x93NUMPY\x03\x00" + content[8:])
    with pytest.raises(SchemaError, match=r"is not that of \.npy version 1\.0"):
        read_tile_file(path)
