"""What a program costs as compiled: arithmetic and bytes of each kernel, times how often it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernelcast.hlo.demand import fractions_needed, operand_fraction, touched_fraction, updated_bytes
from kernelcast.hlo.inplace import in_place_pairs
from kernelcast.hlo.opcodes import NOT_LAUNCHED, TRANSPARENT
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.trips import ASSUMED_TRIPS, TripCount, execution_counts
from kernelcast.hlo.work import Work, work

# Where an asynchronous start keeps its result; the rest of its tuple stands for operands and handles.
_RESULT_OF_START = {"copy-start": (0,), "all-gather-start": (1,), "collective-permute-start": (1,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Work and memory traffic of one or several runs.

    Attributes:
        flops: operations of any element type but transcendental ones; a multiply-add is two.
        transcendentals: elements of exponentials, roots, sines …
        bytes_read: bytes that kernels read, each value once for each kernel.
        bytes_written: bytes that kernels write; an in-place update writes only what it updates.
        unknown: names of the instructions whose arithmetic nobody knows (library calls); their bytes are in
            the sums, their arithmetic is not, so where this is not empty ``flops`` is a lower bound.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes_read: float = 0.0
    bytes_written: float = 0.0
    unknown: tuple[str, ...] = ()

    @property
    def bytes_accessed(self) -> float:
        return self.bytes_read + self.bytes_written

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            flops=self.flops + other.flops,
            transcendentals=self.transcendentals + other.transcendentals,
            bytes_read=self.bytes_read + other.bytes_read,
            bytes_written=self.bytes_written + other.bytes_written,
            unknown=tuple(dict.fromkeys((*self.unknown, *other.unknown))),
        )

    def times(self, runs: float) -> Cost:
        """The cost of several runs."""
        return Cost(
            flops=self.flops * runs,
            transcendentals=self.transcendentals * runs,
            bytes_read=self.bytes_read * runs,
            bytes_written=self.bytes_written * runs,
            unknown=self.unknown,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCost:
    """One launched instruction.

    Attributes:
        computation: holds it.
        instruction: its name.
        cost: of one run.
        runs: in one run of the program.
    """

    computation: str
    instruction: str
    cost: Cost
    runs: TripCount


def program_cost(program: Program, *, assumed: float = ASSUMED_TRIPS) -> Cost:
    """The cost of one run, loops multiplied out.

    A program before fusion is counted as if each operation were a kernel: the arithmetic is right, the bytes
    are those of the un-fused program.

    Args:
        assumed: trips of a loop of unknown length.

    >>> from kernelcast.hlo.text import parse
    >>> cost = program_cost(parse('''HloModule m
    ... ENTRY e { a = f32[8,16] parameter(0)  b = f32[16,4] parameter(1)
    ...   ROOT d = f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }'''))
    >>> cost.flops, cost.bytes_read, cost.bytes_written
    (1024.0, 768.0, 128.0)
    """
    total = Cost()
    for kernel in kernel_costs(program, assumed=assumed):
        total += kernel.cost.times(kernel.runs.value)
    return total


def kernel_costs(program: Program, *, assumed: float = ASSUMED_TRIPS) -> tuple[KernelCost, ...]:
    """The cost of every launched instruction, in the order of the program."""
    counts = execution_counts(program, assumed=assumed)
    return tuple(
        KernelCost(
            computation=computation.name,
            instruction=instruction.name,
            cost=instruction_cost(program, computation, instruction),
            runs=counts[computation.name],
        )
        for computation in program.scheduled_computations()
        for instruction in computation
        if instruction.opcode not in NOT_LAUNCHED
    )


def instruction_cost(program: Program, computation: Computation, instruction: Instruction) -> Cost:
    """The cost of one run of one instruction as a kernel.

    A fusion, a library's too, reads the needed part of each operand once, computes the needed part of each
    inner instruction once, and writes its outputs. An opaque call has the bytes of operands and result, and
    its name in ``unknown``. Tuples, bitcasts and control flow cost nothing themselves.
    """
    if instruction.opcode in NOT_LAUNCHED or instruction.opcode.endswith(("-done", "-update")):
        return Cost()
    if instruction.opcode == "fusion":
        return _fusion_cost(program, computation, instruction)
    done = work(program, computation, instruction)
    pairs = in_place_pairs(program, instruction)
    in_place = instruction.opcode in ("dynamic-update-slice", "scatter")
    read: dict[str, float] = {}
    for number, operand in enumerate(instruction.operands):
        fraction = operand_fraction(computation, instruction, number)
        if in_place and any(pair.operand == number for pair in pairs):
            fraction = touched_fraction(computation, instruction)
        read[operand] = max(read.get(operand, 0.0), fraction * computation[operand].shape.byte_size)
    if in_place:
        written = updated_bytes(computation, instruction) * len(pairs)
    else:
        written = instruction.shape.at(_RESULT_OF_START.get(instruction.opcode, ())).byte_size
    return _cost([(instruction.name, done)], sum(read.values()), written)


def _fusion_cost(program: Program, computation: Computation, fusion: Instruction) -> Cost:
    fused = program[fusion.called[0]]
    updates = {pair.output: pair.updater for pair in in_place_pairs(program, fusion) if pair.updater}
    needed = fractions_needed(fused, frozenset(updates.values()))
    done: list[tuple[str, Work | None]] = []
    inner = Cost()
    for instruction in fused:
        fraction = needed[instruction.name]
        if instruction.opcode in TRANSPARENT or fraction == 0:
            continue
        if instruction.opcode == "fusion":
            inner += instruction_cost(program, fused, instruction)
            continue
        whole = work(program, fused, instruction)
        done.append((fusion.name, whole and whole.times(fraction)))
    read: dict[str, float] = {}
    for parameter, operand in zip(fused.parameters, fusion.operands, strict=True):
        needed_bytes = needed[parameter.name] * parameter.shape.byte_size
        read[operand] = max(read.get(operand, 0.0), needed_bytes)
    written = 0.0
    for output, shape in fusion.shape.indexed_leaves():
        updater = updates.get(output)
        written += shape.byte_size if updater is None else _updated_bytes(program, fused, fused[updater])
    total = _cost(done, sum(read.values()), written)
    return total + Cost(flops=inner.flops, transcendentals=inner.transcendentals, unknown=inner.unknown)


def _updated_bytes(program: Program, fused: Computation, update: Instruction) -> float:
    """Bytes that an update inside a fusion writes; it may be a fusion itself."""
    if update.opcode == "fusion":
        return instruction_cost(program, fused, update).bytes_written
    return updated_bytes(fused, update)


def _cost(done: Iterable[tuple[str, Work | None]], bytes_read: float, bytes_written: float) -> Cost:
    total = Cost(bytes_read=float(bytes_read), bytes_written=float(bytes_written))
    for name, part in done:
        if part is None:
            total += Cost(unknown=(name,))
        else:
            total += Cost(flops=part.operations, transcendentals=part.transcendentals)
    return total
