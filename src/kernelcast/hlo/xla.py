"""The bridge to the compiler's own HLO: the only place that touches ``jaxlib._hlo``.

jaxlib is imported inside the functions, so that HLO is read and costed without it, and
``kernelcast --help`` does not wait for it.
"""

from __future__ import annotations

from kernelcast.errors import HloError


def text_to_proto(text: str) -> bytes:
    """The serialised ``HloModuleProto`` of a text, as XLA's parser reads it.

    XLA aborts the process on some malformed texts, and allocates every constant that a text names. Foreign or
    generated texts go through ``kernelcast.hlo.handover`` instead.

    Raises:
        HloError: XLA's parser refuses the text.
    """
    from jaxlib import _hlo  # pyright: ignore[reportAttributeAccessIssue]  (no stub)

    try:
        text.encode()  # the binding's own error for a lone surrogate speaks of C++ types
        return bytes(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    except (RuntimeError, IndexError, ValueError) as error:  # C++ exceptions and statuses
        raise HloError(f"XLA's parser refuses the text: {error}") from error


def proto_to_text(proto: bytes, *, print_large_constants: bool = True) -> str:
    """The HLO text of a serialised ``HloModuleProto``, as XLA prints it.

    Args:
        print_large_constants: False prints ``{...}`` for constants of more than ten elements.

    Raises:
        HloError: the bytes are no such proto.
    """
    from jaxlib import _hlo  # pyright: ignore[reportAttributeAccessIssue]  (no stub)

    options = _hlo.HloPrintOptions()
    options.print_large_constants = print_large_constants
    try:
        return str(_hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options))
    except RuntimeError as error:
        raise HloError(
            f"expected a serialised HloModuleProto, got bytes that XLA refuses: {error}"
        ) from error
