"""Threads that time kernels, one on each core, and how ctrl-C reaches them."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from kernelcast.core.timing import Failure, Timing
from kernelcast.targets.protocol import Candidate, TimesKernels

# How long the end of a collection waits for a request that a core is in; the worker ends with this process.
_ABANDON_LIMIT_S = 10.0
_LOOK_PERIOD_S = 0.2


class TimerOn(Protocol):
    """Sets up one core; its worker ends with the context."""

    def __call__(self, cpu: int, sleep: Callable[[float], None]) -> AbstractContextManager[TimesKernels]:
        """A timer pinned to a core.

        Args:
            sleep: to be called for every wait; raises when the timer should end.
        """
        ...


class Interrupt:
    """Notes the first ctrl-C instead of raising in the middle of a commit; a second one raises."""

    def __init__(self) -> None:
        self.came = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Interrupt:
        signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> None:
        self.came = True
        signal.signal(signal.SIGINT, self._before)


class _Abandoned(Exception):
    """Ends a lane from inside its timer."""


class Lanes:
    """One thread per core; all draw from one iterator and put what is final into one queue."""

    def __init__(
        self,
        candidates: Iterator[Candidate],
        *,
        timer_on: TimerOn,
        cpus: Sequence[int],
        clock: Callable[[], float],
        close_s: float,
        end_s: float,
    ) -> None:
        """Starts at once.

        Args:
            close_s: by ``clock``; from then on no candidate is drawn.
            end_s: by ``clock``; from then on nothing is waited for.
        """
        self._candidates = candidates
        self._drawing = threading.Lock()
        self._timer_on = timer_on
        self._clock = clock
        self._close_s, self._end_s = close_s, end_s
        self._abandoned = threading.Event()
        self._final: queue.SimpleQueue[tuple[str, Timing | Failure]] = queue.SimpleQueue()
        self._errors: list[BaseException] = []
        # Daemons: a lane that hangs in a request must not keep the process after ctrl-C.
        self._threads = [
            threading.Thread(target=self._work, args=(cpu,), daemon=True, name=f"lane-{cpu}") for cpu in cpus
        ]
        for thread in self._threads:
            thread.start()

    def are_running(self) -> bool:
        """Whether any lane still works, none having failed."""
        return any(thread.is_alive() for thread in self._threads) and not self._errors

    def take(self, within_s: float, interrupt: Interrupt) -> list[tuple[str, Timing | Failure]]:
        """(key, outcome) of what became final since the last call; waits for more at most so long."""
        deadline_s = self._clock() + within_s
        found: list[tuple[str, Timing | Failure]] = []
        while True:
            patience_s = max(0.0, min(_LOOK_PERIOD_S, deadline_s - self._clock()))
            try:
                found.append(self._final.get(timeout=patience_s))
            except queue.Empty:
                if patience_s == 0 or interrupt.came or not self.are_running():
                    return found

    def abandon(self) -> None:
        """Ends the lanes after the request that each is in."""
        self._abandoned.set()
        for thread in self._threads:
            thread.join(timeout=_ABANDON_LIMIT_S)

    def raise_error(self) -> None:
        """Raises what ended a lane early."""
        if self._errors:
            raise self._errors[0]

    def _work(self, cpu: int) -> None:
        try:
            with self._timer_on(cpu, self._sleep) as timer:
                for key, outcome in timer.time_kernels(self._drawn()):
                    self._final.put((key, outcome))
                    if self._is_over():
                        return
        except _Abandoned:
            return
        except BaseException as error:  # handed to the main thread, which raises it
            self._errors.append(error)

    def _drawn(self) -> Iterator[Candidate]:
        while self._clock() < self._close_s and not self._abandoned.is_set():
            with self._drawing:
                candidate = next(self._candidates, None)
            if candidate is None:
                return
            yield candidate

    def _sleep(self, seconds: float) -> None:
        left_s = max(0.0, self._end_s - self._clock())
        if self._abandoned.wait(min(seconds, left_s)) or seconds > left_s:
            raise _Abandoned

    def _is_over(self) -> bool:
        return self._abandoned.is_set() or self._clock() >= self._end_s
