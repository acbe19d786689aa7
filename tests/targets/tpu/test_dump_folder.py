import os
import subprocess
from pathlib import Path

from kernelcast.targets.tpu.dump_folder import new_dump_folder


def test_folder_is_empty_and_of_this_process() -> None:
    folder = new_dump_folder()
    assert list(folder.iterdir()) == []
    assert str(os.getpid()) in folder.name
    folder.rmdir()


def test_folders_of_dead_processes_go() -> None:
    first = new_dump_folder()
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = Path(first.parent, first.name.replace(str(os.getpid()), str(dead.pid), 1))
    left.mkdir()
    (left / "dump.txt").write_text("left over")
    second = new_dump_folder()
    assert first.exists()
    assert not left.exists()
    first.rmdir()
    second.rmdir()
