"""Records of results and the tables made from them."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernelcast.errors import SchemaError
from kernelcast.report.provenance import commit_of, provenance, versions
from kernelcast.report.results import Record, history_path, read_history, read_records, write_records
from kernelcast.report.tables import rewrite, stale, with_tables, with_unit


def record(name: str = "cpu.tune.gain.rbf", value: float = 1.6, **changes: object) -> Record:
    base = Record(
        name=name,
        value=value,
        unit="ratio",
        command="kernelcast evaluate tuning --record",
        commit="0123456789ab",
        machine="A CPU, 2 CPUs",
        versions={"python": "3.11.2", "jax": "0.10.2"},
        seeds=(0, 1),
        split="experiments/tuning.json",
        noise="A/A 1.003",
        date="2026-01-01T00:00:00Z",
    )
    return replace(base, **changes)  # pyright: ignore[reportArgumentType]


def test_what_is_written_is_read_back_sorted_by_name(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_records(path, [record("b.two"), record("a.one")])
    assert read_records(path) == [record("a.one"), record("b.two")]
    assert read_history(path) == []
    assert read_records(tmp_path / "absent.json") == []


def test_a_newer_value_replaces_and_the_older_moves_to_the_history(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    for value in (1.0, 2.0, 3.0):
        write_records(path, [record(value=value)])
    assert [r.value for r in read_records(path)] == [3.0]
    assert [r.value for r in read_history(path)] == [1.0, 2.0]


def test_only_the_command_that_a_record_names_may_replace_it(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_records(path, [record()])
    write_records(path, [record(command="kernelcast evaluate tuning --programs rbf --record")])
    with pytest.raises(
        SchemaError, match="written by `kernelcast evaluate tuning`, not by `kernelcast demo`"
    ):
        write_records(path, [record(command="kernelcast demo --record")])
    assert len(read_records(path)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a results file"),
        ("{}", "expected a list"),
        ('[{"name": "a.b"}]', "a record has the fields name, value"),
        ("[3]", "got 3"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=message):
        read_records(path)


def test_two_records_of_one_name_and_binary_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_records(path, [record()])
    path.write_text(json.dumps(json.loads(path.read_text()) * 2))
    with pytest.raises(SchemaError, match=r"two records named cpu\.tune\.gain\.rbf"):
        read_records(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match="not a text file"):
        read_records(path)


@pytest.mark.parametrize("name", ["plain", "Upper.case", "a..b", ""])
def test_names_are_dotted_and_lower_case(name: str) -> None:
    with pytest.raises(ValueError, match="dotted"):
        record(name)


def test_values_are_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        record(value=float("nan"))


def test_listing_and_pivot_are_made_between_their_markers(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    write_records(
        results,
        [
            record(),
            record("cpu.tune.gain.nbody", 8.123456),
            record("cpu.tune.gain_over_library_off.rbf", 1.2),
        ],
    )
    document = tmp_path / "README.md"
    document.write_text(
        "Intro\n<!-- results:cpu.tune.gain.* -->\nstale\n<!-- /results -->\n"
        "Middle\n<!-- results-by:cpu.tune.*.* -->\n<!-- /results -->\nEnd\n"
    )
    assert stale([document], results) == [document]
    assert rewrite([document], results) == [document]
    text = document.read_text()
    assert "| `cpu.tune.gain.nbody` | 8.123× | A/A 1.003 | experiments/tuning.json | 2026-01-01 |" in text
    assert "|  | nbody | rbf |" in text
    assert "| gain | 8.123× | 1.6× |" in text
    assert "| gain_over_library_off |  | 1.2× |" in text
    assert text.startswith("Intro\n")
    assert text.endswith("End\n")
    assert "stale" not in text
    assert rewrite([document], results) == []


def test_tables_without_records_say_so_and_lost_markers_are_errors(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    text = with_tables("<!-- results:x.* -->\n<!-- /results -->", results, place="doc")
    assert "Not measured yet." in text
    with pytest.raises(SchemaError, match="doc: each"):
        with_tables("<!-- results:x.* -->\n", results, place="doc")


def test_history_table_shows_replaced_values(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    write_records(results, [record(value=1.0)])
    write_records(results, [record(value=2.0)])
    text = with_tables("<!-- results-history -->\n<!-- /results -->", results, place="doc")
    assert "| `cpu.tune.gain.rbf` | 1× |" in text
    assert history_path(results).name == "results-history.json"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.3456, "%", "12.35 %"),
        (1.25, "ratio", "1.25×"),
        (10213, "count", "10,213"),
        (0.8211, "fraction", "0.8211"),
        (25300.4, "1/s", "25,300 1/s"),
        (0, "count", "0"),
    ],
)
def test_values_are_printed_with_their_unit(value: float, unit: str, text: str) -> None:
    assert with_unit(value, unit) == text


def test_provenance_names_the_run(tmp_path: Path) -> None:
    found = provenance("kernelcast x --record", repository=tmp_path, now=datetime(2026, 1, 2, tzinfo=UTC))
    assert found.commit == "unknown"
    assert found.date == "2026-01-02T00:00:00Z"
    made = found.record("a.b", 1, "count", seeds=[3], noise="none")
    assert (made.seeds, made.machine, made.split) == ((3,), found.machine, "none")
    assert "python" in versions()


def test_commit_of_this_checkout(repository_root: Path) -> None:
    assert len(commit_of(repository_root).removesuffix("+changes")) in (7, 12)


def test_the_tables_in_the_docs_equal_the_records(repository_root: Path) -> None:
    documents = [repository_root / "README.md", *sorted((repository_root / "docs").glob("*.md"))]
    assert stale(documents, repository_root / "docs" / "results.json") == []
