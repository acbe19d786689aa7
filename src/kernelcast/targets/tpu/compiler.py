"""The child's side of the TPU target: one client of libtpu that does many compiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from kernelcast.core.timing import Failure, Reason
from kernelcast.errors import HloError
from kernelcast.hlo.xla import proto_to_stablehlo, proto_to_text, text_to_proto
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.chip import TpuChip
from kernelcast.targets.tpu.schedule.simulate import SimulatedTime, simulate
from kernelcast.targets.worker import Failed

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_STDERR = 2
# 5,798 windows of one convolution are 60 MB of log; what is beyond the limit is not read.
_LOG_LIMIT_BYTES = 512 << 20


class _Enough(Exception):
    """Ends a compile inside the callback, before code generation."""


@dataclass(slots=True)
class _Job:
    """What the callback does with the module of the compile under way.

    Attributes:
        replacement: taken in place of the module; None leaves it.
        stop: end the compile there.
        captured: the module as it came.
    """

    replacement: bytes | None = None
    stop: bool = False
    captured: bytes = b""


@dataclass(slots=True)
class TpuCompiler:
    """State of the child: a client for one topology, and the compile under way."""

    dump_folder: Path
    device: Any
    job: _Job = field(default_factory=_Job)

    def transform(self, module: bytes) -> bytes | None:
        """The callback that libtpu calls with every fused module."""
        self.job.captured = module
        if self.job.stop:
            raise _Enough
        return self.job.replacement

    def compile(self, stablehlo: str, job: _Job, *, without: tuple[str, ...] = ()) -> bytes:
        """The final module of a compile, serialised; empty where the job stops it.

        Raises:
            Failed: COMPILE where libtpu refuses the module.
        """
        from jax.interpreters import mlir
        from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

        for path in self.dump_folder.iterdir():
            path.unlink()
        _empty_log()
        self.job = job
        options = _options(self.device, without)
        try:
            with mlir.make_ir_context():
                module = mlir.ir.Module.parse(stablehlo)
                devices = _jax.DeviceList((self.device,))
                compiled = self.device.client.compile(
                    module, executable_devices=devices, compile_options=options
                )
        except jax.errors.JaxRuntimeError as error:
            if job.stop and job.captured:
                return b""
            reason = Reason.MEMORY if "RESOURCE_EXHAUSTED" in str(error) else Reason.COMPILE
            raise Failed(reason, str(error)[:2000]) from error
        if not job.captured:
            raise Failed(
                Reason.NOT_AS_ASKED,
                f"libtpu {libtpu.installed_version()} compiled without calling the HLO transformation",
            )
        return bytes(compiled.hlo_modules()[0].as_serialized_hlo_module_proto())


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuBoot:
    """Makes the child's state: loads libtpu, which reads its environment then.

    Attributes:
        topology: as libtpu names it.
        dump_folder: named in the environment too.
    """

    topology: str
    dump_folder: Path

    def start(self) -> TpuCompiler:
        """The compiler, its callback registered."""
        from jax.experimental import topologies

        description = topologies.get_topology_desc(self.topology, "tpu")
        compiler = TpuCompiler(dump_folder=self.dump_folder, device=description.devices[0])
        libtpu.register_transform(compiler.transform)
        return compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What came of one compile.

    Attributes:
        captured: the module after fusion and before windows, as libtpu handed it over; text.
        final: the optimised module; text.
        listings: the final schedules by instruction name.
        windows: those that the compiler considered; only where asked for.
        is_log_complete: whether all of the log was read.
        times: simulated, by instruction name; only where asked for.
    """

    captured: str
    final: str
    listings: dict[str, str]
    windows: tuple[libtpu.LoggedWindow, ...] = ()
    is_log_complete: bool = True
    times: dict[str, SimulatedTime | Failure] = field(default_factory=dict[str, "SimulatedTime | Failure"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileProgram:
    """Request: compile a program.

    Attributes:
        stablehlo: MLIR text.
        replacement: HLO text that takes the place of the fused module; empty for none.
        without: HLO passes to leave out.
        capture_only: stop after fusion; ``final`` stays empty and nothing is scheduled.
    """

    stablehlo: str
    replacement: str = ""
    without: tuple[str, ...] = ()
    capture_only: bool = False

    def run(self, state: TpuCompiler) -> Compiled:
        """The compile's outcome; raises ``Failed`` where there is none."""
        replacement = _checked(text_to_proto, self.replacement) if self.replacement else None
        job = _Job(replacement=replacement, stop=self.capture_only)
        final = state.compile(self.stablehlo, job, without=self.without)
        return Compiled(
            captured=proto_to_text(job.captured),
            final=proto_to_text(final) if final else "",
            listings={} if self.capture_only else libtpu.listings(state.dump_folder),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileKernel:
    """Request: compile one kernel alone.

    Attributes:
        carrier: HLO text of a module with the kernel's signature; what becomes of it is thrown away.
        module: scheduled HLO text that takes its place.
        with_windows: whether to read the log for the windows that the compiler considered.
        time_on: simulate the schedules on this chip, here, and leave the listings out.
    """

    carrier: str
    module: str
    with_windows: bool = False
    time_on: TpuChip | None = None

    def run(self, state: TpuCompiler) -> Compiled:
        """The compile's outcome; raises ``Failed`` where there is none."""
        stablehlo = _checked(proto_to_stablehlo, _checked(text_to_proto, self.carrier))
        job = _Job(replacement=_checked(text_to_proto, self.module))
        final = state.compile(stablehlo, job)
        log, is_complete = _read_log() if self.with_windows else ("", True)
        listings = libtpu.listings(state.dump_folder)
        times: dict[str, SimulatedTime | Failure] = {}
        if self.time_on is not None:
            times = {name: simulate(listing, self.time_on) for name, listing in listings.items()}
            listings = dict.fromkeys(listings, "")
        return Compiled(
            captured="",
            final=proto_to_text(final),
            listings=listings,
            windows=tuple(libtpu.logged_windows(log)),
            is_log_complete=is_complete,
            times=times,
        )


def _options(device: Any, without: tuple[str, ...]) -> Any:
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

    options = _jax.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = _jax.DeviceAssignment.create(np.array([[device.id]], dtype=np.int32))
    if without:
        options.executable_build_options.debug_options.xla_disable_hlo_passes = ",".join(without)
    return options


def _checked(convert: Callable[[_In], _Out], value: _In) -> _Out:
    try:
        return convert(value)
    except HloError as error:
        raise Failed(Reason.UNSUPPORTED, str(error)) from error


def _empty_log() -> None:
    """The child's stderr is a file that the parent reads last words from; each compile begins it anew."""
    os.ftruncate(_STDERR, 0)
    os.lseek(_STDERR, 0, os.SEEK_SET)


def _read_log() -> tuple[str, bool]:
    size = os.fstat(_STDERR).st_size
    text = os.pread(_STDERR, min(size, _LOG_LIMIT_BYTES), 0).decode(errors="replace")
    return text, size <= _LOG_LIMIT_BYTES
