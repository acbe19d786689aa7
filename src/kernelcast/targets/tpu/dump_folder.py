"""A folder for the compiler's dumps: in memory where the system has such a file system, gone when done."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")
_PREFIX = "kernelcast-tpu-"
_OF_PROCESS = re.compile(rf"{_PREFIX}(\d+)-.*")


def new_dump_folder() -> Path:
    """An empty folder of this process; folders that dead processes left are removed on the way."""
    parent = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    for path in parent.iterdir():
        match = _OF_PROCESS.fullmatch(path.name)
        if match is not None and not Path(f"/proc/{match[1]}").exists():
            shutil.rmtree(path, ignore_errors=True)  # another process may be removing it too
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))
