"""What a tuner ran, as TpuGraphs publishes it: one module, configurations and their profiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelcast.core.tile import Tile
from kernelcast.core.timing import Clock, Failure, Reason, Sample, Timing
from kernelcast.features.tpugraphs_tile import UNIT

_MISSING_NS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSizes:
    """A tile configuration as published: bounds physical, major → minor, in hardware tiles.

    Attributes:
        kernel_bounds, output_bounds, input_bounds: windows; empty where the kernel has none.
        iteration_bounds: empty in all published data, and not a feature.
    """

    kernel_bounds: tuple[int, ...] = ()
    output_bounds: tuple[int, ...] = ()
    input_bounds: tuple[int, ...] = ()
    iteration_bounds: tuple[int, ...] = ()

    @property
    def tile(self) -> Tile:
        """The same windows minor → major, as everywhere else here.

        Raises:
            ValueError: more than six bounds, or one below 1.
        """
        levels = (
            ("kernel", self.kernel_bounds),
            ("output", self.output_bounds),
            ("input", self.input_bounds),
        )
        return Tile(levels=tuple((name, b[::-1]) for name, b in levels if b), unit=UNIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """A layout configuration.

    Attributes:
        nodes: for each configurable node, for each of its tensors (result first), dimension numbers minor →
            major; empty where the tuner left a tensor to the compiler.
    """

    nodes: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What the device reported; 0 where it reported nothing."""

    compilation_cache_hit: int = 0
    compile_time_ms: int = 0
    compute_cycle_count: int = 0
    compute_time_ns: int = 0
    compute_and_transfer_time_ns: int = 0
    executable_size_in_bytes: int = 0
    profile_cache_hit: int = 0
    warmup_run_executed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRun:
    """One configuration that was tried.

    Attributes:
        config: what was chosen; None where the file names nothing.
        is_default: whether it is the compiler's own choice.
        is_error: whether it failed to compile or run.
        profile: None where the file has none.
    """

    config: TileSizes | Layouts | None
    is_default: bool
    is_error: bool
    profile: Profile | None

    @property
    def outcome(self) -> Timing | Failure:
        """The published time, or why there is none: it failed, or 0 or the largest integer stands for it."""
        time_ns = self.profile.compute_time_ns if self.profile is not None else 0
        if self.is_error:
            return Failure(reason=Reason.RUN, message="the published run is marked as an error")
        if not 0 < time_ns < _MISSING_NS:
            return Failure(reason=Reason.RUN, message=f"the published time is {time_ns}, which says missing")
        sample = Sample(runs=1, seconds=time_ns * 1e-9, loudness=float("nan"), round=0)
        return Timing(samples=(sample,), clock=Clock.PUBLISHED, method="published")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleTuning:
    """One module and the configurations tried on it.

    Attributes:
        module: a serialised ``HloModuleProto``; ``kernelcast.hlo.sources.load`` reads it.
        fingerprint: the publisher's, 64 bits.
        runs: in the order of the file.
        configurable: node numbers that the layouts of a run belong to, in order; empty for tiles.
    """

    module: bytes
    fingerprint: int
    runs: tuple[TuningRun, ...]
    configurable: tuple[int, ...]
