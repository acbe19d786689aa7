"""What bytes are, told by their content: names and suffixes of files are not trusted."""

from __future__ import annotations

import re
import struct
from enum import StrEnum

from kernelcast.errors import KernelcastError
from kernelcast.hlo.proto import fields

_MLIR_MAGIC = b"ML\xefR"
_COMMENTS = re.compile(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
# A module header, or a computation or instruction without one.
_HLO_START = re.compile(r"HloModule\b|ENTRY\b|%?[\w.-]+\s*(?:\([^\n]*)?\{|%?[\w.-]+ = ")
_MLIR_START = re.compile(r"(?:builtin\.)?module\b|\"builtin\.module\"|#\w|!\w")
_VALID = (
    "HLO text, a serialised HloModuleProto or HloProto, StableHLO text or bytecode, "
    "a jax.export artefact, or an XLA dump folder"
)


class Format(StrEnum):
    """A serialised form of a program."""

    HLO_TEXT = "HLO text"
    HLO_PROTO = "HLO proto"
    STABLEHLO_TEXT = "StableHLO text"
    STABLEHLO_BYTECODE = "StableHLO bytecode"
    JAX_EXPORT = "jax.export artefact"


def sniff(content: bytes, origin: str) -> Format:
    """The format of some bytes.

    Args:
        content: whole.
        origin: says in errors where the bytes come from.

    Raises:
        KernelcastError: the bytes are empty or of no known format.
    """
    if not content.strip():
        raise KernelcastError(f"{origin}: is empty; expected {_VALID}")
    if content.startswith(_MLIR_MAGIC):
        return Format.STABLEHLO_BYTECODE
    text = _text(content)
    if text is not None:
        start = _COMMENTS.match(text)
        position = start.end() if start else 0
        if _MLIR_START.match(text, position):
            return Format.STABLEHLO_TEXT
        if _HLO_START.match(text, position):
            return Format.HLO_TEXT
        first = text.strip().partition("\n")[0][:40]
        raise KernelcastError(f"{origin}: is text that starts with {first!r}; expected {_VALID}")
    if _is_flatbuffer(content) and _MLIR_MAGIC in content:
        return Format.JAX_EXPORT
    if _first_field(content) is not None:
        return Format.HLO_PROTO
    if content.lstrip().startswith((b"HloModule", b"module")):
        raise KernelcastError(f"{origin}: starts like HLO or StableHLO text, but is not all UTF-8 text")
    raise KernelcastError(
        f"{origin}: {len(content)} bytes of no known format (or cut short), starting with "
        f"{content[:12].hex(' ')}; expected {_VALID}"
    )


def module_proto(content: bytes) -> bytes:
    """The HloModuleProto in what ``sniff`` called a proto: all of it, or the first field of an HloProto."""
    inner = _first_field(content)
    # Field 1 is the name of a module, which is text, or the module of an HloProto, which starts with a tag.
    return inner if inner is not None and _first_field(inner) is not None else content


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    control = sum(1 for c in text[:1000] if ord(c) < 32 and c not in "\t\n\r\f")
    return text if control == 0 else None


def _first_field(content: bytes) -> bytes | None:
    """The value of field 1 of a serialised message, or None where the bytes are no such message."""
    try:
        found = list(fields(content))
    except (ValueError, IndexError):
        return None
    return found[0].value if found and found[0].number == 1 and found[0].has_length else None


def _is_flatbuffer(content: bytes) -> bool:
    """Whether the bytes start with a root table and its table of offsets."""
    try:
        (root,) = struct.unpack_from("<I", content)
        (back,) = struct.unpack_from("<i", content, root)
        size, extent = struct.unpack_from("<HH", content, root - back) if back <= root else (0, 0)
    except struct.error:
        return False
    return size >= 4 and size % 2 == 0 and extent >= 4
