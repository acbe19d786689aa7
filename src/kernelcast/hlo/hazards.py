"""Reads of a value after its buffer was overwritten, found by running a schedule without its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kernelcast.hlo.attributes import loop_computations
from kernelcast.hlo.buffers import Buffers, Site, must_share, site
from kernelcast.hlo.inplace import may_overwrite
from kernelcast.hlo.opcodes import TRANSPARENT
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.values import Index, Value


class HazardKind(StrEnum):
    """How a value comes to be read too late."""

    READ_LATE = "read-late"  # a kernel reads it after an in-place update
    READ_IN_SAME_KERNEL = "read-in-same-kernel"  # the updating kernel reads it at other places too
    STATE_LATE = "state-late"  # a loop body reads old state after writing the new
    STATE_IN_SAME_KERNEL = "state-in-same-kernel"  # the kernel that writes new state reads the old elsewhere
    LIVE_OUT = "live-out"  # it is a result of the computation
    READ_ONLY = "read-only"  # it is a constant, or a parameter that the caller keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """A read that would see another value than it asks for.

    Attributes:
        kind: what went wrong.
        computation: holds the reader.
        instruction: the reader.
        value: what it reads, as ``resolve`` names it in that computation.
        writer: the instruction, in this or a called computation, that overwrites the value.
    """

    kind: HazardKind
    computation: str
    instruction: str
    value: Value
    writer: str

    def __str__(self) -> str:
        name, index = self.value
        value = f"%{name}" + (f"{{{','.join(map(str, index))}}}" if index else "")
        what = {
            HazardKind.READ_LATE: f"reads {value} after %{self.writer} has overwritten its buffer",
            HazardKind.READ_IN_SAME_KERNEL: f"overwrites {value} while it reads it at other places",
            HazardKind.STATE_LATE: f"reads loop state {value} after %{self.writer} has written the new state",
            HazardKind.STATE_IN_SAME_KERNEL: f"writes the new loop state over {value} while it reads it at "
            "other places",
            HazardKind.LIVE_OUT: f"returns {value}, which %{self.writer} has overwritten",
            HazardKind.READ_ONLY: f"would overwrite {value}, a constant or a parameter that is not donated",
        }[self.kind]
        return f"computation {self.computation}, %{self.instruction}: {what}; copy {value} first"


def hazards(program: Program) -> tuple[Hazard, ...]:
    """Every read in a scheduled program that would see a value other than the one it names.

    XLA keeps some values in one buffer (:func:`kernelcast.hlo.buffers.must_share`) and puts copies where
    they would get in each other's way; nothing does so for a schedule that is imposed after copy insertion.
    This runs each computation once in its order, keeps track of what each such buffer holds, and compares
    it with what each read wants. Loop bodies run once: at their end each state element must be in its place,
    so that every later iteration starts as the first did.

    Empty for a module that the compiler made. The order of instructions is taken as the schedule.
    """
    return tuple(_Run(program).run())


class _Run:
    """The contents of the shared buffers during one run of a program.

    A content is a number; equal numbers are the same value.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers: Buffers = must_share(program)
        self.read_only = self._read_only_buffers()
        self.value: dict[Site, int] = {}
        self.content: dict[Site, int] = {}
        self.writer: dict[Site, str] = {}
        self.states: set[int] = set()
        self.found: dict[Hazard, None] = {}
        self.fresh = 0

    def run(self) -> Iterable[Hazard]:
        entry = self.program.entry_computation
        for parameter in entry.parameters:
            for index, _ in parameter.shape.indexed_leaves():
                self.define((entry.name, parameter.name, index), self.new(), None)
        self.execute(entry)
        return self.found

    def _read_only_buffers(self) -> dict[Site, Site]:
        """Buffers that no kernel may write, each with the constant or parameter in it."""
        donated = {(a.parameter, a.parameter_index) for a in self.program.aliases}
        kept: dict[Site, Site] = {}
        for member, buffer in self.buffers.of.items():
            instruction = self.program[member[0]][member[1]]
            is_entry = member[0] == self.program.entry
            if instruction.opcode == "constant" or (
                is_entry
                and instruction.opcode == "parameter"
                and (instruction.parameter_number, member[2]) not in donated
            ):
                kept[buffer] = member
        return kept

    def new(self) -> int:
        self.fresh += 1
        return self.fresh

    def define(self, at: Site, value: int, writer: str | None) -> None:
        """The site holds the value from now on; ``writer`` is None where no code runs for it."""
        self.value[at] = value
        buffer = self.buffers.shared(at)
        if buffer is None:
            return
        self.content[buffer] = value
        if writer is not None:
            self.writer[buffer] = writer

    def flag(self, kind: HazardKind, computation: Computation, name: str, value: Site, writer: str) -> None:
        hazard = Hazard(
            kind=kind,
            computation=computation.name,
            instruction=name,
            value=(value[1], value[2]),
            writer=writer,
        )
        self.found[hazard] = None

    def read(
        self, computation: Computation, reader: str, name: str, index: Index, *, out: bool = False
    ) -> int:
        """The value that a leaf should have; a hazard where its buffer holds another."""
        at = site(computation, name, index)
        buffer = self.buffers.shared(at)
        wanted = self.value.get(at)
        if wanted is None:  # a constant, or something outside what is followed
            wanted = self.new()
            self.define(at, wanted, None)
        if buffer is not None and self.content.get(buffer) != wanted:
            kind = HazardKind.STATE_LATE if wanted in self.states else HazardKind.READ_LATE
            self.flag(
                HazardKind.LIVE_OUT if out else kind, computation, reader, at, self.writer.get(buffer, at[1])
            )
        return wanted

    def execute(self, computation: Computation) -> None:
        for instruction in computation:
            match instruction.opcode:
                case "constant":
                    for index, _ in instruction.shape.indexed_leaves():
                        self.define((computation.name, instruction.name, index), self.new(), None)
                case "while":
                    self.loop(computation, instruction)
                case "conditional":
                    self.branches(computation, instruction)
                case "call" | "async-start" if instruction.called:
                    self.call(computation, instruction)
                case "async-update" | "async-done":
                    pass  # names for what the start made
                case opcode if opcode not in TRANSPARENT:
                    self.kernel(computation, instruction)
                case _:
                    pass
        root = computation.root_instruction
        for index, _ in root.shape.indexed_leaves():
            self.read(computation, root.name, root.name, index, out=True)

    def kernel(self, computation: Computation, kernel: Instruction) -> None:
        reads: list[tuple[int, Index, Site]] = []
        for number, operand in enumerate(kernel.operands):
            for index, _ in computation[operand].shape.indexed_leaves():
                self.read(computation, kernel.name, operand, index)
                reads.append((number, index, site(computation, operand, index)))
        for output, _ in kernel.shape.indexed_leaves():
            at: Site = (computation.name, kernel.name, output)
            buffer = self.buffers.shared(at)
            if buffer is not None:
                if buffer in self.read_only:
                    self.flag(
                        HazardKind.READ_ONLY, computation, kernel.name, self.read_only[buffer], kernel.name
                    )
                for number, index, source in reads:
                    if self.buffers.shared(source) == buffer and not may_overwrite(
                        self.program, kernel, computation, number, index, output
                    ):
                        is_state = self.value[source] in self.states
                        kind = HazardKind.STATE_IN_SAME_KERNEL if is_state else HazardKind.READ_IN_SAME_KERNEL
                        self.flag(kind, computation, kernel.name, source, kernel.name)
            self.define(at, self.new(), kernel.name)

    def enter(
        self, computation: Computation, call: Instruction, operand: str, callee: Computation, n: int
    ) -> None:
        """Hands an operand to parameter ``n`` of a called computation."""
        parameter = callee.parameters[n]
        for index, _ in parameter.shape.indexed_leaves():
            value = self.read(computation, call.name, operand, index)
            self.value[callee.name, parameter.name, index] = value

    def call(self, computation: Computation, call: Instruction) -> None:
        callee = self.program[call.called[0]]
        for number, operand in enumerate(call.operands):
            self.enter(computation, call, operand, callee, number)
        self.execute(callee)
        start = (1,) if call.opcode == "async-start" else ()
        for index, _ in callee.root_instruction.shape.indexed_leaves():
            result = self.value[site(callee, callee.root, index)]
            self.value[computation.name, call.name, (*start, *index)] = result

    def branches(self, computation: Computation, conditional: Instruction) -> None:
        self.read(computation, conditional.name, conditional.operands[0], ())
        before, results, contents = dict(self.content), list[list[int]](), list[dict[Site, int]]()
        leaves = [index for index, _ in conditional.shape.indexed_leaves()]
        for operand, name in zip(conditional.operands[1:], conditional.called, strict=True):
            self.content = dict(before)
            branch = self.program[name]
            self.enter(computation, conditional, operand, branch, 0)
            self.execute(branch)
            results.append([self.value[site(branch, branch.root, index)] for index in leaves])
            contents.append(self.content)
        # A buffer that the branches leave in different states holds neither branch's value for certain.
        merged = dict(contents[0])
        for buffer in {b for content in contents for b in content}:
            if len({content.get(buffer) for content in contents}) > 1:
                merged[buffer] = self.new()
        self.content = merged
        for index, values in zip(leaves, zip(*results, strict=True), strict=True):
            self.define(
                (computation.name, conditional.name, index),
                values[0] if len(set(values)) == 1 else self.new(),
                None,
            )

    def loop(self, computation: Computation, loop: Instruction) -> None:
        body, condition = (self.program[name] for name in loop_computations(loop))
        leaves = [index for index, _ in loop.shape.indexed_leaves()]
        kept = self.unchanged(body)
        for index in leaves:
            value = self.read(computation, loop.name, loop.operands[0], index)
            if index not in kept:
                value = self.new()
                self.states.add(value)
            self.value[condition.name, condition.parameters[0].name, index] = value
            self.define((body.name, body.parameters[0].name, index), value, None)
        self.execute(condition)
        for index in leaves:
            self.read(condition, condition.root, condition.parameters[0].name, index, out=True)
        self.execute(body)
        for index in leaves:
            value = self.value[body.name, body.parameters[0].name, index] if index in kept else self.new()
            self.define((computation.name, loop.name, index), value, None)

    def unchanged(self, body: Computation) -> frozenset[Index]:
        """The state elements that a loop body hands on as they came."""
        return frozenset(
            index
            for index, _ in body.root_instruction.shape.indexed_leaves()
            if self.origin(body, body.root, index) == (0, index)
        )

    def origin(self, computation: Computation, name: str, index: Index) -> tuple[int, Index] | None:
        """The parameter leaf that a value is, through loops, calls and branches that do not change it."""
        while True:
            _, name, index = site(computation, name, index)
            instruction = computation[name]
            match instruction.opcode:
                case "parameter":
                    return instruction.parameter_number or 0, index
                case "while":
                    body = self.program[loop_computations(instruction)[0]]
                    if self.origin(body, body.root, index) != (0, index):
                        return None
                    name = instruction.operands[0]
                case "call":
                    callee = self.program[instruction.called[0]]
                    inside = self.origin(callee, callee.root, index)
                    if inside is None:
                        return None
                    name, index = instruction.operands[inside[0]], inside[1]
                case "conditional":
                    sources = {
                        self._through_branch(computation, instruction, number, index)
                        for number in range(len(instruction.called))
                    }
                    return sources.pop() if len(sources) == 1 else None
                case _:
                    return None

    def _through_branch(
        self, computation: Computation, conditional: Instruction, number: int, index: Index
    ) -> tuple[int, Index] | None:
        branch = self.program[conditional.called[number]]
        inside = self.origin(branch, branch.root, index)
        return inside and self.origin(computation, conditional.operands[number + 1], inside[1])
