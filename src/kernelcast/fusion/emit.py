"""Kernels as instructions: the compiler's own where a kernel is one of its, else a new fusion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kernelcast.core.kernel import Kernel
from kernelcast.fusion.extract import kernel_of
from kernelcast.fusion.graph import DefaultKernel, Node, Scope
from kernelcast.fusion.grouping import Form, KernelGroup, bits, is_default, operands_of
from kernelcast.fusion.nested import nested
from kernelcast.fusion.rules import Rules
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import tuple_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A kernel as it stands in a scheduled computation.

    Attributes:
        instructions: the launched one, then what takes its several results apart.
        operands: node numbers that it reads, constants included.
        computations: the new fused computations, if any, callees first.
    """

    instructions: tuple[Instruction, ...]
    operands: tuple[int, ...]
    computations: tuple[Computation, ...] = ()


def emit(scope: Scope, group: KernelGroup, *, prefix: str, rules: Rules, verbatim: bool = True) -> Emitted:
    """The instructions of one kernel.

    Args:
        scope: that it belongs to.
        group: what it computes.
        prefix: of the names of new fused computations.
        verbatim: emit a kernel that the compiler's module has exactly as it stands there: name, operand
            order, body with its duplicates, attributes. Its library calls always are.
        rules: of the target: how it wants new kernels.
    """
    root = group.roots[0]
    if group.form is Form.WHOLE:
        return _as_it_is(scope, scope.nodes[root].instruction, scope.nodes[root].operands, root)
    if group.form is Form.LIBRARY or (verbatim and is_default(scope, group)):
        kernel = scope.kernels[root]
        if kernel.parts:
            return _with_parts(scope, kernel)
        return _as_it_is(scope, kernel.instruction, kernel.operands, root)
    if group.form is Form.BARE:
        return _as_it_is(scope, scope.nodes[root].instruction, scope.nodes[root].operands, root)
    if group.form is Form.OFFLOADED and rules.library is not None:
        config = rules.library.backend_config
        return _fusion(scope, group, prefix, ("kind", "kCustom"), ("backend_config", config))
    emitted = _fusion(scope, group, prefix, ("kind", "kLoop"))
    return _with_nested_inputs(emitted, prefix) if rules.nests_inputs else emitted


def result_name(scope: Scope, number: int) -> str:
    """What a value is called when scheduled: as the compiler calls it, else after its operation."""
    if number in scope.kernels:
        return scope.kernels[number].name_of(number)
    node = scope.nodes[number]
    is_original = node.rule is None and not node.is_inline_constant
    return node.instruction.name if is_original else f"{node.instruction.name}.out"


def lone_kernel(original: Program, scope: Scope, group: KernelGroup, *, prefix: str, rules: Rules) -> Kernel:
    """One kernel of a plan as a closed sub-program.

    Args:
        original: holds the computations that it may call.
        prefix: as in ``emit``.
        rules: as in ``emit``.
    """
    emitted = emit(scope, group, prefix=prefix, rules=rules)
    launched = replace(emitted.instructions[0], attributes=_without_control(emitted.instructions[0]))
    arguments = [
        scope.nodes[number].instruction
        if scope.nodes[number].is_constant
        else Instruction(name="", opcode="parameter", shape=scope.nodes[number].instruction.shape)
        for number in dict.fromkeys(emitted.operands)
    ]
    named = [
        replace(
            argument,
            name=result_name(scope, number),
            parameter_number=index if argument.opcode == "parameter" else None,
        )
        for index, (number, argument) in enumerate(
            zip(dict.fromkeys(emitted.operands), arguments, strict=True)
        )
    ]
    computation = Computation(
        name=scope.computation.name, instructions=(*named, launched), root=launched.name
    )
    original = replace(original, computations=(*original.computations, *emitted.computations))
    return kernel_of(original, computation, launched)


def _without_control(instruction: Instruction) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in instruction.attributes if key != "control-predecessors")


def _as_it_is(scope: Scope, instruction: Instruction, operands: tuple[int, ...], root: int) -> Emitted:
    renamed = replace(
        instruction,
        name=result_name(scope, root),
        operands=tuple(result_name(scope, operand) for operand in operands),
    )
    return Emitted(instructions=(renamed,), operands=operands)


def _with_parts(scope: Scope, kernel: DefaultKernel) -> Emitted:
    """The compiler's own kernel of several results, as it stands."""
    launched = replace(
        kernel.instruction, operands=tuple(result_name(scope, operand) for operand in kernel.operands)
    )
    return Emitted(instructions=(launched, *(part for _, part in kernel.parts)), operands=kernel.operands)


def _with_nested_inputs(emitted: Emitted, prefix: str) -> Emitted:
    """A fusion around a dot or convolution in the form in which a backend takes it."""
    fusion, *parts = emitted.instructions
    computations = nested(emitted.computations[-1], prefix)
    if computations is None:
        return emitted
    return replace(
        emitted,
        instructions=(fusion.with_attribute("kind", "kOutput"), *parts),
        computations=computations,
    )


def _fusion(scope: Scope, group: KernelGroup, prefix: str, *attributes: tuple[str, str]) -> Emitted:
    """A new fusion with these attributes; scalar constants stand inside."""
    name = result_name(scope, group.roots[0])
    outside = operands_of(scope, group)
    members = list(bits(group.members))
    constants = dict.fromkeys(
        o for m in members for o in scope.nodes[m].operands if scope.nodes[o].is_constant
    )
    outside += [number for number in constants if not _stands_inside(scope.nodes[number])]
    parameter = {
        number: Instruction(
            name=f"operand{index}.of.{name}",  # not .in., which ends the names of members
            opcode="parameter",
            shape=scope.nodes[number].instruction.shape,
            parameter_number=index,
        )
        for index, number in enumerate(outside)
    }
    inside = [*(number for number in constants if number not in parameter), *members]
    inner = {number: f"{scope.nodes[number].instruction.name}.in.{name}" for number in inside}
    local = {
        number: inner[number] if number in inner else parameter[number].name for number in (*outside, *inner)
    }
    body = [
        *parameter.values(),
        *(
            replace(scope.nodes[number].instruction, name=inner[number])
            for number in constants
            if number not in parameter
        ),
        *(
            replace(
                scope.nodes[member].instruction,
                name=inner[member],
                operands=tuple(local[operand] for operand in scope.nodes[member].operands),
            )
            for member in members
        ),
    ]
    return _launch(scope, group, f"{prefix}{name}", name, tuple(outside), inner, body, attributes)


def _launch(
    scope: Scope,
    group: KernelGroup,
    computation_name: str,
    name: str,
    operands: tuple[int, ...],
    inner: dict[int, str],
    body: Iterable[Instruction],
    kind: Sequence[tuple[str, str]],
) -> Emitted:
    """The fused computation and the instruction that launches it."""
    shapes = [scope.nodes[root].instruction.shape for root in group.roots]
    metadata = scope.nodes[group.roots[0]].instruction.attribute("metadata")
    attributes = [kind[0], ("calls", f"%{computation_name}"), *kind[1:]]
    fusion = Instruction(
        name=name,
        opcode="fusion",
        shape=shapes[0],
        operands=tuple(result_name(scope, number) for number in operands),
        attributes=tuple(attributes + ([("metadata", metadata)] if metadata else [])),
    )
    if len(group.roots) == 1:
        computation = Computation(name=computation_name, instructions=tuple(body), root=inner[group.roots[0]])
        return Emitted(instructions=(fusion,), operands=operands, computations=(computation,))
    together = Instruction(
        name=f"results.of.{name}",
        opcode="tuple",
        shape=tuple_shape(*shapes),
        operands=tuple(inner[root] for root in group.roots),
    )
    computation = Computation(name=computation_name, instructions=(*body, together), root=together.name)
    fusion = replace(fusion, name=f"{name}.results", shape=together.shape)
    parts = tuple(
        Instruction(
            name=result_name(scope, root),
            opcode="get-tuple-element",
            shape=shape,
            operands=(fusion.name,),
            attributes=(("index", str(index)),),
        )
        for index, (root, shape) in enumerate(zip(group.roots, shapes, strict=True))
    )
    return Emitted(instructions=(fusion, *parts), operands=operands, computations=(computation,))


def _stands_inside(constant: Node) -> bool:
    """Scalars always do; an array does where the compiler had it inside, since operands stay operands."""
    return constant.is_inline_constant or (
        constant.instruction.shape.rank == 0 and not constant.instruction.is_elided
    )
