"""What the TPU compiler made of a program or a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelcast.core.kernel import Kernel
from kernelcast.core.tile import Tile
from kernelcast.core.timing import Failure
from kernelcast.fusion.extract import kernels_of
from kernelcast.hlo.program import Program
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.schedule.simulate import SimulatedTime
from kernelcast.targets.tpu.unassigned import unassigned
from kernelcast.targets.tpu.windows import tile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """One kernel, compiled alone or in a program.

    Attributes:
        kernel: without windows: a candidate is a kernel and a tile.
        listing: its final schedule, as libtpu prints it; empty where it printed none.
        tile: the window that it has; None where the compiler cuts nothing.
        iteration_bounds: how often its loops go round, major → minor.
        estimated_cycles: the compiler's estimate; None where it is missing, as for forced windows.
        time: simulated where it was asked for, else None; the listing is left out then.
    """

    kernel: Kernel
    listing: str
    tile: Tile | None
    iteration_bounds: tuple[int, ...] = ()
    estimated_cycles: int | None = None
    time: SimulatedTime | Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a kernel stands in a program."""

    computation: str
    instruction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """A whole program as the compiler leaves it.

    Attributes:
        program: the final module, with windows.
        kernels: in the order of the text.
        scalars: operations on scalars; they run on the scalar core between kernels, and have no schedule of
            their own.
    """

    program: Program
    kernels: tuple[tuple[Site, CompiledKernel], ...]
    scalars: tuple[Site, ...]


def compiled_program(final: Program, listings: dict[str, str]) -> CompiledProgram:
    """The kernels of a final module with their schedules.

    Args:
        listings: by instruction name. Equal kernels are scheduled once, under the name of one of them.
    """
    assigned = kernels_of(final)
    by_code = {_code(kernel): listings[name] for _, name, kernel in assigned if name in listings}
    found: list[tuple[Site, CompiledKernel]] = []
    scalars: list[Site] = []
    for (computation, name, kernel), (_, _, bare) in zip(
        assigned, kernels_of(unassigned(final)), strict=True
    ):
        site = Site(computation=computation, instruction=name)
        listing = listings.get(name) or by_code.get(_code(kernel), "")
        if not listing and _is_scalar(kernel):
            scalars.append(site)
            continue
        config = kernel.root.attribute("backend_config")
        found.append((site, compiled_kernel(bare, listing, libtpu.read_window_config(config))))
    return CompiledProgram(program=final, kernels=tuple(found), scalars=tuple(scalars))


def _code(kernel: Kernel) -> str:
    """What decides the code of a kernel: scalar constants that it reads are arguments like any other."""
    entry = kernel.program.entry_computation
    instructions = tuple(
        replace(i, literal="0") if i.opcode == "constant" and i.shape.rank == 0 else i for i in entry
    )
    computations = (*kernel.program.computations[:-1], replace(entry, instructions=instructions))
    return replace(kernel, program=replace(kernel.program, computations=computations)).text


def _is_scalar(kernel: Kernel) -> bool:
    return kernel.root.opcode != "fusion" and all(
        leaf.is_array and leaf.rank == 0
        for instruction in kernel.program.entry_computation
        for leaf in instruction.shape.leaves()
    )


def compiled_kernel(kernel: Kernel, listing: str, config: libtpu.WindowConfig | None) -> CompiledKernel:
    """A kernel with the windows that its instruction came out with."""
    if config is None:
        return CompiledKernel(kernel=kernel, listing=listing, tile=None)
    return CompiledKernel(
        kernel=kernel,
        listing=listing,
        tile=tile_of(config),
        iteration_bounds=config.iteration_bounds,
        estimated_cycles=config.estimated_cycles,
    )
