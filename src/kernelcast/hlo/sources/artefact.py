"""Acquires a program from whatever holds it: bytes of a known format, and where they come from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kernelcast.errors import HloError, KernelcastError
from kernelcast.hlo.conversions import CONVERSIONS, Conversion, exported_to_stablehlo, read_export
from kernelcast.hlo.handover import convert
from kernelcast.hlo.sources.dump import choose
from kernelcast.hlo.sources.formats import Format, sniff
from kernelcast.hlo.sources.stage import Stage

# Protobuf's own limit; no serialised module is larger.
_LARGEST_BYTES = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A program in one serialised form.

    Attributes:
        content: as ``format`` says.
        origin: where it comes from, in words for people.
        is_foreign: whether other hands than this process's JAX made the bytes; such bytes reach XLA's code
            only in a child process.
        stage: where it is known without reading; a dump's file names tell.
    """

    format: Format
    content: bytes
    origin: str
    is_foreign: bool
    stage: Stage | None = None

    def converted(self, conversion: Conversion, content: bytes) -> bytes:
        """Some form of this artefact converted to another one, in a child process if it is foreign.

        Raises:
            HloError: the content is refused; names the origin.
        """
        try:
            return convert(conversion, content) if self.is_foreign else CONVERSIONS[conversion](content)
        except HloError as error:
            raise HloError(f"{self.origin}: {error}") from error


def acquire(
    source: object, arguments: tuple[object, ...], *, stage: Stage | None, module: str | None
) -> Artefact:
    """The artefact behind a source; see ``kernelcast.hlo.sources.load`` for what that may be."""
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not _is_content(source)):
        return _from_path(Path(cast("str | os.PathLike[str]", source)), arguments, stage=stage, module=module)
    if isinstance(source, str):
        return _from_bytes(source.encode(), "the given text", arguments)
    if isinstance(source, bytes | bytearray):
        return _from_bytes(bytes(source), "the given bytes", arguments)
    return _from_jax(source, arguments, stage)


def _is_content(source: str) -> bool:
    """Whether a string is a program itself, not a path to one."""
    return "\n" in source or re.match(r"\s*(HloModule|(builtin\.)?module)[\s{]", source) is not None


def _from_path(
    path: Path, arguments: tuple[object, ...], *, stage: Stage | None, module: str | None
) -> Artefact:
    if path.is_dir():
        choice = choose(path, stage=stage, module=module)
        origin = f"{choice.file.path} ({choice.among} in the dump)"
        content = _read(choice.file.path)
        found = _from_bytes(content, origin, arguments)
        return Artefact(
            format=found.format, content=content, origin=origin, is_foreign=True, stage=choice.file.stage
        )
    return _from_bytes(_read(path), str(path), arguments)


def _read(path: Path) -> bytes:
    try:
        if not path.exists():
            raise KernelcastError(f"{path}: there is no such file or folder")
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            raise KernelcastError(f"{path}: expected a regular file of at most {_LARGEST_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise KernelcastError(f"{path}: cannot be read: {error.strerror}") from error


def _from_bytes(content: bytes, origin: str, arguments: tuple[object, ...]) -> Artefact:
    found = Artefact(format=sniff(content, origin), content=content, origin=origin, is_foreign=True)
    if not arguments:
        return found
    if found.format is not Format.JAX_EXPORT:
        raise KernelcastError(f"{origin}: {found.format} has its shapes already; give it no arguments")
    # Children read it first: what they survive, this process may read to fill in the shapes.
    bytecode = found.converted(Conversion.EXPORT_TO_BYTECODE, content)
    found.converted(Conversion.STABLEHLO_TO_TEXT, bytecode)
    return _from_jax(read_export(content), arguments, None)


def _from_jax(source: object, arguments: tuple[object, ...], stage: Stage | None) -> Artefact:
    import jax
    from jax.export import Exported

    if isinstance(source, Exported):
        origin = f"exported function {source.fun_name}"
        if arguments:
            return _from_function(source.call, origin, arguments, stage)
        return Artefact(
            format=Format.STABLEHLO_TEXT,
            content=exported_to_stablehlo(source).encode(),
            origin=origin,
            is_foreign=False,
            stage=Stage.UNOPTIMISED,
        )
    if isinstance(source, jax.stages.Compiled):
        return _from_compiled(source)
    if isinstance(source, jax.stages.Lowered):
        return _from_lowered(source, "a jax.stages.Lowered", stage)
    if callable(source):
        name = getattr(source, "__name__", type(source).__name__)
        return _from_function(source, f"JAX function {name}", arguments, stage)
    raise KernelcastError(
        f"cannot read a program from {type(source).__name__}; give a function with example arguments, "
        "jax.stages.Lowered or Compiled, jax.export.Exported, HLO or StableHLO, or a path"
    )


def _from_function(
    function: Callable[..., Any], origin: str, arguments: tuple[object, ...], stage: Stage | None
) -> Artefact:
    import jax

    # Without keep_unused an unused argument is no parameter, and numbers of parameters shift.
    jitted = function if isinstance(function, jax.stages.Wrapped) else jax.jit(function, keep_unused=True)
    return _from_lowered(jitted.lower(*arguments), origin, stage)


def _from_lowered(lowered: Any, origin: str, stage: Stage | None) -> Artefact:
    if stage is Stage.OPTIMISED:
        compiled = _from_compiled(lowered.compile())
        return Artefact(
            format=compiled.format,
            content=compiled.content,
            origin=f"{origin}, compiled",
            is_foreign=False,
            stage=Stage.OPTIMISED,
        )
    return Artefact(
        format=Format.STABLEHLO_TEXT,
        content=str(lowered.as_text()).encode(),
        origin=origin,
        is_foreign=False,
        stage=Stage.UNOPTIMISED,
    )


def _from_compiled(compiled: Any) -> Artefact:
    module = compiled.runtime_executable().hlo_modules()[0]
    return Artefact(
        format=Format.HLO_PROTO,
        content=bytes(module.as_serialized_hlo_module_proto()),
        origin=f"compiled module {module.name}",
        is_foreign=False,
        stage=Stage.OPTIMISED,
    )
