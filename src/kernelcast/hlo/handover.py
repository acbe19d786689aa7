"""Hands HLO to XLA's own code in a child process, where an abort costs one text.

XLA's parser ends the whole process on some texts that are wrong (``Check failed``), and allocates whatever a
shape asks for. Many texts share one child; a child that dies, hangs or hits its memory limit is replaced.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing.connection import Connection
from typing import IO

from kernelcast.errors import HloError
from kernelcast.hlo.conversions import Conversion

_LAST_WORDS_BYTES = 4000
_TELLING = re.compile(r"(Check failed|\w*Error|\S*bad_alloc).*")
GIBIBYTE = 1 << 30


class Cause(StrEnum):
    """Why a text was not accepted."""

    INVALID = "invalid"  # the parser says what is wrong
    CRASH = "crash"  # the child died: an abort, or no memory inside its limit
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """XLA took it; ``result`` is what became of it: for a text the serialised ``HloModuleProto``."""

    result: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """XLA did not take it.

    Attributes:
        cause: the kind of failure.
        reason: XLA's own words, or the last words of the child.
    """

    cause: Cause
    reason: str


def hand_over(
    texts: Iterable[str], *, seconds_per_text: float = 60.0, memory_bytes: int = 4 * GIBIBYTE
) -> Iterator[Accepted | Refused]:
    """One answer for each text, in order, each as soon as it is known.

    Args:
        texts: HLO modules; taken one at a time.
        seconds_per_text: wall time after which the child is ended and the text refused.
        memory_bytes: limit on the child's address space, the libraries' own 1 GiB included.
    """
    # A lone surrogate is no UTF-8; XLA's parser would be handed the same bytes by any other caller.
    payloads = (text.encode(errors="surrogatepass") for text in texts)
    yield from _answers(Conversion.TEXT_TO_PROTO, payloads, seconds_per_text, memory_bytes)


def convert(
    conversion: Conversion, payload: bytes, *, seconds: float = 120.0, memory_bytes: int = 8 * GIBIBYTE
) -> bytes:
    """The payload converted in a child of its own.

    Raises:
        HloError: XLA refuses the payload, dies of it, or takes too long or too much memory.
    """
    (answer,) = _answers(conversion, [payload], seconds, memory_bytes)
    if isinstance(answer, Refused):
        raise HloError(answer.reason)
    return answer.result


def _answers(
    conversion: Conversion, payloads: Iterable[bytes], seconds: float, memory_bytes: int
) -> Iterator[Accepted | Refused]:
    child: _Child | None = None
    try:
        for payload in payloads:
            child = child or _Child(conversion, memory_bytes)
            answer = child.answer(payload, seconds)
            if isinstance(answer, Refused) and answer.cause is not Cause.INVALID:
                child.end()
                child = None
            yield answer
    finally:
        if child is not None:
            child.end()


@dataclass(slots=True)
class _Child:
    """A running child; usable until an answer is a crash or a timeout."""

    conversion: Conversion
    memory_bytes: int
    process: subprocess.Popen[bytes] = field(init=False)
    connection: Connection = field(init=False)
    last_words: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.last_words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end
        with theirs:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "kernelcast.hlo.handover_child",
                    str(theirs.fileno()),
                    str(self.memory_bytes),
                    self.conversion.value,
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self.last_words,
                stderr=self.last_words,
            )
        self.connection = Connection(ours.detach())

    def answer(self, payload: bytes, seconds: float) -> Accepted | Refused:
        try:
            self.connection.send_bytes(payload)
            if not self.connection.poll(seconds):
                return Refused(cause=Cause.TIMEOUT, reason=f"no answer in {seconds:g} s")
            answer = self.connection.recv_bytes()
        except (EOFError, ConnectionError):
            return Refused(cause=Cause.CRASH, reason=self.death())
        if answer[:1] == b"+":
            return Accepted(result=answer[1:])
        return Refused(cause=Cause.INVALID, reason=answer[1:].decode(errors="replace"))

    def death(self) -> str:
        code = self.process.wait()
        self.last_words.seek(0)
        lines = self.last_words.read().decode(errors="replace")[-_LAST_WORDS_BYTES:].splitlines()
        told = [match[0] for line in lines if (match := _TELLING.search(line))]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"XLA ended its process ({how}): {told[-1] if told else 'without a message'}"

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()
        self.last_words.close()
