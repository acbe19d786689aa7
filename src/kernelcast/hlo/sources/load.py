"""Everything that describes a program, as a ``Program`` or as StableHLO."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelcast.errors import HloError, KernelcastError
from kernelcast.hlo.conversions import Conversion
from kernelcast.hlo.format import format_program
from kernelcast.hlo.literal import require_values
from kernelcast.hlo.program import Program
from kernelcast.hlo.sources.artefact import Artefact, acquire
from kernelcast.hlo.sources.formats import Format, module_proto
from kernelcast.hlo.sources.stage import Stage
from kernelcast.hlo.verify import parse_verified, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A program that was read.

    Attributes:
        origin: where it comes from, in words for people: file, module of a dump, name of a function.
        stage: how far a compiler has gone with it.
    """

    program: Program
    origin: str
    stage: Stage


def load(source: object, *arguments: object, stage: Stage | None = None, module: str | None = None) -> Loaded:
    """The HLO of a program.

    Args:
        source: a JAX function; ``jax.stages.Lowered`` or ``Compiled``; ``jax.export.Exported`` or its
            serialised form; HLO text; a serialised ``HloModuleProto`` or ``HloProto``; StableHLO text or
            bytecode; a ``Program``; or the path of a file with one of these, or of an XLA dump folder.
            Content decides what a file is, not its name.
        arguments: of a function or exported function: arrays, or ``jax.ShapeDtypeStruct``.
        stage: what is wanted where there is a choice: a function is lowered, or compiled for
            ``Stage.OPTIMISED``; a dump folder holds both. For None the unoptimised one if there is one.
        module: name or number of a module of a dump folder; the largest for None.

    Raises:
        KernelcastError: the source holds no program, or none of that stage.
        HloError: the program cannot be read or is not valid; with the line where the source is HLO text.

    >>> text = "HloModule m\\nENTRY e {\\n  x = f32[4] parameter(0)\\n  ROOT y = f32[4] tanh(x)\\n}"
    >>> loaded = load(text)
    >>> loaded.program.name, loaded.stage.value, loaded.origin
    ('m', 'unoptimised', 'the given text')
    """
    if isinstance(source, Program):
        program, origin, known = source, f"program {source.name}", None
    else:
        artefact = acquire(source, arguments, stage=stage, module=module)
        program, origin, known = _program(artefact), artefact.origin, artefact.stage
    found = known or _stage(program)
    if stage is not None and found is not stage:
        raise KernelcastError(
            f"{origin}: holds an {found} program, but an {stage} one was asked for; "
            "give a function, or a dump folder that has both"
        )
    return Loaded(program=program, origin=origin, stage=found)


def to_stablehlo(source: object, *arguments: object, module: str | None = None) -> str:
    """The StableHLO text of a program, with a module name, as a PJRT compiler takes it.

    Args:
        source: as for ``load``, unoptimised: optimised HLO holds fusions, for which StableHLO has no words.
        arguments: as for ``load``.
        module: as for ``load``.

    Raises:
        KernelcastError: as ``load``.
        HloError: as ``load``, and for invalid HLO, elided constants and HLO that StableHLO cannot express.
    """
    if isinstance(source, Program):
        verify(source)
        return _named(_stablehlo_of_text(_artefact_of(source), source))
    artefact = acquire(source, arguments, stage=Stage.UNOPTIMISED, module=module)
    match artefact.format:
        case Format.STABLEHLO_TEXT if not artefact.is_foreign:
            text = artefact.content.decode()
        case Format.STABLEHLO_TEXT | Format.STABLEHLO_BYTECODE:
            text = artefact.converted(Conversion.STABLEHLO_TO_TEXT, artefact.content).decode()
        case Format.JAX_EXPORT:
            text = artefact.converted(Conversion.EXPORT_TO_STABLEHLO, artefact.content).decode()
        case Format.HLO_PROTO:
            _refuse_optimised(artefact, _program(artefact))
            proto = module_proto(artefact.content)
            text = artefact.converted(Conversion.PROTO_TO_STABLEHLO, proto).decode()
        case Format.HLO_TEXT:
            text = _stablehlo_of_text(artefact, _program(artefact))
    return _named(text)


def _program(artefact: Artefact) -> Program:
    match artefact.format:
        case Format.HLO_TEXT:
            text = artefact.content.decode()
        case Format.HLO_PROTO:
            proto = module_proto(artefact.content)
            text = artefact.converted(Conversion.PROTO_TO_TEXT, proto).decode()
        case Format.STABLEHLO_TEXT | Format.STABLEHLO_BYTECODE:
            text = _text_of_stablehlo(artefact, artefact.content)
        case Format.JAX_EXPORT:
            stablehlo = artefact.converted(Conversion.EXPORT_TO_STABLEHLO, artefact.content)
            text = _text_of_stablehlo(artefact, stablehlo)
    try:
        return parse_verified(text)
    except HloError as error:
        # Lines of a converted text mean nothing to whoever wrote the original.
        line = error.line if artefact.format is Format.HLO_TEXT else None
        raise _placed(error, artefact.origin, line=line) from error


def _text_of_stablehlo(artefact: Artefact, module: bytes) -> str:
    proto = artefact.converted(Conversion.STABLEHLO_TO_PROTO, module)
    return artefact.converted(Conversion.PROTO_TO_TEXT, proto).decode()


def _stablehlo_of_text(artefact: Artefact, program: Program) -> str:
    """By way of XLA's parser, in a child."""
    _refuse_optimised(artefact, program)
    try:
        require_values(program, "StableHLO holds them")
    except HloError as error:
        raise _placed(error, artefact.origin, line=None) from error
    proto = artefact.converted(Conversion.TEXT_TO_PROTO, format_program(program).encode())
    return artefact.converted(Conversion.PROTO_TO_STABLEHLO, proto).decode()


def _refuse_optimised(artefact: Artefact, program: Program) -> None:
    if _stage(program) is Stage.OPTIMISED:
        raise KernelcastError(
            f"{artefact.origin}: is optimised already, and compiling it once more would say nothing about "
            "the program it was; give the program before optimisation"
        )


def _artefact_of(program: Program) -> Artefact:
    return Artefact(format=Format.HLO_TEXT, content=b"", origin=f"program {program.name}", is_foreign=True)


def _stage(program: Program) -> Stage:
    fused = any(i.opcode == "fusion" for c in program.computations for i in c)
    return Stage.OPTIMISED if program.is_scheduled or fused else Stage.UNOPTIMISED


def _named(stablehlo: str) -> str:
    """The same module; one without a name is called ``program``, since a compile is recognised by it."""
    start = re.compile(r"^((?:builtin\.)?module)(?=\s*(?:attributes|\{))", re.MULTILINE)
    return start.sub(r"\1 @program", stablehlo, count=1)


def _placed(error: HloError, origin: str, *, line: int | None) -> HloError:
    """The same error with the origin before its place."""
    inner = HloError(error.message, line=line, instruction=error.instruction)
    placed = HloError(f"{origin}: {inner}")
    placed.line, placed.instruction = inner.line, inner.instruction
    return placed
