"""A child process that does compiler and device work, so that an abort, a hang or a memory overrun costs one
request and not the caller.

The parent asks, the child answers. A request is a value whose ``run`` gets the child's state (the client,
kept executables); the state is made once by the boot value. What a dead child kept is lost, which callers see
by ``Worker.generation``.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Generic, Protocol, Self, TypeVar, cast

from kernelcast.core.timing import Failure, Reason
from kernelcast.errors import TargetError

_log = logging.getLogger(__name__)

# How often the parent looks at the child's memory; one look takes microseconds on the parent's core.
_WATCH_PERIOD_S = 0.2
_START_LIMIT_S = 120.0
_READ_BYTES, _TOLD_CHARACTERS = 1 << 20, 2000
# How XLA's logging library starts the line of a fatal error: F, date, time, thread, place.
_FATAL = re.compile(r"^F\d{4} [^\]\n]*\] (.*)$", re.MULTILINE)

State = TypeVar("State")
Answer = TypeVar("Answer")
_StateIn = TypeVar("_StateIn", contravariant=True)
_StateOut = TypeVar("_StateOut", covariant=True)
_AnswerOut = TypeVar("_AnswerOut", covariant=True)


class Request(Protocol[_StateIn, _AnswerOut]):
    """Something to do in the child.

    Requests and answers are pickled between two processes of one installation; no pickle reaches a file.
    """

    def run(self, state: _StateIn, /) -> _AnswerOut:
        """The answer; raises ``Failed`` to answer with a failure that has a reason of its own."""
        ...


class Boot(Protocol[_StateOut]):
    """How a child makes its state."""

    def start(self) -> _StateOut:
        """The state that all requests of this child share."""
        ...


class Failed(Exception):
    """Ends a request with a given failure."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(reason=reason, message=message)


class Worker(Generic[State]):
    """One child process, pinned to one CPU, started at the first request and again after each death.

    Use as a context manager. Not thread-safe. Ask from one thread that lives as long as the worker: the
    system kills a child when the thread that started it ends.

    Attributes:
        cpu: the only CPU that the child may use.
        memory_limit_bytes: resident memory at which the child is killed.
        busy_s: wall seconds in which the child worked on requests, including those that failed.
    """

    def __init__(
        self,
        boot: Boot[State],
        *,
        cpu: int,
        memory_limit_bytes: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            boot: makes the state in the child.
            memory_limit_bytes: resident memory at which the child is killed.
            environment: variables set for the child before its libraries load, over the inherited ones.
        """
        self.cpu = cpu
        self.busy_s = 0.0
        self._generation = 0
        self._boot = boot
        self.memory_limit_bytes = memory_limit_bytes
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._log_file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def generation(self) -> int:
        """How many children have ended; what a child keeps is valid within its generation.

        A child may die while nobody waits for it: a system short of memory ends the idle one too.
        """
        if self._process is not None and self._process.poll() is not None:
            _log.warning("the idle worker of CPU %d died: %s", self.cpu, self._buried())
        return self._generation

    def ask(self, request: Request[State, Answer], *, limit_s: float) -> Answer | Failure:
        """The child's answer, or why there is none: its own failure, an overrun of time or memory, a crash.

        Args:
            limit_s: seconds after which the child is killed; starting a child does not count.

        Raises:
            TargetError: when no child can be started.
        """
        connection = self._started()
        begin = time.monotonic()
        try:
            connection.send(request)
            return cast("Answer | Failure", self._answer(connection, begin + limit_s, limit_s))
        except ConnectionError:  # it died before it had the whole request
            return self._buried()
        except BaseException:
            # The child may still be at work on this request; its answer must not be taken for the next one's.
            self.close()
            raise
        finally:
            self.busy_s += time.monotonic() - begin

    def replace_boot(self, boot: Boot[State]) -> None:
        """The next child starts with this boot, e.g. with what the present one has learned."""
        self._boot = boot

    def close(self) -> None:
        """Ends the child, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._generation += 1
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._log_file is not None:
            self._log_file.close()
        self._connection = self._process = self._log_file = None

    def _started(self) -> Connection:
        if self._connection is not None:
            return self._connection
        ours, theirs = socket.socketpair()
        self._log_file = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "kernelcast.targets.child",
                    str(theirs.fileno()),
                    str(self.cpu),
                    str(os.getpid()),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._log_file,
                stderr=self._log_file,
                # Inherited as it is, not read: the child loads the same libraries from the same places.
                env={**os.environ, **self._environment},
                # Ctrl-C goes to the terminal's foreground group; the parent decides what happens to children.
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        _log.info("worker %d of CPU %d: process %d", self._generation, self.cpu, self._process.pid)
        self._connection.send(self._boot)
        answer = self._answer(self._connection, time.monotonic() + _START_LIMIT_S, _START_LIMIT_S)
        if isinstance(answer, Failure):
            self.close()
            raise TargetError(f"the worker for CPU {self.cpu} did not start: {answer}")
        return self._connection

    def _answer(self, connection: Connection, deadline: float, limit_s: float) -> object:
        assert self._process is not None
        while True:
            try:
                if connection.poll(_WATCH_PERIOD_S):
                    return connection.recv()
            except (EOFError, ConnectionError):
                return self._buried()
            resident = _resident_bytes(self._process.pid)
            if resident > self.memory_limit_bytes:
                self.close()
                return Failure(
                    reason=Reason.MEMORY,
                    message=f"the worker held {resident >> 20} MiB, over its limit of "
                    f"{self.memory_limit_bytes >> 20} MiB",
                )
            if time.monotonic() > deadline:
                self.close()
                return Failure(reason=Reason.TIMEOUT, message=f"no answer within {limit_s:g} s")

    def _buried(self) -> Failure:
        """The failure that stands for a child that died by itself."""
        assert self._process is not None
        assert self._log_file is not None
        code = self._process.wait()
        last_words = _last_words(self._log_file)
        self.close()
        if code == -signal.SIGKILL:
            return Failure(
                reason=Reason.MEMORY, message="the system killed the worker, most likely for memory"
            )
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Failure(reason=Reason.CRASH, message=f"the worker died of {how}: {last_words}")


def _last_words(log: IO[bytes]) -> str:
    """What XLA says it died of, else the end of the log: it prints pages after the line that tells."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - _READ_BYTES))
    text = log.read().decode(errors="replace")
    fatal = _FATAL.search(text)
    return fatal[1][:_TOLD_CHARACTERS] if fatal else text[-_TOLD_CHARACTERS:].strip()


def _resident_bytes(process: int) -> int:
    """Resident memory of a process; 0 once it is gone."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
