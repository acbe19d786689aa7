"""The text of one executable that times many kernels, each alone.

One ``while`` loop runs a ``conditional`` that has a branch per kernel and an empty one; how often it runs and
which branch it takes are inputs. So one compile serves many kernels, a slope over the number of runs is free
of the cost of a call, and the empty branch gives the cost of an iteration.

The module goes in place of a trivial carrier after XLA has scheduled it, hence no HLO pass touches it:

* a kernel's result is unused; a control edge keeps it,
* nobody inserts copies, so the loop counter, which the loop overwrites, is copied from its constant here,
* line order is the schedule.

Inputs are flat parameters, shared by all kernels that want as many elements of the same type and values; a
``bitcast`` gives each kernel the shape and layout it wants. A buffer that a kernel writes in place is private
to it and goes round the loop, otherwise each run would copy the buffer first (61.9 µs instead of 0.92 µs for
four floats into 400,000).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kernelcast.core.kernel import Kernel
from kernelcast.hlo.format import format_program
from kernelcast.hlo.program import CALLING_ATTRIBUTES, Computation, Instruction, Program
from kernelcast.hlo.shape import Shape, array_shape, tuple_shape
from kernelcast.targets.pjrt.batch_inputs import FlatInput, assign_inputs, carrier

_COUNTER = array_shape("s32", ())
_FLAG = array_shape("pred", ())
_NOTHING = tuple_shape()
# What belongs to the surrounding program and not to the code of a kernel.
_DROPPED_ATTRIBUTES = frozenset(
    {"metadata", "sharding", "frontend_attributes", "origin", "control-predecessors"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchText:
    """What the compiler needs.

    Attributes:
        carrier: StableHLO of the same signature: (runs, branch, inputs…) → how often the loop ran.
        text: the scheduled HLO module that replaces it.
        inputs: the arrays after the two numbers.
        kernels: number of kernels; branch ``kernels`` is the empty one.
    """

    carrier: str
    text: str
    inputs: tuple[FlatInput, ...]
    kernels: int

    @property
    def input_bytes(self) -> int:
        return sum(i.shape.byte_size for i in self.inputs)


def batch_text(kernels: Sequence[Kernel]) -> BatchText:
    """The module that times the given kernels, which ``unsupported`` has let pass."""
    inputs, used = assign_inputs(kernels)
    written = [i for i, flat in enumerate(inputs) if flat.owner is not None]
    computations: list[Computation] = []
    for number, (kernel, own) in enumerate(zip(kernels, used, strict=True)):
        computations.extend(_callees(kernel, number))
        computations.append(_branch(kernel, number, own, inputs, written))
    computations.append(_empty_branch(inputs, written))
    state = tuple_shape(_COUNTER, _COUNTER, _COUNTER, *(flat.shape for flat in inputs))
    computations.append(_condition(state))
    computations.append(_body(state, inputs, used, written))
    computations.append(_entry(state, inputs))
    program = Program(
        name="kernelcast_batch",
        computations=tuple(computations),
        entry="batch",
        attributes=(("is_scheduled", "true"),),
    )
    return BatchText(
        carrier=carrier(inputs), text=format_program(program), inputs=tuple(inputs), kernels=len(kernels)
    )


def _callees(kernel: Kernel, number: int) -> Iterable[Computation]:
    for computation in kernel.program.computations:
        if computation.name != kernel.program.entry:
            yield replace(
                computation,
                name=f"k{number}.{computation.name}",
                instructions=tuple(_adopted(i, number) for i in computation),
            )


def _adopted(instruction: Instruction, number: int) -> Instruction:
    """The instruction as it stands in the batch: its callees renamed, its program's marks dropped."""
    attributes: list[tuple[str, str]] = []
    for key, value in instruction.attributes:
        if key in _DROPPED_ATTRIBUTES:
            continue
        if key in CALLING_ATTRIBUTES:
            names = ", ".join(
                f"%k{number}.{part.strip().lstrip('%')}"
                for part in value.strip("{}").split(",")
                if part.strip()
            )
            value = f"{{{names}}}" if value.startswith("{") else names
        attributes.append((key, value))
    return replace(instruction, attributes=tuple(attributes))


def _branch(
    kernel: Kernel, number: int, own: Sequence[int], inputs: Sequence[FlatInput], written: Sequence[int]
) -> Computation:
    """Runs one kernel; gives all written buffers back, its own as the kernel left them."""
    entry = kernel.program.entry_computation
    given = _arguments(own, written)
    argument = Instruction(
        name="batch.given",
        opcode="parameter",
        shape=tuple_shape(*(inputs[i].shape for i in given)),
        parameter_number=0,
    )
    elements = [_element(f"batch.input{i}", inputs[i].shape, "batch.given", at) for at, i in enumerate(given)]
    flats = {parameter.name: inputs[i] for parameter, i in zip(entry.parameters, own, strict=True)}
    body = [
        Instruction(
            name=i.name,
            opcode="bitcast",
            shape=i.shape,
            operands=(f"batch.input{own[i.parameter_number or 0]}",),
        )
        if i.name in flats
        else _adopted(i, number)
        for i in entry
    ]
    results: dict[int, str] = {i: f"batch.input{i}" for i in written}
    ends: list[Instruction] = []
    for output, parameter in kernel.aliases:
        flat = own[parameter]
        source = entry.root
        if entry.root_instruction.shape.is_tuple:
            shape = entry.root_instruction.shape.elements[output]
            ends.append(_element(f"batch.output{output}", shape, entry.root, output))
            source = f"batch.output{output}"
        results[flat] = f"batch.written{flat}"
        ends.append(
            Instruction(
                name=f"batch.written{flat}", opcode="bitcast", shape=inputs[flat].shape, operands=(source,)
            )
        )
    root = Instruction(
        name="batch.done",
        opcode="tuple",
        shape=tuple_shape(*(inputs[i].shape for i in written)),
        operands=tuple(results.values()),
        attributes=(("control-predecessors", f"{{%{entry.root}}}"),),
    )
    return Computation(
        name=f"k{number}", instructions=(argument, *elements, *body, *ends, root), root=root.name
    )


def _empty_branch(inputs: Sequence[FlatInput], written: Sequence[int]) -> Computation:
    shape = tuple_shape(*(inputs[i].shape for i in written))
    given = Instruction(name="batch.given", opcode="parameter", shape=shape, parameter_number=0)
    elements = [_element(f"batch.input{i}", inputs[i].shape, given.name, at) for at, i in enumerate(written)]
    root = Instruction(
        name="batch.done", opcode="tuple", shape=shape, operands=tuple(e.name for e in elements)
    )
    return Computation(name="k.empty", instructions=(given, *elements, root), root=root.name)


def _condition(state: Shape) -> Computation:
    given = Instruction(name="state", opcode="parameter", shape=state, parameter_number=0)
    done = _element("done", _COUNTER, given.name, 0)
    runs = _element("runs", _COUNTER, given.name, 1)
    more = Instruction(
        name="more",
        opcode="compare",
        shape=_FLAG,
        operands=(done.name, runs.name),
        attributes=(("direction", "LT"),),
    )
    return Computation(name="more_runs", instructions=(given, done, runs, more), root=more.name)


def _body(
    state: Shape, inputs: Sequence[FlatInput], used: Sequence[Sequence[int]], written: Sequence[int]
) -> Computation:
    elements = [_element(f"state{at}", shape, "state", at) for at, shape in enumerate(state.elements)]
    arguments: list[Instruction] = []
    for number, own in enumerate((*used, ())):
        given = _arguments(own, written)
        arguments.append(
            Instruction(
                name=f"given{number}",
                opcode="tuple",
                shape=tuple_shape(*(inputs[i].shape for i in given)),
                operands=tuple(f"state{i + 3}" for i in given),
            )
        )
    branches = ", ".join([*(f"%k{number}" for number in range(len(used))), "%k.empty"])
    choice = Instruction(
        name="kernel",
        opcode="conditional",
        shape=tuple_shape(*(inputs[i].shape for i in written)),
        operands=("state2", *(a.name for a in arguments)),
        attributes=(("branch_computations", f"{{{branches}}}"),),
    )
    results = [_element(f"written{i}", inputs[i].shape, choice.name, at) for at, i in enumerate(written)]
    one = Instruction(name="one", opcode="constant", shape=_COUNTER, literal="1")
    counted = Instruction(
        name="counted",
        opcode="add",
        shape=_COUNTER,
        operands=("state0", one.name),
        attributes=(("control-predecessors", f"{{%{choice.name}}}"),),
    )
    passed = [f"written{i}" if i in written else f"state{i + 3}" for i in range(len(inputs))]
    root = Instruction(
        name="next", opcode="tuple", shape=state, operands=(counted.name, "state1", "state2", *passed)
    )
    given_state = Instruction(name="state", opcode="parameter", shape=state, parameter_number=0)
    instructions = (given_state, *elements, *arguments, choice, *results, one, counted, root)
    return Computation(name="run_once", instructions=instructions, root=root.name)


def _entry(state: Shape, inputs: Sequence[FlatInput]) -> Computation:
    numbers = [
        Instruction(name=name, opcode="parameter", shape=_COUNTER, parameter_number=at)
        for at, name in enumerate(("runs", "branch"))
    ]
    arrays = [
        Instruction(name=f"input{i}", opcode="parameter", shape=flat.shape, parameter_number=i + 2)
        for i, flat in enumerate(inputs)
    ]
    zero = Instruction(name="zero", opcode="constant", shape=_COUNTER, literal="0")
    start = Instruction(name="start", opcode="copy", shape=_COUNTER, operands=(zero.name,))
    copies = [
        Instruction(name=f"private{i}", opcode="copy", shape=flat.shape, operands=(f"input{i}",))
        for i, flat in enumerate(inputs)
        if flat.owner is not None
    ]
    passed = [f"private{i}" if flat.owner is not None else f"input{i}" for i, flat in enumerate(inputs)]
    first = Instruction(
        name="first", opcode="tuple", shape=state, operands=(start.name, "runs", "branch", *passed)
    )
    loop = Instruction(
        name="loop",
        opcode="while",
        shape=state,
        operands=(first.name,),
        attributes=(("condition", "%more_runs"), ("body", "%run_once")),
    )
    ran = _element("ran", _COUNTER, loop.name, 0)
    instructions = (*numbers, *arrays, zero, start, *copies, first, loop, ran)
    return Computation(name="batch", instructions=instructions, root=ran.name)


def _arguments(own: Sequence[int], written: Sequence[int]) -> list[int]:
    """Input numbers that a branch gets: its own, and every written buffer, which it has to give back."""
    return sorted({*own, *written})


def _element(name: str, shape: Shape, source: str, index: int) -> Instruction:
    return Instruction(
        name=name,
        opcode="get-tuple-element",
        shape=shape,
        operands=(source,),
        attributes=(("index", str(index)),),
    )
