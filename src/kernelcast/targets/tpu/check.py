"""Whether the extra ``tpu`` works here: a compile, a list of tiles and a forced tile."""

from __future__ import annotations

from dataclasses import dataclass

from kernelcast.core.timing import Failure
from kernelcast.errors import KernelcastError
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.targets.tpu import libtpu
from kernelcast.targets.tpu.xla_tpu import XlaTpu

PROBE = """HloModule probe
ENTRY probe {
  x = f32[64,1024]{1,0:T(8,128)} parameter(0)
  ROOT y = f32[64,1024]{1,0:T(8,128)} tanh(x)
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuCheck:
    """What was found.

    Attributes:
        version: of libtpu; None where it is not installed.
        problem: what does not work; empty where all does.
    """

    version: str | None
    problem: str = ""

    @property
    def sentence(self) -> str:
        """The finding in words, with what to do."""
        if self.version is None:
            return (
                "XLA:TPU ahead of time: not installed; pip install 'kernelcast[tpu]' (libtpu is proprietary)"
            )
        state = f"fails: {self.problem}" if self.problem else "works"
        tried = (
            ""
            if self.version == libtpu.TRIED_VERSION
            else f"; it was tried with libtpu {libtpu.TRIED_VERSION} only"
        )
        return f"XLA:TPU ahead of time (libtpu {self.version}): {state}{tried}"


def check_tpu() -> TpuCheck:
    """Whether kernels compile for tpu_v3 here; takes a few seconds where libtpu is installed."""
    version = libtpu.installed_version()
    if version is None:
        return TpuCheck(version=None)
    try:
        with XlaTpu("tpu_v3") as target:
            return TpuCheck(version=version, problem=_problem(target))
    except KernelcastError as error:
        return TpuCheck(version=version, problem=str(error))


def _problem(target: XlaTpu) -> str:
    kernel = kernel_from_text(PROBE)
    listed = target.valid_tiles(kernel)
    if isinstance(listed, Failure):
        return f"it lists no tiles ({listed})"
    others = [tile for tile in listed.tiles if tile != listed.default]
    if listed.default is None or not others:
        return f"it lists {len(listed)} tiles of a kernel that has several"
    forced = target.compile_kernel(kernel, others[0])
    return f"it does not take a tile ({forced})" if isinstance(forced, Failure) else ""
