"""In which order kernels are measured: a function of the surveyed programs and the seed, and of nothing else.

Neither what is already measured nor the order of a set has a say, so a collection that was killed and one
that ran through want the same kernels.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from kernelcast.core.timing import Reason
from kernelcast.data.schema import KernelRow, MeasurementRow, OccurrenceRow, PlanRow
from kernelcast.data.store import Dataset

# Kernels of these plans come first: they are what a program's default time is made of.
DEFAULT_PLANS = ("default", "library-off")


def work_list(dataset: Dataset, programs: Sequence[str], *, seed: int, kernels_per_program: int) -> list[str]:
    """Fingerprints of the kernels to measure, in order, those already measured included.

    Programs take turns, so that no program dominates whenever the collection ends; each takes first the
    kernels of its default plans, then those of random plans, and of kernels of one skeleton the first before
    the second of any.

    Args:
        programs: whose kernels are wanted.
        kernels_per_program: at most so many by one program's own turns.
    """
    wanted = sorted(programs, key=lambda program: _draw(seed, program))
    queues = _queues(dataset, seed)
    pending = [iter(queues.get(program, ())) for program in wanted]
    turns = [0] * len(wanted)
    chosen: dict[str, None] = {}
    live = list(range(len(wanted)))
    while live:
        for number in tuple(live):
            kernel = next((k for k in pending[number] if k not in chosen), None)
            if kernel is None or turns[number] == kernels_per_program:
                live.remove(number)
            else:
                chosen[kernel] = None
                turns[number] += 1
    return list(chosen)


def attempted(dataset: Dataset, *, target: str, input_policy: str) -> frozenset[str]:
    """Fingerprints of the kernels that have an outcome on this target, tile-less, with these inputs.

    Kernels that were given up for noise only do not count: a quieter day may give them a time.
    """
    columns = dataset.columns(MeasurementRow, "kernel", "tile", "target", "input_policy", "failure")
    return frozenset(
        kernel
        for kernel, tile, measured_on, policy, failure in columns
        if not tile and measured_on == target and policy == input_policy and failure != Reason.TOO_LOUD
    )


def _queues(dataset: Dataset, seed: int) -> dict[str, list[str]]:
    """The kernels of each program, in the order in which it wants them."""
    skeletons = dict(dataset.columns(KernelRow, "fingerprint", "skeleton"))
    columns = dataset.columns(PlanRow, "program", "plan", "how")
    defaults = {(program, plan) for program, plan, how in columns if how in DEFAULT_PLANS}
    in_default: dict[str, dict[str, bool]] = {}
    for program, plan, kernel in dataset.columns(OccurrenceRow, "program", "plan", "kernel"):
        if kernel not in skeletons:  # its text was pruned
            continue
        own = in_default.setdefault(program, {})
        own[kernel] = own.get(kernel, False) or (program, plan) in defaults
    queues: dict[str, list[str]] = {}
    for program, own in in_default.items():
        drawn = sorted(own, key=lambda kernel: _draw(seed, kernel))
        copies: Counter[str] = Counter()
        places: dict[str, tuple[bool, int]] = {}
        for kernel in sorted(drawn, key=lambda kernel: not own[kernel]):
            places[kernel] = (not own[kernel], copies[skeletons[kernel]])
            copies[skeletons[kernel]] += 1
        queues[program] = sorted(drawn, key=lambda kernel: places[kernel])
    return queues


def _draw(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
