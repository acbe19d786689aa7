"""From a final, scheduled module to its kernels: every launched instruction as a closed sub-program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelcast.core.kernel import Kernel, Kind
from kernelcast.errors import HloError
from kernelcast.fusion.inputs import input_specs
from kernelcast.hlo.inplace import in_place_pairs
from kernelcast.hlo.opcodes import NOT_LAUNCHED
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import Shape
from kernelcast.hlo.text import parse
from kernelcast.hlo.values import resolve

_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-",
    "send",
    "recv",
    "ragged-",
)
_KIND_OF_OPCODE = {
    "convolution": Kind.CONVOLUTION,
    "dot": Kind.DOT,
    "scatter": Kind.SCATTER,
    "select-and-scatter": Kind.SCATTER,
    "gather": Kind.GATHER,
    "sort": Kind.SORT,
    "fft": Kind.FFT,
    "rng": Kind.RNG,
    "rng-bit-generator": Kind.RNG,
    "rng-get-and-update-state": Kind.RNG,
    "custom-call": Kind.CUSTOM_CALL,
    "reduce": Kind.REDUCE,
    "reduce-window": Kind.REDUCE,
}
# Which of several opcodes in one fusion names its kind: what dominates the code that is made, first.
_PRECEDENCE = (Kind.CONVOLUTION, Kind.DOT, Kind.SCATTER, Kind.RNG, Kind.REDUCE, Kind.GATHER)
_MOVES_ONLY = frozenset({"copy", "transpose", "bitcast", "reshape"})
_OPAQUE_OPCODES = frozenset({"cholesky", "triangular-solve", "infeed", "outfeed", "topk"})


def kernels_of(program: Program) -> tuple[tuple[str, str, Kernel], ...]:
    """(computation, instruction, kernel) of every launched instruction, in order of the text.

    Launched is every instruction outside fused and reducer computations except data, views and control flow;
    copies, library calls and sorts are kernels too.

    Args:
        program: a final module, e.g. what ``apply`` makes or what a compiler dumped after its last pass.

    >>> program = parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[4] parameter(0)  y = f32[4] tanh(x)  ROOT t = (f32[4]) tuple(y) }''')
    >>> [(computation, name, str(kernel.kind)) for computation, name, kernel in kernels_of(program)]
    [('e', 'y', 'loop')]
    """
    return tuple(
        (computation.name, instruction.name, kernel_of(program, computation, instruction))
        for computation, instruction in launched(program)
    )


def launched(program: Program) -> Iterator[tuple[Computation, Instruction]]:
    """Every instruction that is a kernel, with the computation that launches it."""
    for computation in program.scheduled_computations():
        for instruction in computation:
            if instruction.opcode not in NOT_LAUNCHED:
                yield computation, instruction


def kernel_of(program: Program, computation: Computation, instruction: Instruction) -> Kernel:
    """One launched instruction as a kernel.

    Its parameters are the distinct operands in order; scalar constants go inside, array constants become
    parameters, a tuple operand is built from one parameter per element.
    """
    operands: dict[str, None] = dict.fromkeys(instruction.operands)
    body: list[Instruction] = []
    parameters: dict[str, int] = {}
    for name in operands:
        operand = computation[name]
        if operand.opcode == "constant" and operand.shape.rank == 0 and not operand.is_elided:
            body.append(operand.with_attribute("control-predecessors", None))
        else:
            _append_argument(body, parameters, name, operand.shape)
    root = instruction.with_attribute("control-predecessors", None)
    callees = _reachable(program, instruction)
    entry_name = f"{instruction.name}_kernel"
    while any(callee.name == entry_name for callee in callees):
        entry_name += "_"
    entry = Computation(name=entry_name, instructions=(*body, root), root=root.name)
    closed = Program(name=instruction.name, computations=(*callees, entry), entry=entry_name)
    aliases = tuple(_aliases(program, instruction, parameters))
    return Kernel(
        program=closed, kind=kind_of(program, instruction), aliases=aliases, inputs=input_specs(closed)
    )


def kernel_from_text(text: str) -> Kernel:
    """The kernel of a stored canonical text: its kind and inputs are worked out, its aliases read.

    Raises:
        HloError: the text is not HLO, or its entry does not launch exactly one instruction.
    """
    program = parse(text)
    entry = program.entry_computation
    found = [i for i in entry if i.opcode not in NOT_LAUNCHED]
    if len(found) != 1 or found[0].name != entry.root:
        raise HloError(
            f"a kernel launches exactly one instruction, its root; {entry.name} launches "
            f"{', '.join(f'%{i.name}' for i in found[:5]) or 'none'}: extract kernels with kernels_of"
        )
    aliases = tuple(
        (alias.output_index[0] if alias.output_index else 0, alias.parameter) for alias in program.aliases
    )
    return Kernel(
        program=program, kind=kind_of(program, found[0]), aliases=aliases, inputs=input_specs(program)
    )


def kind_of(program: Program, instruction: Instruction) -> Kind:
    """The family of code that a launched instruction becomes."""
    if instruction.opcode == "fusion":
        if instruction.attribute("kind") == "kCustom":
            return Kind.LIBRARY
        return _kind_of_fusion(program, instruction)
    if instruction.opcode == "dynamic-update-slice":
        return Kind.IN_PLACE
    if instruction.opcode.startswith(_COLLECTIVES):
        return Kind.COLLECTIVE
    if instruction.opcode in _MOVES_ONLY or instruction.opcode.startswith("copy-"):
        return Kind.COPY
    if instruction.opcode in _OPAQUE_OPCODES:
        return Kind.OTHER
    return _KIND_OF_OPCODE.get(instruction.opcode, Kind.LOOP)


def _kind_of_fusion(program: Program, fusion: Instruction) -> Kind:
    fused = program[fusion.called[0]]
    opcodes = {i.opcode for callee in _reachable(program, fusion) for i in callee} - {"parameter", "constant"}
    kinds = {_KIND_OF_OPCODE[opcode] for opcode in opcodes if opcode in _KIND_OF_OPCODE}
    outputs = (
        resolve(fused, fused.root, index) for index, _ in fused.root_instruction.shape.indexed_leaves()
    )
    if any(fused[name].opcode == "dynamic-update-slice" for name, _ in outputs):
        return Kind.IN_PLACE
    found = next((kind for kind in _PRECEDENCE if kind in kinds), None)
    if found is not None:
        return found
    return Kind.COPY if opcodes <= _MOVES_ONLY else Kind.LOOP


def _aliases(
    program: Program, instruction: Instruction, parameters: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    """(output number, parameter number) pairs of one buffer; outputs inside inner tuples are left out."""
    for pair in in_place_pairs(program, instruction):
        parts = (instruction.operands[pair.operand], *map(str, pair.operand_index))
        parameter = parameters.get(".".join(parts))
        if parameter is not None and len(pair.output) <= 1:
            yield (pair.output[0] if pair.output else 0), parameter


def _append_argument(body: list[Instruction], parameters: dict[str, int], name: str, shape: Shape) -> None:
    """Adds the parameters that give a value of the shape under the name; a tuple is put together."""
    if shape.is_tuple:
        elements = tuple(f"{name}.{index}" for index in range(len(shape.elements)))
        for element, element_shape in zip(elements, shape.elements, strict=True):
            _append_argument(body, parameters, element, element_shape)
        body.append(Instruction(name=name, opcode="tuple", shape=shape, operands=elements))
    elif shape.element_type == "token":
        body.append(Instruction(name=name, opcode="after-all", shape=shape))
    else:
        parameters[name] = len(parameters)
        body.append(
            Instruction(name=name, opcode="parameter", shape=shape, parameter_number=parameters[name])
        )


def _reachable(program: Program, instruction: Instruction) -> tuple[Computation, ...]:
    """The computations that an instruction calls, directly or not, callees before callers."""
    found: dict[str, Computation] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        for inner in program[name]:
            for callee in inner.called:
                visit(callee)
        found[name] = program[name]

    for name in instruction.called:
        visit(name)
    return tuple(found.values())
