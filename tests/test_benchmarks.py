"""Every benchmark runs, on a small program, and is told of."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
ARGUMENTS = {"offload": ["exponential"], "stream_tiles": ["--gigabytes", "0.03"]}
# Two files hold what the benchmarks share; ``suite`` runs these tests.
BENCHMARKS = sorted(p for p in _FOLDER.glob("*.py") if p.stem not in ("programs", "rounds", "suite"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_it_prints_one_object_of_positive_numbers(path: Path, repository_root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path), *ARGUMENTS.get(path.stem, ["double_softmax"])],
        env=os.environ | {"JAX_PLATFORMS": "cpu"}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(done.stdout)
    assert all(value > 0 for value in figures.values()), figures
    assert f"benchmarks/{path.name}" in (repository_root / "CONTRIBUTING.md").read_text()
