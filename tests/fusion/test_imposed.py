"""XLA compiles what a plan asks for, and it computes what the untouched program computes."""

from pathlib import Path
from typing import Any

Imposed = tuple[Path, list[dict[str, Any]]]


def test_the_default_comes_back_as_it_was(imposed: Imposed):
    assert [r["name"] for r in imposed[1] if not r["default_is_identical"]] == []


def test_no_plan_changes_a_value(imposed: Imposed):
    assert {r["name"]: r["wrong"] for r in imposed[1] if r["wrong"]} == {}


def test_every_plan_compiles(imposed: Imposed):
    assert {r["name"]: r["failed"] for r in imposed[1] if r["failed"]} == {}


def test_the_plans_are_many_and_use_the_extensions(imposed: Imposed):
    records = imposed[1]
    assert len(records) >= 30
    assert sum(r["plans"] for r in records) >= 140
    assert sum(r["with_groups"] for r in records) >= 15
    assert sum(r["with_loops"] for r in records) >= 10
