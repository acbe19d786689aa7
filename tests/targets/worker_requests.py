"""Requests for the worker's tests; a module of its own because the child has to import them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from kernelcast.core.timing import Reason
from kernelcast.targets.worker import Failed


@dataclass(frozen=True)
class Boot:
    """The state of the child is a list to which requests append."""

    is_broken: bool = False

    def start(self) -> list[int]:
        if self.is_broken:
            raise RuntimeError("no device")
        return []


@dataclass(frozen=True)
class Append:
    number: int

    def run(self, state: list[int]) -> tuple[int, ...]:
        state.append(self.number)
        return tuple(state)


@dataclass(frozen=True)
class Where:
    def run(self, _: list[int]) -> tuple[int, set[int], str]:
        return os.getpid(), os.sched_getaffinity(0), os.environ.get("KERNELCAST_TEST", "")


@dataclass(frozen=True)
class Die:
    signal: int = signal.SIGABRT
    words: str = "Check failed: the last words"

    def run(self, _: list[int]) -> None:
        os.write(2, f"{self.words}\n".encode())
        os.kill(os.getpid(), self.signal)


@dataclass(frozen=True)
class Sleep:
    seconds: float

    def run(self, _: list[int]) -> None:
        time.sleep(self.seconds)


@dataclass(frozen=True)
class Eat:
    bytes_: int

    def run(self, _: list[int]) -> None:
        eaten = bytearray(self.bytes_)
        eaten[::4096] = b"x" * len(eaten[::4096])
        time.sleep(30)


@dataclass(frozen=True)
class Fail:
    def run(self, _: list[int]) -> None:
        raise Failed(Reason.NOT_AS_ASKED, "another module")


@dataclass(frozen=True)
class Raise:
    message: str

    def run(self, _: list[int]) -> None:
        raise RuntimeError(self.message)
