"""Commands about programs and studies: what is wrong is told in a line, with exit code 2, before any work."""

import json
from pathlib import Path

import pytest

from kernelcast.cli.app import run

HLO = """HloModule small

ENTRY main {
  x = f32[8,16]{1,0} parameter(0)
  y = f32[8,16]{1,0} exponential(x)
  ROOT z = f32[8,16]{1,0} add(y, x)
}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "small.hlo").write_text(HLO)
    (tmp_path / "wrong.hlo").write_text(HLO.replace("f32[8,16]{1,0} add(y, x)", "f32[8,16]{1,0} add(y, w)"))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\xff")
    (tmp_path / "empty.hlo").write_text("")
    (tmp_path / "other.json").write_text('{"format": "other", "version": 1}')
    return tmp_path


def test_ingest_tells_what_a_file_holds(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ingest", str(files / "small.hlo"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "small"
    assert told["stage"] == "unoptimised"
    assert told["cost"]["transcendentals"] == 128
    assert run(["ingest", str(files / "small.hlo")]) == 0
    assert "f32[8,16]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest", "{files}/wrong.hlo"], "wrong.hlo: line 6, %z"),
        (["ingest", "{files}/picture.png"], "picture.png"),
        (["ingest", "{files}/empty.hlo"], "empty.hlo"),
        (["ingest", "{files}/absent.hlo"], "there is no such file"),
        (["ingest", "{files}"], "{files}"),
        (["ingest", "{files}/small.hlo", "--stage", "cooked"], "unoptimised, optimised"),
        (["predict", "rbf", "--checkpoint", "{files}"], "is no checkpoint and holds none"),
        (["tune", "rbf", "-o", "{files}/no/where.json"], "does not exist"),
        (["tune", "rbf", "-o", "{files}/out.json", "--start", "warm"], "default, unfused, random"),
        (["measure", "rbf", "--plan", "{files}/other.json"], "got a file of format other"),
        (["measure", "nbdy"], "did you mean nbody"),
        (["replay", "{files}/other.json"], "is a other of version 1"),
        (["replay", "{files}/picture.png"], "not a text file"),
        (["replay", "{files}/absent.json"], "absent.json"),
        (["train", "{files}", "{files}/out"], "{files}"),
        (["train", "{files}", "{files}/out", "--seeds", "one"], "numbers with commas"),
        (["evaluate", "roundtrip", "{files}"], "expected an archive"),
        (["evaluate", "additivity", "--design", "{files}/other.json"], "not kernelcast-additivity"),
        (["evaluate", "additivity", "--draw", "--design", "{files}/new.json"], "at least one --new"),
        (["evaluate", "tuning", "--design", "{files}/other.json"], "not kernelcast-tuning-study"),
        (["evaluate", "plans", "--program", "nbdy"], "did you mean nbody"),
        (["evaluate", "fusion", "{files}", "{files}", "--peaks", "{files}/other.json"], "{files}"),
        (["collect", "{files}/data", "--cpus", "zero"], "numbers with commas"),
        (["doctor", "--cpus", "x"], "numbers with commas"),
        (["zoo", "list", "--family", "cats"], "families:"),
    ],
)
def test_bad_input_is_told_in_a_line(
    arguments: list[str], message: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument.replace("{files}", str(files)) for argument in arguments]
    assert run(given) == 2
    streams = capsys.readouterr()
    unwrapped = "".join(line.strip(" │") for line in streams.err.splitlines())
    assert message.replace("{files}", str(files)).replace(" ", "") in unwrapped.replace(" ", "")
    assert "Traceback" not in streams.err
    assert streams.out == ""
    assert not (files / "out.json").exists()
