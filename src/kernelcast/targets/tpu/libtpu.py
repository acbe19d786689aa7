"""All that depends on what libtpu does not document: its flags, its dumps and logs, and the HLO transform
extension of its PJRT interface.

The only file to mend when libtpu changes. ``tests/targets/tpu/test_libtpu.py`` tries each assumption aloud.
libtpu is proprietary and installed by the user (extra ``tpu``); nothing of it or from it is part of this
project.
"""

from __future__ import annotations

import ctypes
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kernelcast.errors import MissingExtraError, TargetError

_log = logging.getLogger(__name__)

TRIED_VERSION = "0.0.42.1"
"""The libtpu that everything here was tried with."""

_GOOGLE = "0x1ae0"  # as a vendor of PCI devices

# A module before the compiler's own fusion, layouts assigned.
FUSION_PASSES = ("tpu_fusion", "tpu_multi_output_fusion")

INT64_MAX = (1 << 63) - 1


def installed_version() -> str | None:
    """The version of libtpu here, or None."""
    try:
        return version("libtpu")
    except PackageNotFoundError:
        return None


def has_chip() -> bool:
    """Whether a TPU is in this machine: libtpu compiles without one, JAX runs only with one."""
    vendors = Path("/sys/bus/pci/devices").glob("*/vendor")
    return any(path.read_text(encoding="ascii").strip() == _GOOGLE for path in vendors)


def require(feature: str) -> str:
    """The version of libtpu here; a warning where it is not the one that was tried.

    Args:
        feature: what needs it, for the error.

    Raises:
        MissingExtraError: it is not installed.
    """
    found = installed_version()
    if found is None:
        raise MissingExtraError(feature, "libtpu", "tpu")
    if found != TRIED_VERSION:
        _log.warning(
            "libtpu %s is installed, but flags, dumps and logs were tried with %s only; "
            "run make test-tpu, or install libtpu==%s",
            found, TRIED_VERSION, TRIED_VERSION,
        )  # fmt: skip
    return found


def environment(dump_folder: Path) -> dict[str, str]:
    """Variables for a process that will load libtpu to compile on a machine without a TPU.

    Args:
        dump_folder: takes the final schedules, ``listings`` reads them; best in a memory file system.
    """
    arguments = (
        f"--xla_jf_dump_to={dump_folder}",
        "--xla_jf_dump_llo_text=true",
        "--xla_jf_dump_llo_pass_label_regex=.*final_bundles.*",
        # Runs on real chips were faster than schedules with these checks.
        "--xla_jf_bounds_check=false",
        # Prints the windows considered, for ``logged_windows``. Broader patterns abort.
        "--vmodule=fusion_emitter=5,spatial_major_convolution=7",
    )
    return {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",  # else it asks a cloud's metadata server for its chips
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_STDERR_LOG_LEVEL": "0",
        "TPU_MIN_LOG_LEVEL": "0",
        "TPU_LOG_DIR": "disabled",
        "LIBTPU_INIT_ARGS": " ".join(arguments),
    }


_LISTING = re.compile(r"\d+-(?P<instruction>.+)-\d+-final_bundles\.txt")
_OF_NO_KERNEL = ("<late-initialization>", "<late-finalization>", "TLP")


def listings(dump_folder: Path) -> dict[str, str]:
    """The final schedule of each kernel by the name of its instruction.

    Equal kernels of one module are compiled, and dumped, once.
    """
    found: dict[str, str] = {}
    for path in sorted(dump_folder.iterdir()):
        match = _LISTING.fullmatch(path.name)
        if match is None or match["instruction"].endswith("schedule-analysis_final_bundles.txt"):
            continue
        if match["instruction"] not in _OF_NO_KERNEL:
            found[match["instruction"]] = path.read_text(encoding="utf-8", errors="replace")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedWindow:
    """A window that the compiler considered; bounds major → minor, in hardware tiles.

    Attributes:
        kernel, output, input: bounds; kernel and input are empty for what is no convolution or dot.
        cycles: the compiler's own analytical estimate.
    """

    kernel: tuple[int, ...]
    output: tuple[int, ...]
    input: tuple[int, ...]
    cycles: int


_WINDOW = re.compile(r"Potential window config \[([\d, ]*)\] .*?\btotal_cycles (\d+)")
_PRODUCT = re.compile(
    r"Potential kernel window \[([\d, ]*)\] potential output window \[([\d, ]*)\] cycles (\d+)"
)
# Printed before the line above, it alone has the input's window.
_ACTIVATIONS = re.compile(
    r"kernel window: \[([\d, ]*)\] output window: \[([\d, ]*)\] activations window: \[([\d, ]*)\]"
)


def logged_windows(log: str) -> Iterator[LoggedWindow]:
    """The windows that a compile of one kernel considered, in the order printed.

    Args:
        log: stderr of a compile in the environment above, of a module with this one kernel.
    """
    inputs: dict[tuple[str, str], str] = {}
    for line in log.splitlines():
        if "window" not in line:
            continue
        if match := _ACTIVATIONS.search(line):
            inputs[match[1], match[2]] = match[3]
        elif match := _PRODUCT.search(line):
            yield LoggedWindow(
                kernel=_bounds(match[1]),
                output=_bounds(match[2]),
                input=_bounds(inputs.get((match[1], match[2]), "")),
                cycles=int(match[3]),
            )
        elif match := _WINDOW.search(line):
            yield LoggedWindow(kernel=(), output=_bounds(match[1]), input=(), cycles=int(match[2]))


def _bounds(text: str) -> tuple[int, ...]:
    return tuple(int(bound) for bound in text.split(",") if bound.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowConfig:
    """What ``backend_config`` says about the windows of one instruction; bounds as in ``LoggedWindow``.

    Attributes:
        iteration_bounds: how often the kernel's loops go round.
        estimated_cycles: the compiler's estimate; None where it is missing (0, or the largest integer).
    """

    kernel: tuple[int, ...]
    output: tuple[int, ...]
    input: tuple[int, ...]
    iteration_bounds: tuple[int, ...] = ()
    estimated_cycles: int | None = None


def read_window_config(backend_config: str | None) -> WindowConfig | None:
    """The windows in an instruction's ``backend_config``, or None where it names none."""
    record = json.loads(backend_config) if backend_config else {}
    config: dict[str, Any] | None = record.get("window_config") if isinstance(record, dict) else None
    if config is None:
        return None
    cycles = int(config.get("estimated_cycles", 0))
    return WindowConfig(
        kernel=_integers(config.get("kernel_window_bounds", ())),
        output=_integers(config.get("output_window_bounds", ())),
        input=_integers(config.get("input_window_bounds", ())),
        iteration_bounds=_integers(config.get("iteration_bounds", ())),
        estimated_cycles=cycles if 0 < cycles < INT64_MAX else None,
    )


def write_window_config(
    *, kernel: Sequence[int] = (), output: Sequence[int] = (), input: Sequence[int] = ()
) -> str:
    """A ``backend_config`` that makes the compiler take these windows."""
    named = (("kernel", kernel), ("output", output), ("input", input))
    config = {f"{name}_window_bounds": [str(b) for b in bounds] for name, bounds in named if bounds}
    return json.dumps({"window_config": config}, separators=(",", ":"))


def _integers(values: Sequence[str | int]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


# --- PJRT_HloTransform extension -------------------------------------------------------------------------
# ``jax.extend.xla.register_hlo_module_transformation`` refuses a client without a device, so the C interface
# is reached here. The structures below mirror its header; sizes are checked by the library itself.

_EXTENSION_TYPE = 24
_STAGE_AFTER_FUSION = 0
_INTERNAL_ERROR = 13


class _Text(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (
        ("api_version", ctypes.c_int64),
        ("data", ctypes.c_void_p),
        ("cleanup", ctypes.c_void_p),
        ("has_error", ctypes.c_bool),
        ("code", ctypes.c_int),
        ("message", _Text),
    )


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("header", _Header),
        ("module", _Text),
        ("result", _Text),
        ("changed", ctypes.c_bool),
    )


_Run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Arguments))


class _Callbacks(ctypes.Structure):
    _fields_ = (("version", ctypes.c_int64), ("destroy", ctypes.c_void_p), ("run", _Run))


class _Registration(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("stage", ctypes.c_int),
        ("callbacks", ctypes.POINTER(_Callbacks)),
    )


class _Extension(ctypes.Structure):
    pass


_Extension._fields_ = (
    ("struct_size", ctypes.c_size_t),
    ("type", ctypes.c_int),
    ("next", ctypes.POINTER(_Extension)),
    ("register", ctypes.c_void_p),
    ("clear", ctypes.c_void_p),
)


class _Api(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.POINTER(_Extension)))


_kept: list[object] = []  # what C code points to must outlive this module's functions


def register_transform(transform: Callable[[bytes], bytes | None]) -> None:
    """Lets libtpu call a function with each module that it has fused, before it chooses windows.

    Once a process: a second callback would see what the first made.

    Args:
        transform: serialised ``HloModuleProto`` in and out; None leaves the module as it is. An exception
            ends the compile, which then raises with its text.

    Raises:
        TargetError: this libtpu has no such extension.
    """
    import libtpu  # pyright: ignore[reportMissingImports]

    library = ctypes.CDLL(str(libtpu.get_library_path()))
    library.GetPjrtApi.restype = ctypes.c_void_p
    extension = _Api.from_address(library.GetPjrtApi()).extension
    while extension and extension.contents.type != _EXTENSION_TYPE:
        extension = extension.contents.next
    if not extension:
        raise TargetError(
            f"libtpu {installed_version()} has no HLO transform extension; install libtpu=={TRIED_VERSION}"
        )
    answer: list[ctypes.Array[ctypes.c_char]] = []

    def run(_: int, pointer: Any) -> None:
        arguments = pointer.contents
        arguments.changed = arguments.header.has_error = False
        try:
            made = transform(ctypes.string_at(arguments.module.data, arguments.module.size))
        except Exception as error:  # must not unwind through C++; the compile raises it as its own
            arguments.header.has_error, arguments.header.code = True, _INTERNAL_ERROR
            _point(arguments.header.message, f"{type(error).__name__}: {error}".encode(), answer)
            return
        if made is not None:
            arguments.changed = True
            _point(arguments.result, made, answer)

    name = b"kernelcast"
    callbacks = _Callbacks(1, None, _Run(run))
    registration = _Registration(
        ctypes.sizeof(_Registration), name, len(name), _STAGE_AFTER_FUSION, ctypes.pointer(callbacks)
    )
    _kept.extend((library, answer, callbacks, registration))
    register = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Registration))(extension.contents.register)
    if register(ctypes.byref(registration)):
        raise TargetError(f"libtpu {installed_version()} refused the HLO transformation")


def _point(text: _Text, content: bytes, keep: list[ctypes.Array[ctypes.c_char]]) -> None:
    """Makes a C string of the content that lives until the next one."""
    keep[:] = [ctypes.create_string_buffer(content, len(content))]
    text.data, text.size = ctypes.cast(keep[0], ctypes.c_void_p), len(content)
