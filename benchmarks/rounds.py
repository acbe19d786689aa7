"""How every benchmark here takes and prints its numbers.

The works to be compared run one after the other in each of five rounds, so that a loud stretch of the machine
meets all of them; a ratio is the median of the rounds' ratios, and holds on slower and louder machines where
seconds do not. Seconds are the process' CPU seconds. The result is one JSON object on stdout.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from statistics import median

ROUNDS = 5


def cpu_seconds(**works: Callable[[], object]) -> dict[str, list[float]]:
    """CPU seconds of each work in each round; a round before, which compiles, is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(ROUNDS + 1):
        for name, work in works.items():
            begin = time.process_time()
            work()
            if number:
                seconds[name].append(time.process_time() - begin)
    return seconds


def rate(count: float, seconds: list[float]) -> float:
    """How many a second, by the median round."""
    return round(count / median(seconds))


def ratio(first: list[float], second: list[float], *, each: float = 1.0) -> float:
    """Median over rounds of first over second; ``each`` corrects for works of several sizes."""
    return round(median(each * a / b for a, b in zip(first, second, strict=True)), 3)


def print_result(**figures: float) -> None:
    """One JSON object on stdout."""
    print(json.dumps(figures))
