"""The child's side of a worker: ``python -m kernelcast.targets.child DESCRIPTOR CPU PARENT``.

A file of its own because it runs as ``__main__``: classes that both sides compare must live elsewhere.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from kernelcast.core.timing import Failure, Reason
from kernelcast.targets.worker import Failed

_PR_SET_PDEATHSIG = 1


def _serve(descriptor: int, cpu: int, parent: int) -> None:
    """The child's life: pinned, tied to its parent, answering until the connection closes."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above took effect
        return
    os.sched_setaffinity(0, {cpu})
    # When memory runs out, the system ends this process and not the user's.
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    connection = Connection(descriptor)
    state: object = None
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            if state is None:
                state = request.start()
                answer: object = None
            else:
                answer = request.run(state)
        except Failed as failed:
            answer = failed.failure
        except Exception as error:
            answer = _failure_of(error)
        connection.send(answer)


def _failure_of(error: Exception) -> Failure:
    """The failure that stands for an exception: XLA tells what happened in the first word of its message."""
    message = f"{type(error).__name__}: {error}"
    reason = (
        Reason.MEMORY if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in message else Reason.RUN
    )
    return Failure(reason=reason, message=message)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
