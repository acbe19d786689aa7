"""Journals: what is appended survives, what is cut short is done again."""

from pathlib import Path

import pytest

from kernelcast.errors import SchemaError, StoreError
from kernelcast.jobs.studies.journal import Journal

HEADER = {"study": "test", "schema": 1, "seeds": [0, 1]}


def test_entries_survive_and_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.append({"key": "a", "value": 1.5})
        journal.append({"key": "ü", "value": float("nan")})
    with Journal(path, HEADER) as journal:
        assert [entry["key"] for entry in journal.entries] == ["a", "ü"]
        journal.append({"key": "c"})
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_line_cut_short_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.append({"key": "a"})
        journal.append({"key": "b"})
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(path, HEADER) as journal:
        assert [entry["key"] for entry in journal.entries] == ["a"]
        journal.append({"key": "b"})
    with Journal(path, HEADER) as journal:
        assert [entry["key"] for entry in journal.entries] == ["a", "b"]


def test_even_a_header_cut_short_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"study": "te')
    with Journal(path, HEADER) as journal:
        assert journal.entries == []


def test_a_journal_of_another_study_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.append({"key": "a"})
    before = path.read_bytes()
    with pytest.raises(SchemaError, match=r"was written for .*'seeds': \[0, 1\].* not for .*'seeds': \[2\]"):
        Journal(path, {**HEADER, "seeds": [2]})
    assert path.read_bytes() == before


def test_foreign_files_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("a note without an end of line")
    with pytest.raises(SchemaError, match="is not a journal"):
        Journal(path, HEADER)
    assert path.read_text() == "a note without an end of line"
    path.write_text("HloModule m\n")
    with pytest.raises(SchemaError, match=r"journal\.jsonl, line 1: not JSON"):
        Journal(path, HEADER)
    with pytest.raises(StoreError, match="cannot write"):
        Journal(tmp_path, HEADER)
    with pytest.raises(StoreError, match=r"cannot write .*below"):
        Journal(path / "below", HEADER)
