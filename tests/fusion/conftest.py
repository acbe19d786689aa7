"""Final modules of real programs, captured and imposed on in one child process for all tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelcast.fusion.space import FusionSpace, space_of
from kernelcast.hlo.text import parse

_SCRIPT = Path(__file__).with_name("impose.py")
RANDOM_PLANS = 2


@pytest.fixture(scope="session")
def imposed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The folder of captured modules, and what came of imposing plans on each."""
    folder = tmp_path_factory.mktemp("imposed")
    # Level 0 compiles four times as fast; what a plan computes does not depend on it.
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    child = subprocess.run(
        [sys.executable, str(_SCRIPT), str(folder), str(RANDOM_PLANS), "0"],
        env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if child.returncode:
        last = (child.stdout.split() or ["the start"])[-1]
        pytest.fail(f"the child process ended with {child.returncode} at {last}:\n{child.stderr[-3000:]}")
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return folder, records


@pytest.fixture(scope="session")
def spaces(imposed: tuple[Path, list[dict[str, Any]]]) -> dict[str, FusionSpace]:
    """The fusion space of each captured program."""
    folder, _ = imposed
    return {path.stem: space_of(parse(path.read_text())) for path in sorted(folder.glob("*.hlo"))}
