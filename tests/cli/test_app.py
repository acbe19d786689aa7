"""The command line as a user meets it: exit codes, streams, errors without tracebacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from kernelcast.cli import app as application
from kernelcast.cli.app import run
from kernelcast.cli.output import duration, percent, plain
from kernelcast.core.estimate import Status
from kernelcast.data.durable import store_error
from kernelcast.errors import HloError, StoreError


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from kernelcast.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def full_disk() -> StoreError:
    cause = OSError(28, "No space left on device")
    error = store_error(Path("part"), cause)
    error.__cause__ = cause
    return error


def test_help_needs_no_compiler() -> None:
    check = (
        "import sys; from kernelcast.cli.app import run\n"
        "code = run(['--help'])\n"
        "assert code == 0, code\n"
        "loaded = {'jax', 'numpy', 'equinox', 'pyarrow'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "zoo" in done.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["zoo", "show"], ["zoo", "list", "--famly", "x"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "Usage" in streams.err


def test_an_unknown_program_names_close_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["zoo", "show", "nbdy"]) == 2
    streams = capsys.readouterr()
    assert streams.err.startswith("error: there is no zoo program 'nbdy'; did you mean nbody")
    assert streams.out == ""


def test_results_are_json_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["zoo", "show", "nbody/512", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["id"] == "nbody/512"
    assert run(["zoo", "list", "--json", "--family", "nbody"]) == 0
    assert [p["program"] for p in json.loads(capsys.readouterr().out)] == ["nbody"]


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (HloError("bad shape", line=12, instruction="a"), 2, "error: line 12, %a: bad shape"),
        (StoreError("not a dataset"), 2, "error: not a dataset"),
        (full_disk(), 1, "error: cannot write part: the disk is full"),
        (FileNotFoundError(2, "No such file or directory", "x.hlo"), 2, "error: x.hlo: No such file"),
        (PermissionError(13, "Permission denied", "/out"), 1, "error: /out: Permission denied"),
        (
            ZeroDivisionError("oops [bold]"),
            1,
            "internal error: ZeroDivisionError: oops [bold]\nThis is a bug",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_become_one_line_and_an_exit_code(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = typer.Typer()

    @broken.command()
    def fail() -> None:
        raise error

    monkeypatch.delenv("KERNELCAST_DEBUG", raising=False)
    monkeypatch.setattr(application, "app", broken)
    assert run([]) == code
    written = capsys.readouterr().err
    assert written.lstrip().startswith(text)
    assert "Traceback" not in written


def test_debug_shows_where_an_error_arose() -> None:
    done = command("zoo", "show", "nbdy", KERNELCAST_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_stale_tables_fail_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("<!-- results:a.* -->\n<!-- /results -->\n")
    repository = ["--repository", str(tmp_path)]
    assert run(["report", "tables", "--check", *repository]) == 1
    assert run(["report", "tables", *repository]) == 0
    assert "Not measured yet." in readme.read_text()
    assert run(["report", "tables", "--check", "--json", *repository]) == 0
    assert run(["report", "results", *repository]) == 0
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "results.json").write_bytes(b"\x00\xff")
    capsys.readouterr()
    assert run(["report", "results", *repository]) == 2
    assert "not a text file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5, "1.5 s"),
        (0.1234, "123 ms"),
        (12.34e-6, "12.3 µs"),
        (5e-9, "5 ns"),
        (0.0, "0 ns"),
        (float("nan"), "–"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_percentages() -> None:
    assert (percent(0.1234), percent(0.0123), percent(float("nan"))) == ("12 %", "1.2 %", "–")


def test_plain_values() -> None:
    value = {"a": float("nan"), "b": (1, Path("x")), "c": Status.KNOWN, "d": {2, 1}}
    assert plain(value) == {"a": None, "b": [1, "x"], "c": "known", "d": [1, 2]}
