"""Files that are either whole or absent, whatever kills the process while they are written."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from kernelcast.errors import StoreError

TEMPORARY_SUFFIX = ".partial"


def write_durably(path: Path, content: bytes) -> None:
    """Puts ``content`` at ``path``, replacing what was there, so that a crash leaves the old or the new.

    The bytes go to a temporary name beside it, are synced, renamed, and the folder is synced: only then is
    the new name on the disk.

    Raises:
        StoreError: what was there before is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise store_error(path, error) from error


def sync_folder(folder: Path) -> None:
    """Makes renames and removals in ``folder`` last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_error(path: Path, error: OSError) -> StoreError:
    """The error to raise for a failed write: which file, why, what to do."""
    advice = {
        errno.ENOSPC: "the disk is full: free some space and run the same command again",
        errno.EDQUOT: "the disk quota is used up: free some space and run the same command again",
        errno.EFBIG: "the file would pass this process's file size limit: raise it and run the command again",
        errno.EROFS: "the file system is read-only: choose another folder",
        errno.EACCES: "no permission to write there: choose another folder or change its mode",
        errno.EPERM: "no permission to write there: choose another folder or change its mode",
        errno.ENOTDIR: "a part of this path is a file, not a folder: choose another folder",
    }
    what = advice.get(error.errno or 0, error.strerror or str(error))
    return StoreError(f"cannot write {path}: {what}; everything written before is kept")
