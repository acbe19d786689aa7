"""What tuners ran: protos and JSON, read, written and read back equal."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.core.timing import Clock, Failure, Timing
from kernelcast.data.tpugraphs.op_tuning import OpTuning, read_op_tuning, write_op_tuning
from kernelcast.data.tpugraphs.tuning import Layouts, ModuleTuning, Profile, TileSizes, TuningRun
from kernelcast.data.tpugraphs.tuning_proto import decode_tuning, encode_tuning, read_tuning, write_tuning
from kernelcast.errors import KernelcastError, SchemaError
from kernelcast.hlo.sources import load

UNSIGNED = st.integers(0, 2**64 - 1)
SIGNED = st.integers(-(2**63), 2**63 - 1)
BOUNDS = st.lists(SIGNED, max_size=3).map(tuple)
RUNS = st.builds(
    TuningRun,
    config=st.one_of(
        st.none(),
        st.builds(
            TileSizes,
            kernel_bounds=BOUNDS,
            output_bounds=BOUNDS,
            input_bounds=BOUNDS,
            iteration_bounds=BOUNDS,
        ),
        st.lists(
            st.lists(st.lists(st.integers(0, 6), max_size=3).map(tuple), max_size=3).map(tuple), max_size=3
        )
        .map(tuple)
        .map(lambda nodes: Layouts(nodes=nodes)),
    ),
    is_default=st.booleans(),
    is_error=st.booleans(),
    profile=st.one_of(st.none(), st.builds(Profile, compute_time_ns=SIGNED, compute_cycle_count=SIGNED)),
)
TUNINGS = st.builds(
    ModuleTuning,
    module=st.binary(min_size=1, max_size=20),
    fingerprint=UNSIGNED,
    runs=st.lists(RUNS, max_size=4).map(tuple),
    configurable=st.lists(UNSIGNED, max_size=4).map(tuple),
)


def run(time_ns: int, *, is_error: bool = False, config: TileSizes | None = None) -> TuningRun:
    return TuningRun(
        config=config or TileSizes(output_bounds=(4, 2)),
        is_default=False,
        is_error=is_error,
        profile=Profile(compute_time_ns=time_ns),
    )


def test_the_published_module_is_read_and_written_byte_for_byte(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "tpugraphs" / "module_tuning_data_layout.pb"
    tuning = read_tuning(path)
    assert len(tuning.runs) == 122
    assert len(tuning.configurable) == 62
    assert sum(isinstance(r.outcome, Failure) for r in tuning.runs) == 10
    assert [n for n, r in enumerate(tuning.runs) if r.is_default] == [0]
    assert load(tuning.module).program.instruction_count == 3163
    write_tuning(tmp_path / "written.pb", tuning)
    assert (tmp_path / "written.pb").read_bytes() == path.read_bytes()
    assert read_tuning(tmp_path / "written.pb") == tuning


@given(TUNINGS)
def test_every_tuning_is_read_back(tuning: ModuleTuning) -> None:
    assert decode_tuning(encode_tuning(tuning)) == tuning


def test_a_message_by_hand() -> None:
    """Module "m"; one run with output bounds [4, 300], 7 ns, default."""
    packed = bytes.fromhex("0a016d 1a0f 0a07 0a05 1203 04ac02 2202 2007 2801".replace(" ", ""))
    expected = TuningRun(
        config=TileSizes(output_bounds=(4, 300)),
        is_default=True,
        is_error=False,
        profile=Profile(compute_time_ns=7),
    )
    assert decode_tuning(packed).runs == (expected,)
    assert encode_tuning(decode_tuning(packed)) == packed


def test_numbers_that_are_not_packed_are_read() -> None:
    assert decode_tuning(bytes.fromhex("0a016d" + "2004" + "20ac02")).configurable == (4, 300)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it holds no module"),
        (bytes.fromhex("0a01"), "runs over the end"),
        (bytes.fromhex("0a016d3001"), "field 6 is none of MODULE, FINGERPRINT, RUNS, CONFIGURABLE"),
        (bytes.fromhex("0801"), "field 1 holds a number, not a message"),
        (bytes.fromhex("0a016d1a023001"), "field 6 is none of TILE, LAYOUT"),
        (b"\xff\xff", "index out of range"),
    ],
)
def test_other_bytes_are_told(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=f"expected a serialised ModuleTuningData.*{message}"):
        decode_tuning(content)
    path = tmp_path / "x.pb"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=f"x.pb: expected .*{message}"):
        read_tuning(path)


def test_every_truncation_is_told() -> None:
    content = encode_tuning(
        ModuleTuning(module=b"module", fingerprint=9, runs=(run(5),), configurable=(1, 2))
    )
    whole = decode_tuning(content)
    for length in range(len(content)):
        try:
            held = decode_tuning(content[:length])
        except SchemaError:
            continue
        assert held != whole  # a message that ends between two fields is a message


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(KernelcastError, match=r"absent\.pb: cannot be read: No such file"):
        read_tuning(tmp_path / "absent.pb")
    (tmp_path / "large.pb").write_bytes(bytes(2000))
    with pytest.raises(SchemaError, match="has 2,000 bytes; at most 1,000 are read"):
        read_tuning(tmp_path / "large.pb", most_bytes=1000)


def test_a_published_time_is_a_timing_with_its_own_clock() -> None:
    outcome = run(1500).outcome
    assert isinstance(outcome, Timing)
    assert outcome.clock is Clock.PUBLISHED
    assert outcome.seconds() == pytest.approx(1.5e-6)


@pytest.mark.parametrize(
    ("tried", "message"),
    [
        (run(0), "the published time is 0, which says missing"),
        (run(2**63 - 1), "the published time is 9223372036854775807, which says missing"),
        (run(-1), "the published time is -1"),
        (run(5, is_error=True), "marked as an error"),
        (TuningRun(config=None, is_default=False, is_error=False, profile=None), "the published time is 0"),
    ],
)
def test_what_has_no_time_is_a_failure_with_the_reason(tried: TuningRun, message: str) -> None:
    assert isinstance(tried.outcome, Failure)
    assert message in tried.outcome.message


def test_published_bounds_become_a_tile_minor_to_major() -> None:
    tile = TileSizes(kernel_bounds=(3, 1, 24, 3), output_bounds=(12, 4, 4, 3)).tile
    assert str(tile) == "kernel[3,24,1,3] output[3,4,4,12]"
    assert tile.unit == "hardware-tile"
    assert TileSizes().tile.levels == ()


def test_every_published_kernel_is_read_and_written_byte_for_byte(shared_data: Path, tmp_path: Path) -> None:
    paths = sorted((shared_data / "tpugraphs" / "op_tuning").glob("*.json"))
    runs = 0
    for path in paths:
        tuning = read_op_tuning(path)
        written = write_op_tuning(tmp_path, tuning)
        assert read_op_tuning(written) == tuning
        for suffix in (".json", ".hlo"):
            assert written.with_suffix(suffix).read_bytes() == path.with_suffix(suffix).read_bytes()
        assert tuning.program.entry_computation.root_instruction.name == tuning.name
        assert [r.is_default for r in tuning.runs] == [True] + [False] * (len(tuning.runs) - 1)
        runs += len(tuning.runs)
    assert (len(paths), runs) == (11, 412)


def held_as(runs: str) -> str:
    return f'{{"name": "k", "device": "d", "runs": [{{{runs}}}]}}'


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ("[]", "list indices"),
        ("{", "Expecting property name"),
        ("[" * 200_000, "RecursionError"),
        ('{"name": "k", "device": "d"}', "KeyError: 'runs'"),
        (held_as('"error": false, "is_default": true'), "KeyError: 'time_ns'"),
        (held_as('"error": 0, "is_default": true, "time_ns": 1'), "expected true or false, got 0"),
        (held_as('"error": false, "is_default": true, "time_ns": 1.5'), "expected a whole number, got 1.5"),
        (held_as('"error": false, "is_default": true, "time_ns": 1, "x": 0'), "a run has no x"),
    ],
)
def test_other_json_is_told(held: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text(held)
    (tmp_path / "k.hlo").write_text("HloModule k ENTRY e { ROOT x = f32[] parameter(0) }")
    with pytest.raises(
        SchemaError, match=r"k\.json: expected a JSON object with name, device and runs"
    ) as raised:
        read_op_tuning(tmp_path / "k.json")
    assert message in str(raised.value)


def test_a_missing_or_binary_half_is_told(tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text(json.dumps({"name": "k", "device": "d", "runs": []}))
    with pytest.raises(KernelcastError, match=r"k\.hlo: cannot be read: No such file"):
        read_op_tuning(tmp_path / "k.json")
    (tmp_path / "k.hlo").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match=r"k\.hlo: is no text file"):
        read_op_tuning(tmp_path / "k.json")


def test_layouts_are_no_kernel_tuning(tmp_path: Path) -> None:
    layouts = TuningRun(config=Layouts(nodes=()), is_default=True, is_error=False, profile=None)
    tuning = OpTuning(name="k", device="d", text="", runs=(layouts,))
    with pytest.raises(ValueError, match="holds kernel, output and input bounds alone, got Layouts"):
        write_op_tuning(tmp_path, tuning)
