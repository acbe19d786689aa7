"""Reads a program and says what is in it, without running anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelcast import zoo
from kernelcast.errors import KernelcastError
from kernelcast.fusion.extract import kernels_of
from kernelcast.hlo.cost import Cost, program_cost
from kernelcast.hlo.program import Program
from kernelcast.hlo.sources import Loaded, Stage, load
from kernelcast.hlo.trips import TripCount, execution_counts, trip_count
from kernelcast.jobs.programs.named_program import looks_like_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A ``while`` of a program.

    Attributes:
        reached: how often it is entered in one run of the program.
        trips: how often its body runs each time.
    """

    computation: str
    instruction: str
    reached: TripCount
    trips: TripCount


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What a program holds.

    Attributes:
        name: of the module.
        origin: where it was read from, in words; names the file that was chosen of a dump.
        stage: before or after optimisations.
        opcodes: how many instructions there are of each, the most frequent first; those inside fusions count.
        parameters: their shapes, by number.
        result: shape of the entry's result.
        donated: numbers of the parameters whose buffers an output may take.
        loops: in the order of the program.
        elided: constants whose values the text leaves out.
        cost: of one run, loops multiplied out; before fusion the bytes are those of the un-fused program.
        kernels: launched instructions by kind, each counted once however often it runs; empty before
            optimisations, where nothing is a kernel yet.
    """

    name: str
    origin: str
    stage: Stage
    computations: int
    instructions: int
    opcodes: Mapping[str, int]
    parameters: tuple[str, ...]
    result: str
    donated: tuple[int, ...]
    loops: tuple[Loop, ...]
    elided: tuple[str, ...]
    cost: Cost
    kernels: Mapping[str, int]


def ingest(
    source: object, *arguments: object, stage: Stage | None = None, module: str | None = None
) -> IngestReport:
    """What a program holds.

    Args:
        source: the path of a file or dump folder, the name of a zoo program, or anything else that
            ``kernelcast.hlo.sources.load`` takes.
        arguments: as for ``load``.
        stage: as for ``load``; for a function or zoo program ``Stage.OPTIMISED`` compiles it.
        module: as for ``load``.

    Raises:
        KernelcastError: neither the file system nor the zoo has it, or it holds no such program.
        HloError: the program cannot be read or is not valid.
    """
    return report(loaded(source, arguments, stage, module))


def report(found: Loaded) -> IngestReport:
    """What a program that was read holds."""
    program = found.program
    entry = program.entry_computation
    instructions = [i for computation in program.computations for i in computation]
    optimised = found.stage is Stage.OPTIMISED
    kinds = (
        Counter(kernel.kind.value for _, _, kernel in kernels_of(program)) if optimised else Counter[str]()
    )
    return IngestReport(
        name=program.name,
        origin=found.origin,
        stage=found.stage,
        computations=len(program.computations),
        instructions=program.instruction_count,
        opcodes=dict(Counter(i.opcode for i in instructions).most_common()),
        parameters=tuple(str(p.shape.without_layout()) for p in entry.parameters),
        result=str(entry.root_instruction.shape.without_layout()),
        donated=tuple(sorted({alias.parameter for alias in program.aliases})),
        loops=_loops(program),
        elided=tuple(i.name for i in instructions if i.is_elided),
        cost=program_cost(program),
        kernels=dict(kinds.most_common()),
    )


def loaded(source: object, arguments: tuple[object, ...], stage: Stage | None, module: str | None) -> Loaded:
    """The program of a file, dump folder, zoo name or anything else; see ``ingest``."""
    # Text of a program has lines; a zoo name has none.
    if not isinstance(source, str) or "\n" in source or Path(source).exists() or looks_like_path(source):
        return load(source, *arguments, stage=stage, module=module)
    if arguments or module is not None:
        raise KernelcastError(f"{source}: a zoo program takes neither arguments nor the module of a dump")
    variant = zoo.find(source)
    function, inputs = variant.build()
    found = load(function, *inputs, stage=stage)
    return Loaded(program=found.program, origin=f"zoo program {variant.id}", stage=found.stage)


def _loops(program: Program) -> tuple[Loop, ...]:
    counts = execution_counts(program)
    return tuple(
        Loop(
            computation=computation.name,
            instruction=instruction.name,
            reached=counts[computation.name],
            trips=trip_count(program, instruction, computation),
        )
        for computation in program.scheduled_computations()
        for instruction in computation
        if instruction.opcode == "while"
    )
