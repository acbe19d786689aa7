"""What the compiler's own libraries can turn into what, each bytes to bytes, so that a child can do it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from kernelcast.hlo.xla import (
    proto_to_stablehlo,
    proto_to_text,
    stablehlo_to_proto,
    stablehlo_to_text,
    text_to_proto,
)


class Conversion(StrEnum):
    """A conversion by name; texts are UTF-8."""

    TEXT_TO_PROTO = "text-to-proto"
    PROTO_TO_TEXT = "proto-to-text"
    PROTO_TO_STABLEHLO = "proto-to-stablehlo"
    STABLEHLO_TO_PROTO = "stablehlo-to-proto"
    STABLEHLO_TO_TEXT = "stablehlo-to-text"


CONVERSIONS: dict[Conversion, Callable[[bytes], bytes]] = {
    Conversion.TEXT_TO_PROTO: lambda text: text_to_proto(text.decode()),
    Conversion.PROTO_TO_TEXT: lambda proto: proto_to_text(proto).encode(),
    Conversion.PROTO_TO_STABLEHLO: lambda proto: proto_to_stablehlo(proto).encode(),
    Conversion.STABLEHLO_TO_PROTO: stablehlo_to_proto,
    Conversion.STABLEHLO_TO_TEXT: lambda module: stablehlo_to_text(module).encode(),
}
