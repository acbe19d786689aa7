"""Reads ``.npz`` archives from elsewhere: no count that a file states is believed before it is checked."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from kernelcast.data.durable import write_durably
from kernelcast.errors import KernelcastError, SchemaError

# Deflate makes at most 258 bytes of two bits, so a file of n bytes cannot hold more than 1032 n.
_LARGEST_EXPANSION = 1032
# What the standard library's readers raise on damaged archives; a wrong offset is an OSError or ValueError.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, struct.error)
_CHUNK_BYTES = 1 << 20
_SUFFIX = ".npy"
_ENCRYPTED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """What one array of an archive has to be.

    Attributes:
        name: of the array.
        dtype: that it is given; integers of another width are converted if all fit.
        axes: extents, or names of extents that several arrays share.
    """

    name: str
    dtype: type[np.generic]
    axes: tuple[int | str, ...]


def read_arrays(
    path: Path, specs: Sequence[ArraySpec], *, what: str, most_bytes: int
) -> dict[str, np.ndarray]:
    """The arrays of an archive by name, in C order.

    Arrays that no specification names are left alone.

    Args:
        path: of the archive.
        specs: the arrays that it has to hold.
        what: the archive should be, for errors: ``a tile file``.
        most_bytes: that all arrays may take decoded; what a file states above it is refused unread.

    Raises:
        SchemaError: cut short, damaged, of another layout or too large.
        KernelcastError: the file cannot be opened.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise KernelcastError(f"{path}: cannot be read: {error.strerror}") from error
    with file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _Reader(path, archive, path.stat().st_size, most_bytes).read(specs, what)
        except _DAMAGE as error:
            raise SchemaError(
                f"{path}: is no .npz archive, or is cut short or damaged ({error}); fetch {what} again"
            ) from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a compressed archive, whole or not at all; equal arrays make equal bytes.

    Raises:
        StoreError: what was there before is untouched.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            # Its date is fixed, as in the published files: the same arrays are then the same file.
            info = zipfile.ZipInfo(name + _SUFFIX)
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w") as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), version=(1, 0))
    write_durably(path, content.getvalue())


@dataclass(frozen=True, slots=True)
class _Reader:
    """One open archive."""

    path: Path
    archive: zipfile.ZipFile
    file_bytes: int
    most_bytes: int

    def read(self, specs: Sequence[ArraySpec], what: str) -> dict[str, np.ndarray]:
        members = {m.filename.removesuffix(_SUFFIX): m for m in self.archive.infolist()}
        missing = [spec.name for spec in specs if spec.name not in members]
        if missing:
            raise SchemaError(
                f"{self.path}: is not {what}: it lacks {', '.join(missing)}; it holds {', '.join(members)}"
            )
        self._check_sizes([members[spec.name] for spec in specs])
        arrays: dict[str, np.ndarray] = {}
        extents: dict[str, int] = {}
        used_bytes = 0
        for spec in specs:
            arrays[spec.name] = self._array(members[spec.name], spec, extents, used_bytes)
            used_bytes += arrays[spec.name].nbytes
        return arrays

    def _check_sizes(self, members: Sequence[zipfile.ZipInfo]) -> None:
        self._check_limit(sum(member.file_size for member in members))
        for member in members:
            if member.flag_bits & _ENCRYPTED:
                raise SchemaError(f"{self.path}: {member.filename} is encrypted; give the file as published")
            # Of other methods a few bytes expand without bound, whatever size is stated.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise SchemaError(
                    f"{self.path}: {member.filename} is compressed by method {member.compress_type}; "
                    "expected stored or deflated, as published"
                )
            held = min(member.compress_size, self.file_bytes)
            if member.file_size > held * _LARGEST_EXPANSION:
                raise SchemaError(
                    f"{self.path}: {member.filename} states {member.file_size:,} bytes, which the {held:,} "
                    "bytes that it holds cannot expand to"
                )

    def _check_limit(self, stated: int) -> None:
        if stated > self.most_bytes:
            raise SchemaError(
                f"{self.path}: states {stated:,} bytes of arrays; at most {self.most_bytes:,} are read, so "
                "that a wrong file cannot fill the memory"
            )

    def _array(
        self, member: zipfile.ZipInfo, spec: ArraySpec, extents: dict[str, int], used_bytes: int
    ) -> np.ndarray:
        with self.archive.open(member) as stream:
            try:
                if np.lib.format.read_magic(stream) != (1, 0):
                    raise ValueError("its format is not that of .npy version 1.0")
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            except ValueError as error:
                raise SchemaError(f"{self.path}: {spec.name} cannot be read: {error}") from error
            self._check_shape(spec, shape, extents)
            self._check_kind(spec, dtype)
            count = math.prod(shape)
            held = member.file_size - stream.tell()
            if held != count * dtype.itemsize:
                raise SchemaError(
                    f"{self.path}: {spec.name} states {count:,} values of {dtype.itemsize} bytes, but holds "
                    f"{held:,} bytes"
                )
            # Narrow integers grow when they are converted.
            self._check_limit(used_bytes + count * np.dtype(spec.dtype).itemsize)
            values = np.frombuffer(self._content(stream, held, spec), dtype)
        ordered = values.reshape(shape[::-1]).T if is_fortran else values.reshape(shape)
        return self._converted(spec, ordered)

    def _content(self, stream: IO[bytes], size: int, spec: ArraySpec) -> bytearray:
        """All that is left of a member; read to its end, where its checksum is compared."""
        content = bytearray()
        while chunk := stream.read(_CHUNK_BYTES):
            content += chunk
        if len(content) != size:
            raise SchemaError(f"{self.path}: {spec.name} ends after {len(content):,} of {size:,} bytes")
        return content

    def _check_shape(self, spec: ArraySpec, shape: tuple[int, ...], extents: dict[str, int]) -> None:
        fits = len(shape) == len(spec.axes) and all(extent >= 0 for extent in shape)
        for axis, extent in zip(spec.axes, shape, strict=False):
            fits = fits and extent == (extents.setdefault(axis, extent) if isinstance(axis, str) else axis)
        if not fits:
            axes = ", ".join(
                f"{axis}={extents[axis]}" if axis in extents else str(axis) for axis in spec.axes
            )
            raise SchemaError(f"{self.path}: {spec.name} has shape {shape}, expected ({axes})")

    def _check_kind(self, spec: ArraySpec, dtype: np.dtype[np.generic]) -> None:
        if issubclass(spec.dtype, np.integer):
            fits = dtype.kind in "iu"
        else:
            fits = dtype.newbyteorder("=") == spec.dtype
        if not fits:
            raise SchemaError(f"{self.path}: {spec.name} holds {dtype}, expected {spec.dtype.__name__}")

    def _converted(self, spec: ArraySpec, values: np.ndarray) -> np.ndarray:
        if values.dtype != spec.dtype and issubclass(spec.dtype, np.integer) and values.size:
            limits = np.iinfo(spec.dtype)
            if int(values.min()) < limits.min or int(values.max()) > limits.max:
                raise SchemaError(
                    f"{self.path}: {spec.name} holds values from {values.min()} to {values.max()}, "
                    f"which do not fit {spec.dtype.__name__}"
                )
        return np.ascontiguousarray(values, dtype=spec.dtype)
