"""The command line that a record names."""

from pathlib import Path

import pytest

from kernelcast.cli.recording import as_typed


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("evaluate plans --record", "kernelcast evaluate plans --record"),
        (
            "-v evaluate plans --plans-each 4 --json --record --cpu 0",
            "kernelcast evaluate plans --record --plans-each 4 --cpu 0",
        ),
        (
            "evaluate plans --journal /home/me/checkout/out/plans.jsonl --record",
            "kernelcast evaluate plans --record --journal out/plans.jsonl",
        ),
        (
            "evaluate plans --journal=/elsewhere/plans.jsonl --repository /home/me/checkout --record",
            "kernelcast evaluate plans --record --journal=plans.jsonl",
        ),
        ("evaluate plans ../shared/data --repository=.", "kernelcast evaluate plans --record ../shared/data"),
        ("-q tests", "kernelcast evaluate plans --record"),
    ],
)
def test_a_record_names_what_changes_its_figures_and_no_machine(typed: str, shown: str) -> None:
    assert as_typed("kernelcast evaluate plans", typed.split(), Path("/home/me/checkout")) == shown
