"""Reads and writes serialised ``ModuleTuningData`` messages of TpuGraphs (``tuning.proto``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from enum import IntEnum
from pathlib import Path

from kernelcast.data.durable import write_durably
from kernelcast.data.tpugraphs.tuning import Layouts, ModuleTuning, Profile, TileSizes, TuningRun
from kernelcast.errors import KernelcastError, SchemaError
from kernelcast.hlo.proto import Field, decode_varint, encode_varint, fields

# A decoded message takes some thirty times its bytes.
MOST_BYTES = 64 << 20
_VARINT, _LENGTH = 0, 2
_TWO_TO_63, _TWO_TO_64 = 1 << 63, 1 << 64


class _Tuning(IntEnum):
    """Fields of ``ModuleTuningData``."""

    MODULE = 1
    FINGERPRINT = 2
    RUNS = 3
    CONFIGURABLE = 4


class _Run(IntEnum):
    """Fields of ``ConfigProfile``."""

    TILE = 1
    LAYOUT = 2
    IS_ERROR = 3
    PROFILE = 4
    IS_DEFAULT = 5


class _Tile(IntEnum):
    """Fields of ``TileSizeConfig``."""

    KERNEL = 1
    OUTPUT = 2
    INPUT = 3
    ITERATION = 4


class _Profile(IntEnum):
    """Fields of ``ExecutionProfile``, named as in ``Profile``."""

    COMPILATION_CACHE_HIT = 1
    COMPILE_TIME_MS = 2
    COMPUTE_CYCLE_COUNT = 3
    COMPUTE_TIME_NS = 4
    COMPUTE_AND_TRANSFER_TIME_NS = 5
    EXECUTABLE_SIZE_IN_BYTES = 6
    PROFILE_CACHE_HIT = 7
    WARMUP_RUN_EXECUTED = 8


class _Only(IntEnum):
    """The one field of the messages that wrap another or a list."""

    VALUE = 1


def read_tuning(path: Path, *, most_bytes: int = MOST_BYTES) -> ModuleTuning:
    """The module and runs of a published ``.pb`` file.

    Raises:
        SchemaError: cut short, of another message, or larger than ``most_bytes``.
        KernelcastError: the file cannot be read.
    """
    try:
        size = path.stat().st_size
        if size > most_bytes:
            raise SchemaError(f"{path}: has {size:,} bytes; at most {most_bytes:,} are read")
        content = path.read_bytes()
    except OSError as error:
        raise KernelcastError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return decode_tuning(content)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error


def write_tuning(path: Path, tuning: ModuleTuning) -> None:
    """Writes a module and its runs in the published form.

    Raises:
        StoreError: what was there before is untouched.
    """
    write_durably(path, encode_tuning(tuning))


def decode_tuning(content: bytes) -> ModuleTuning:
    """The module and runs of a serialised ``ModuleTuningData``.

    Raises:
        SchemaError: the bytes are cut short, or are another message.
    """
    try:
        parts = _parts(content, _Tuning)
        module = _message(parts[_Tuning.MODULE])
        if not module:
            raise ValueError("it holds no module")
        return ModuleTuning(
            module=module,
            fingerprint=_number(parts[_Tuning.FINGERPRINT]),
            runs=tuple(_run(run) for run in _messages(parts[_Tuning.RUNS])),
            configurable=_numbers(parts[_Tuning.CONFIGURABLE]),
        )
    except (IndexError, ValueError) as error:
        raise SchemaError(
            f"expected a serialised ModuleTuningData, got {len(content):,} other bytes, or some are missing: "
            f"{error}"
        ) from error


def _run(content: bytes) -> TuningRun:
    parts = _parts(content, _Run)
    return TuningRun(
        config=_config(parts[_Run.TILE], parts[_Run.LAYOUT]),
        is_default=bool(_number(parts[_Run.IS_DEFAULT])),
        is_error=bool(_number(parts[_Run.IS_ERROR])),
        profile=_profile(parts[_Run.PROFILE]),
    )


def _config(tile: Sequence[Field], layout: Sequence[Field]) -> TileSizes | Layouts | None:
    if tile:
        sizes = _parts(_wrapped(_message(tile)), _Tile)
        return TileSizes(
            kernel_bounds=tuple(map(_signed, _numbers(sizes[_Tile.KERNEL]))),
            output_bounds=tuple(map(_signed, _numbers(sizes[_Tile.OUTPUT]))),
            input_bounds=tuple(map(_signed, _numbers(sizes[_Tile.INPUT]))),
            iteration_bounds=tuple(map(_signed, _numbers(sizes[_Tile.ITERATION]))),
        )
    if layout:
        nodes = _messages(_parts(_wrapped(_message(layout)), _Only)[_Only.VALUE])
        return Layouts(nodes=tuple(_node_layouts(node) for node in nodes))
    return None


def _node_layouts(content: bytes) -> tuple[tuple[int, ...], ...]:
    tensors = _messages(_parts(content, _Only)[_Only.VALUE])
    return tuple(_numbers(_parts(tensor, _Only)[_Only.VALUE]) for tensor in tensors)


def _profile(held: Sequence[Field]) -> Profile | None:
    if not held:
        return None
    parts = _parts(_message(held), _Profile)
    return Profile(**{number.name.lower(): _signed(_number(parts[number])) for number in _Profile})


def _parts(content: bytes, numbers: type[IntEnum]) -> dict[int, list[Field]]:
    """The fields of a message by number, each in order."""
    parts: dict[int, list[Field]] = {number.value: [] for number in numbers}
    for part in fields(content):
        if part.number not in parts:
            raise ValueError(f"field {part.number} is none of {', '.join(n.name for n in numbers)}")
        parts[part.number].append(part)
    return parts


def _messages(parts: Iterable[Field]) -> list[bytes]:
    held = list(parts)
    if not all(part.has_length for part in held):
        raise ValueError(f"field {held[0].number} holds a number, not a message")
    return [part.value for part in held]


def _message(parts: Iterable[Field]) -> bytes:
    """The value of a message field; of several, the parts of one message."""
    return b"".join(_messages(parts))


def _wrapped(content: bytes) -> bytes:
    return _message(_parts(content, _Only)[_Only.VALUE])


def _numbers(parts: Iterable[Field]) -> tuple[int, ...]:
    """The numbers of a repeated field, packed into one value or one by one."""
    numbers: list[int] = []
    for part in parts:
        position = 0
        while position < len(part.value):
            number, position = decode_varint(part.value, position)
            numbers.append(number % _TWO_TO_64)
    return tuple(numbers)


def _number(parts: Iterable[Field]) -> int:
    return (0, *_numbers(parts))[-1]


def _signed(number: int) -> int:
    return number - _TWO_TO_64 if number >= _TWO_TO_63 else number


def encode_tuning(tuning: ModuleTuning) -> bytes:
    """The serialised ``ModuleTuningData`` of a module and its runs; what is 0 or empty is left out."""
    return b"".join([
        _encoded_message(_Tuning.MODULE, tuning.module),
        _encoded_number(_Tuning.FINGERPRINT, tuning.fingerprint),
        *(_encoded_message(_Tuning.RUNS, _encoded_run(run)) for run in tuning.runs),
        _encoded_numbers(_Tuning.CONFIGURABLE, tuning.configurable),
    ])  # fmt: skip


def _encoded_run(run: TuningRun) -> bytes:
    parts: list[bytes] = []
    match run.config:
        case TileSizes():
            sizes = zip(_Tile, astuple(run.config), strict=True)
            tile = b"".join(_encoded_numbers(number, bounds) for number, bounds in sizes)
            parts.append(_encoded_message(_Run.TILE, _encoded_message(_Only.VALUE, tile)))
        case Layouts():
            layout = b"".join(
                _encoded_message(_Only.VALUE, _encoded_node(tensors)) for tensors in run.config.nodes
            )
            parts.append(_encoded_message(_Run.LAYOUT, _encoded_message(_Only.VALUE, layout)))
        case None:
            pass
    parts.append(_encoded_number(_Run.IS_ERROR, int(run.is_error)))
    if run.profile is not None:
        held = zip(_Profile, astuple(run.profile), strict=True)
        profile = b"".join(_encoded_number(number, value) for number, value in held)
        parts.append(_encoded_message(_Run.PROFILE, profile))
    parts.append(_encoded_number(_Run.IS_DEFAULT, int(run.is_default)))
    return b"".join(parts)


def _encoded_node(tensors: Sequence[Sequence[int]]) -> bytes:
    return b"".join(_encoded_message(_Only.VALUE, _encoded_numbers(_Only.VALUE, dims)) for dims in tensors)


def _encoded_message(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | _LENGTH) + encode_varint(len(content)) + content


def _encoded_number(number: int, value: int) -> bytes:
    return encode_varint(number << 3 | _VARINT) + encode_varint(value % _TWO_TO_64) if value else b""


def _encoded_numbers(number: int, values: Sequence[int]) -> bytes:
    packed = b"".join(encode_varint(value % _TWO_TO_64) for value in values)
    return _encoded_message(number, packed) if values else b""
