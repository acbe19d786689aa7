"""The bridge to the compiler's own HLO: the only place that touches ``jaxlib._hlo`` and its MLIR conversions.

jaxlib is imported inside the functions, so that HLO is read and costed without it, and
``kernelcast --help`` does not wait for it.
"""

from __future__ import annotations

import re
from typing import Any

from kernelcast.errors import HloError

# The producer that a portable artefact names; plain bytecode names MLIR.
_PORTABLE = b"StableHLO"


# XLA prints a negative zero as -0, which its own parser takes for the integer 0; -0.0 it reads as what it is.
# Only in literals of arrays of floats: integers must stay integers, and strings what they are.
_FLOATS = re.compile(r'(= (?:bf|f|c)\d\w*\[[^\n"=]*? constant)(\((?:[^="/]+|/\*.*?\*/)*+)')
_NEGATIVE_ZERO = re.compile(r"(?<=[\s({,])-0(?=[\s)},])")


def text_to_proto(text: str) -> bytes:
    """The serialised ``HloModuleProto`` of a text, as XLA's parser reads it, negative zeros kept.

    XLA aborts the process on some malformed texts, and allocates every constant that a text names. Foreign or
    generated texts go through ``kernelcast.hlo.handover`` instead.

    Raises:
        HloError: XLA's parser refuses the text.
    """
    from jaxlib import _hlo  # pyright: ignore[reportAttributeAccessIssue]  (no stub)

    try:
        text.encode()  # the binding's own error for a lone surrogate speaks of C++ types
        exact = _FLOATS.sub(lambda found: found[1] + _NEGATIVE_ZERO.sub("-0.0", found[2]), text)
        return bytes(_hlo.hlo_module_from_text(exact).as_serialized_hlo_module_proto())
    except (RuntimeError, IndexError, ValueError) as error:  # C++ exceptions and statuses
        raise HloError(f"XLA's parser refuses the text: {error}") from error


def proto_to_text(proto: bytes) -> str:
    """The HLO text of a serialised ``HloModuleProto``, as XLA prints it, with all constants.

    Raises:
        HloError: the bytes are no such proto.
    """
    from jaxlib import _hlo  # pyright: ignore[reportAttributeAccessIssue]  (no stub)

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    try:
        return str(_hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options))
    except RuntimeError as error:
        raise HloError(
            f"expected a serialised HloModuleProto, got bytes that XLA refuses: {error}"
        ) from error


def proto_to_stablehlo(proto: bytes) -> str:
    """The StableHLO text of a serialised ``HloModuleProto``; donated parameters stay donated.

    Raises:
        HloError: the bytes are no such proto, or an instruction has no StableHLO form (``fusion`` has none).
    """
    from jaxlib import _hlo  # pyright: ignore[reportAttributeAccessIssue]  (no stub)

    try:
        return str(_mlir().xla_computation_to_mlir_module(_hlo.XlaComputation(proto)))
    except RuntimeError as error:
        raise HloError(f"XLA cannot turn the module into StableHLO: {_first_line(error)}") from error


def stablehlo_to_proto(module: bytes) -> bytes:
    """The serialised ``HloModuleProto`` of StableHLO text, bytecode or a portable artefact.

    Raises:
        HloError: XLA does not take the module.
    """
    try:
        computation = _mlir().mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
    except RuntimeError as error:
        raise HloError(f"XLA does not take the StableHLO module: {_first_line(error)}") from error
    return bytes(computation.as_serialized_hlo_module_proto())


def stablehlo_to_text(module: bytes) -> str:
    """The text of StableHLO text, bytecode or a portable artefact, in MLIR's usual form.

    Raises:
        HloError: the bytes are no such module.
    """
    from jax.interpreters import mlir

    with mlir.make_ir_context() as context:
        try:
            if _PORTABLE in module[:64]:
                return str(_mlir().deserialize_portable_artifact(module, context))
            return str(mlir.ir.Module.parse(module))
        except (RuntimeError, ValueError, mlir.ir.MLIRError) as error:
            reason = " ".join(str(error).split())
            raise HloError(f"MLIR does not read the StableHLO module: {reason}") from error


def _mlir() -> Any:
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]  (no stub)

    return _jax.mlir


def _first_line(error: RuntimeError) -> str:
    return str(error).strip().partition("\n")[0]
