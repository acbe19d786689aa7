"""Fixtures that all tests share."""

from pathlib import Path

import pytest

from kernelcast.targets.tpu.libtpu import installed_version

_ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need libtpu are skipped, visibly, where it is not installed."""
    if installed_version() is None:
        for item in items:
            if item.get_closest_marker("tpu"):
                item.add_marker(pytest.mark.skip(reason="needs libtpu: make test-tpu"))


@pytest.fixture(scope="session")
def repository_root() -> Path:
    return _ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Data written by others that lies beside the checkout and is never part of it."""
    folder = _ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the data folder {folder}, which is absent")
    return folder


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    folder = _ROOT.parent / "shared" / "cases"
    if not folder.is_dir():
        pytest.skip(f"needs the folder {folder}, which is absent")
    return folder
