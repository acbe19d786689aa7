"""The valid tiles of one kernel on a target, with the compiler's own estimates."""

from __future__ import annotations

from dataclasses import dataclass

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import TileSet
from kernelcast.core.timing import Failure
from kernelcast.errors import KernelcastError, TargetError
from kernelcast.fusion.extract import kernels_of
from kernelcast.hlo.sources import load
from kernelcast.targets.protocol import Tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class TileReport:
    """What ``kernelcast tiles`` found.

    Attributes:
        target: name.
        instruction: that is the kernel.
        fingerprint: of the kernel.
        tiles: as the compiler lists them.
    """

    target: str
    instruction: str
    fingerprint: str
    tiles: TileSet


def list_tiles(source: object, target: Tiles, *, name: str, instruction: str | None = None) -> TileReport:
    """The valid tiles of the kernel in a source.

    Args:
        source: as ``kernelcast.hlo.sources.load`` takes it, after optimisation.
        name: of the target.
        instruction: which kernel, where there are several.

    Raises:
        KernelcastError: the source cannot be read, or holds no such kernel.
        TargetError: the compiler cannot list the tiles.
    """
    found, kernel = _kernel(source, instruction)
    tiles = target.valid_tiles(kernel)
    if isinstance(tiles, Failure):
        raise TargetError(
            f"%{found}: {name} lists no tiles of this kernel: {tiles}. It must be laid out for the chip, "
            "e.g. f32[64,128]{1,0:T(8,128)}, as in a module that was compiled for it"
        )
    return TileReport(target=name, instruction=found, fingerprint=kernel.fingerprint, tiles=tiles)


def _kernel(source: object, instruction: str | None) -> tuple[str, Kernel]:
    loaded = load(source)
    kernels = {name: kernel for _, name, kernel in kernels_of(loaded.program)}
    if instruction is None and len(kernels) == 1:
        return next(iter(kernels.items()))
    if instruction not in kernels:
        known = ", ".join(list(kernels)[:20]) or "none"
        asked = "one kernel was expected" if instruction is None else f"no kernel is called {instruction}"
        raise KernelcastError(
            f"{loaded.origin}: {asked}; there are {len(kernels)}: {known}. Choose one with --instruction"
        )
    return instruction, kernels[instruction]
