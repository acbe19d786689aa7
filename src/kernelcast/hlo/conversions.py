"""What the compiler's own libraries can turn into what, each bytes to bytes, so that a child can do it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from kernelcast.errors import HloError, MissingExtraError
from kernelcast.hlo.xla import (
    proto_to_stablehlo,
    proto_to_text,
    stablehlo_to_proto,
    stablehlo_to_text,
    text_to_proto,
)

if TYPE_CHECKING:
    from jax.export import Exported

# JAX's reader follows whatever offsets the bytes hold, without checks of its own.
_DAMAGED = (struct.error, TypeError, ValueError, LookupError, AttributeError, AssertionError)


def read_export(artefact: bytes) -> Exported:
    """The function that ``jax.export`` serialised.

    Raises:
        MissingExtraError: flatbuffers is not installed, which JAX reads these with.
        HloError: the bytes are damaged.
    """
    from jax import export

    try:
        return export.deserialize(bytearray(artefact))
    except ImportError as error:
        raise MissingExtraError("reading jax.export artefacts", "flatbuffers", "export") from error
    except _DAMAGED as error:
        raise HloError(f"JAX cannot read this jax.export artefact, it is damaged: {error}") from error


def exported_to_stablehlo(exported: Exported) -> str:
    """The StableHLO text of an exported function.

    Raises:
        HloError: its shapes are symbolic, so that there is not one program.
    """
    symbolic = [aval for aval in exported.in_avals if not all(isinstance(d, int) for d in aval.shape)]
    if symbolic:
        raise HloError(f"the exported function has symbolic shapes ({symbolic[0]}); give its arguments too")
    return stablehlo_to_text(exported.mlir_module_serialized)


class Conversion(StrEnum):
    """A conversion by name; texts are UTF-8."""

    TEXT_TO_PROTO = "text-to-proto"
    PROTO_TO_TEXT = "proto-to-text"
    PROTO_TO_STABLEHLO = "proto-to-stablehlo"
    STABLEHLO_TO_PROTO = "stablehlo-to-proto"
    STABLEHLO_TO_TEXT = "stablehlo-to-text"
    EXPORT_TO_BYTECODE = "export-to-bytecode"
    EXPORT_TO_STABLEHLO = "export-to-stablehlo"


CONVERSIONS: dict[Conversion, Callable[[bytes], bytes]] = {
    Conversion.TEXT_TO_PROTO: lambda text: text_to_proto(text.decode()),
    Conversion.PROTO_TO_TEXT: lambda proto: proto_to_text(proto).encode(),
    Conversion.PROTO_TO_STABLEHLO: lambda proto: proto_to_stablehlo(proto).encode(),
    Conversion.STABLEHLO_TO_PROTO: stablehlo_to_proto,
    Conversion.STABLEHLO_TO_TEXT: lambda module: stablehlo_to_text(module).encode(),
    Conversion.EXPORT_TO_BYTECODE: lambda artefact: read_export(artefact).mlir_module_serialized,
    Conversion.EXPORT_TO_STABLEHLO: lambda artefact: exported_to_stablehlo(read_export(artefact)).encode(),
}
