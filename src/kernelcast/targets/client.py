"""XLA:CPU through PJRT: compile, capture, replace the scheduled module, execute.

The only file that touches private names of JAX and jaxlib besides ``hlo/xla.py``; they move between minor
versions, which is why the dependency is bound to one.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
from jax.extend import xla as jax_xla
from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

from kernelcast.errors import TargetError
from kernelcast.hlo.xla import proto_to_text

# Serialised HloModuleProto in and out. It runs on the module that XLA has fused and scheduled; no HLO pass
# runs on what it returns, only buffer assignment and code generation.
Transform = Callable[[bytes], bytes]

# ``_ynn_fusion_type=""`` leaves dot, convolution and reduce to generated loops.
_LIBRARY_OFF = ("xla_cpu_experimental_ynn_fusion_type", "")
_MODULE_NAME = re.compile(r'^(?:#[^\n]*\n|\s)*module\s+@(?P<name>"[^"\n]*"|[\w.$-]+)')
_JOB_PREFIX = "kernelcast_job_"
_job_numbers = itertools.count()
_jobs: dict[str, _Job] = {}
_jobs_lock = threading.Lock()


@dataclass(slots=True)
class _Job:
    """One compile that waits for its callback."""

    transform: Transform
    called: bool = False
    error: BaseException | None = None


class _Captured(Exception):
    """Raised inside the callback to end a compile before code generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executable:
    """A compiled program on the CPU.

    Attributes:
        loaded: jaxlib's own object.
    """

    loaded: Any

    def final_proto(self) -> bytes:
        """The module as code was generated for it, serialised."""
        return self.loaded.hlo_modules()[0].as_serialized_hlo_module_proto()

    def final_text(self) -> str:
        """The same as text, large constants included."""
        return _without_job_name(proto_to_text(self.final_proto()))

    @property
    def temporary_bytes(self) -> int:
        """What a run allocates besides inputs and outputs."""
        return int(self.loaded.get_compiled_memory_stats().temp_size_in_bytes)

    def execute(self, arguments: Sequence[jax.Array]) -> list[jax.Array]:
        """Outputs of one run, finished. Donated arguments are deleted."""
        outputs: list[jax.Array] = self.loaded.execute(arguments)
        for output in outputs:
            output.block_until_ready()
        return outputs


def prepare_measuring() -> None:
    """Turns asynchronous dispatch off and 64-bit types on; before any use of the client.

    XLA splits kernels over as many threads as the process may use CPUs when its client starts, so it is the
    pinning of the process to one CPU that makes every program single-threaded.

    Raises:
        TargetError: when this process may run on more than one CPU.
    """
    cpus = os.sched_getaffinity(0)
    if len(cpus) != 1:
        raise TargetError(f"a measuring process must be pinned to one CPU, this one may use {sorted(cpus)}")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_enable_x64", True)


def compile_program(
    stablehlo: str, *, library: bool = True, transform: Transform | None = None
) -> Executable:
    """An executable of a StableHLO module.

    Args:
        stablehlo: MLIR text with ``@main``.
        library: whether XLA may turn dots, convolutions and reductions into library calls.
        transform: replaces the scheduled module. A module that comes from a transform loses the donation of
            its arguments, even if nothing was changed.

    Raises:
        TargetError: when the text has no module name, or XLA did not call the transform.
        jax.errors.JaxRuntimeError: what XLA says about a program that it cannot compile.
    """
    if transform is None:
        return Executable(loaded=_compile(stablehlo, library=library))
    name, renamed = _with_job_name(stablehlo)
    job = _Job(transform=transform)
    _register_callback()
    with _jobs_lock:
        _jobs[name] = job
    try:
        loaded = _compile(renamed, library=library)
    except jax.errors.JaxRuntimeError:
        if job.error is not None:
            raise job.error from None
        raise
    finally:
        with _jobs_lock:
            del _jobs[name]
    if not job.called:
        raise TargetError(
            f"XLA compiled {name} without calling the module transformation; "
            f"jaxlib {version('jaxlib')} is not supported here"
        )
    return Executable(loaded=loaded)


def capture(stablehlo: str, *, library: bool = True) -> str:
    """The fused, scheduled module that XLA makes of a program, as text; no code is generated.

    Raises:
        TargetError: as ``compile_program``.
        jax.errors.JaxRuntimeError: what XLA says about a program that it cannot compile.
    """
    found: list[bytes] = []

    def keep(proto: bytes) -> bytes:
        found.append(proto)
        raise _Captured

    try:
        compile_program(stablehlo, library=library, transform=keep)
    except _Captured:
        return _without_job_name(proto_to_text(found[0]))
    raise TargetError("XLA went on after its module transformation failed; the capture is lost")


def run(executable: Executable, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs of one run on host arrays."""
    return [np.asarray(output) for output in executable.execute([to_device(a) for a in arrays])]


def to_device(array: np.ndarray) -> jax.Array:
    """A copy of the array on the CPU device, 64-bit types kept."""
    with jax.enable_x64(True):
        return jax.device_put(np.array(array), _device()).block_until_ready()


def compiler_version() -> str:
    """Name and version of the compiler, as it stands in a target's identity."""
    return f"jaxlib {version('jaxlib')}"


@cache
def _device() -> Any:
    return jax.devices("cpu")[0]


def _compile(stablehlo: str, *, library: bool) -> Any:
    options = _jax.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = 1
    if not library:
        options.env_option_overrides = [_LIBRARY_OFF]
    device = _device()
    # Not ``lowered.compile()``: that returns cached executables, without calling the transformation.
    return device.client.compile_and_load(stablehlo, _jax.DeviceList((device,)), options)


@cache
def _register_callback() -> None:
    """Registers the one callback of this process; the registry is global and cannot tell compiles apart."""
    jax_xla.register_hlo_module_transformation(
        _callback, name="kernelcast", stage=jax_xla.PipelineStage.POST_SCHEDULER, platforms="cpu"
    )


def _callback(proto: bytes) -> bytes | None:
    job = _jobs.get(_proto_name(proto))
    if job is None:
        return None
    job.called = True
    try:
        return job.transform(proto)
    except BaseException as error:  # crosses XLA's C++ frames as a status; the compile raises it again
        job.error = error
        raise


def _proto_name(proto: bytes) -> str:
    """The module's name: field 1 of HloModuleProto, which protobuf writes first. Empty where it is absent."""
    if not proto.startswith(b"\x0a"):
        return ""
    length, shift, position = 0, 0, 1
    while True:
        byte = proto[position]
        length |= (byte & 0x7F) << shift
        shift, position = shift + 7, position + 1
        if byte < 0x80:
            return proto[position : position + length].decode("utf-8", "replace")


def _with_job_name(stablehlo: str) -> tuple[str, str]:
    """A name that no other compile of this process has, and the module under it."""
    match = _MODULE_NAME.match(stablehlo)
    if match is None:
        start = stablehlo.lstrip()[:60]
        raise TargetError(f"expected StableHLO text that starts with 'module @name', got {start!r}")
    name = f"{_JOB_PREFIX}{next(_job_numbers)}_" + re.sub(r"[^\w.-]", "_", match["name"].strip('"'))
    return name, stablehlo[: match.start("name")] + name + stablehlo[match.end("name") :]


def _without_job_name(text: str) -> str:
    return re.sub(rf"^(HloModule ){_JOB_PREFIX}\d+_", r"\1", text)
