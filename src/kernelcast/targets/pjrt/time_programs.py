"""Requests that compile a program in one form, compare its outputs, and time several forms in turn."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from kernelcast.core.timing import Reason, Sample
from kernelcast.targets import client
from kernelcast.targets.compare import compare_outputs
from kernelcast.targets.pjrt.device import Device
from kernelcast.targets.pjrt.imposed import compile_as, reason_of
from kernelcast.targets.worker import Failed

# A sample of a short program holds several calls, so that it is long against the noise of the clock.
_SAMPLE_S = 2e-4
# Programs slower than this many defaults, or this long, whichever is more, get few rounds.
_SLOW_FACTOR, _SLOW_S = 8.0, 32e-3
_ROUNDS_OF_SLOW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Gives the scheduled module that XLA makes of a program; no code is generated."""

    stablehlo: str
    library: bool

    def run(self, _: Device) -> str:
        try:
            return client.capture(self.stablehlo, library=self.library)
        except jax.errors.JaxRuntimeError as error:
            raise Failed(reason_of(error, Reason.COMPILE), str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadInputs:
    """Puts the arguments of a program on the device; gives their handle."""

    arrays: tuple[np.ndarray, ...]

    def run(self, device: Device) -> int:
        return device.keep(_Arguments(arrays=tuple(client.to_device(array) for array in self.arrays)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """One form of a program that the worker keeps.

    Attributes:
        handle: by which later requests name it.
        final_text: the compiler's final module.
        temporary_bytes: what a run allocates besides inputs and outputs.
    """

    handle: int
    final_text: str
    temporary_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileProgram:
    """Compiles a program: as the compiler would, or with a given scheduled module in place of its own."""

    stablehlo: str
    library: bool
    text: str | None

    def run(self, device: Device) -> CompiledProgram:
        if self.text is not None:
            executable, final = compile_as(self.stablehlo, self.text, library=self.library)
        else:
            try:
                executable = client.compile_program(self.stablehlo, library=self.library)
            except jax.errors.JaxRuntimeError as error:
                raise Failed(reason_of(error, Reason.COMPILE), str(error)) from error
            final = executable.final_text()
        return CompiledProgram(
            handle=device.keep(executable),
            final_text=final,
            temporary_bytes=executable.temporary_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOutputs:
    """Runs two forms on the same inputs; gives the error, or fails with WRONG_RESULT."""

    reference: int
    program: int
    inputs: int

    def run(self, device: Device) -> float:
        arrays = device.kept(self.inputs, _Arguments).arrays
        expected = _outputs(device.kept(self.reference, client.Executable), arrays)
        got = _outputs(device.kept(self.program, client.Executable), arrays)
        comparison = compare_outputs(expected, got)
        if comparison.complaint:
            raise Failed(Reason.WRONG_RESULT, comparison.complaint)
        return comparison.error


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRounds:
    """Times forms of a program in turn: each round runs every form once, in another order.

    Attributes:
        programs: handles; the first is the default that the others are slow against.
        inputs: handle of the arguments.
        first_round, rounds: numbers of the rounds.
        wait_s: seconds to wait for quiet before each sample, at most.
        limit_s: seconds after which no further round is started.
        seed: of the orders.
    """

    programs: tuple[int, ...]
    inputs: int
    first_round: int
    rounds: int
    wait_s: float
    limit_s: float
    seed: int

    def run(self, device: Device) -> RoundsResult:
        end = device.clock() + self.limit_s
        arrays = device.kept(self.inputs, _Arguments).arrays
        forms = [_Form(device, device.kept(h, client.Executable), arrays) for h in self.programs]
        slow_s = max(_SLOW_FACTOR * forms[0].once_s, _SLOW_S)
        samples: tuple[list[Sample], ...] = tuple([] for _ in forms)
        order = list(range(len(forms)))
        finished = 0
        for number in range(self.first_round, self.first_round + self.rounds):
            if device.clock() > end:
                break
            random.Random(f"{self.seed}/{number}").shuffle(order)
            for at in order:
                if forms[at].once_s <= slow_s or number < _ROUNDS_OF_SLOW:
                    samples[at].append(forms[at].sample(number, self.wait_s))
            finished += 1
        return RoundsResult(
            samples=tuple(tuple(s) for s in samples),
            rounds=finished,
            floor_s=device.sentinel.floor_s,
            quiet_share=device.sentinel.quiet_share,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsResult:
    """What rounds gave.

    Attributes:
        samples: per form, in the order of the request.
        rounds: how many were finished within the limit.
        floor_s: the sentinel's floor at the end.
        quiet_share: of the sentinel's readings since the worker started.
    """

    samples: tuple[tuple[Sample, ...], ...]
    rounds: int
    floor_s: float
    quiet_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arguments:
    arrays: tuple[jax.Array, ...]


class _Form:
    """One executable with its arguments; ``once_s`` is the faster of its first two runs."""

    def __init__(self, device: Device, executable: client.Executable, arrays: Sequence[jax.Array]) -> None:
        self._device = device
        self._executable = executable
        self._arrays = list(arrays)
        self.once_s = min(device.timed(lambda: self._run(1))[0] for _ in range(2))
        self._runs = max(1, math.ceil(_SAMPLE_S / self.once_s))

    def sample(self, number: int, wait_s: float) -> Sample:
        """A sample between two readings of the sentinel, after an untimed run that warms the caches."""
        sentinel = self._device.sentinel
        sentinel.wait(wait_s)
        self._run(1)
        before = sentinel.loudness()
        seconds, crowding = self._device.timed(lambda: self._run(self._runs))
        loudness = max(before, sentinel.loudness(), crowding)
        return Sample(runs=self._runs, seconds=seconds, loudness=loudness, round=number)

    def _run(self, runs: int) -> None:
        for _ in range(runs):
            self._executable.execute(self._arrays)


def _outputs(executable: client.Executable, arrays: Sequence[jax.Array]) -> list[np.ndarray]:
    try:
        return [np.asarray(output) for output in executable.execute(list(arrays))]
    except jax.errors.JaxRuntimeError as error:
        raise Failed(reason_of(error, Reason.RUN), str(error)) from error
