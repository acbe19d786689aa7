"""What makes HLO valid: a table of rules, each with a name and a check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernelcast.errors import HloError
from kernelcast.hlo import attributes
from kernelcast.hlo.infer import disagreement, infer_shape
from kernelcast.hlo.infer_products import check_window
from kernelcast.hlo.inplace import in_place_pairs
from kernelcast.hlo.opcodes import BINARY, KNOWN, TERNARY, UNARY
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import ELEMENT_BITS, Shape
from kernelcast.hlo.signatures import mismatched_signatures

Check = Callable[[Program, Computation, Instruction], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition on an instruction.

    Attributes:
        name: short, for tables and tests.
        states: the condition, as a sentence.
        check: what is wrong with an instruction, if anything. It may take for granted that the rules before
            it in the table hold, and may raise ``HloError`` instead.
    """

    name: str
    states: str
    check: Check


# (least, most) operands; None: any number. Opcodes that are not listed take what they get.
_ANY = None
_OPERANDS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(UNARY, (1, 1)),
    **dict.fromkeys(BINARY, (2, 2)),
    **dict.fromkeys(TERNARY, (3, 3)),
    "add-dependency": (2, 2), "all-gather": (1, _ANY), "all-reduce": (1, _ANY), "all-to-all": (1, _ANY),
    "batch-norm-grad": (5, 5), "batch-norm-inference": (5, 5), "batch-norm-training": (3, 3),
    "bitcast": (1, 1), "bitcast-convert": (1, 1), "broadcast": (1, 1), "cholesky": (1, 1),
    "collective-broadcast": (1, _ANY), "collective-permute": (1, _ANY), "concatenate": (1, _ANY),
    "conditional": (2, _ANY), "constant": (0, 0), "convolution": (2, 2), "copy": (1, 1),
    "copy-done": (1, 1), "copy-start": (1, 1), "domain": (1, 1), "dot": (2, _ANY),
    "dynamic-reshape": (1, _ANY), "dynamic-slice": (1, _ANY), "dynamic-update-slice": (2, _ANY),
    "fft": (1, 1), "gather": (2, 2), "get-dimension-size": (1, 1), "get-tuple-element": (1, 1),
    "infeed": (0, 1), "iota": (0, 0), "map": (1, _ANY), "opt-barrier": (1, 1), "outfeed": (1, 2),
    "pad": (2, 2), "parameter": (0, 0), "partition-id": (0, 0), "ragged-all-to-all": (6, 6),
    "ragged-dot": (3, 3), "recv": (1, 1), "recv-done": (1, 1), "reduce": (2, _ANY),
    "reduce-scatter": (1, _ANY), "reduce-window": (2, _ANY), "replica-id": (0, 0), "reshape": (1, 1),
    "reverse": (1, 1), "rng-bit-generator": (1, 1), "rng-get-and-update-state": (0, 0),
    "scatter": (3, _ANY), "select-and-scatter": (3, 3), "send": (2, 2), "send-done": (1, 1),
    "set-dimension-size": (2, 2), "slice": (1, 1), "sort": (1, _ANY), "stochastic-convert": (2, 2),
    "topk": (1, 1), "transpose": (1, 1), "triangular-solve": (2, 2), "while": (1, 1),
}  # fmt: skip

_NEEDS: dict[str, tuple[str, ...]] = {
    "async-start": (), "call": ("to_apply",), "custom-call": ("custom_call_target",), "fusion": ("calls",),
    "map": ("to_apply",), "reduce": ("to_apply",), "reduce-window": ("to_apply",), "scatter": ("to_apply",),
    "select-and-scatter": ("select", "scatter"), "while": ("body", "condition"),
}  # fmt: skip


def _opcode(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    if instruction.opcode not in KNOWN and _ASYNCHRONOUS.sub("", instruction.opcode) not in KNOWN:
        yield f"unknown opcode {instruction.opcode}"


def _shape(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    for leaf in instruction.shape.leaves():
        if leaf.element_type not in ELEMENT_BITS:
            yield f"unknown element type {leaf.element_type}"
        elif any(extent < 0 and d not in leaf.dynamic for d, extent in enumerate(leaf.dimensions)):
            yield f"negative extent in {leaf.without_layout()}"
        elif not leaf.is_array and leaf.dimensions:
            yield f"a {leaf.element_type} has no dimensions, got {leaf.without_layout()}"
        elif leaf.is_array and abs(leaf.byte_size) >= 1 << 63:
            yield f"{leaf.without_layout()} has more bytes than 64-bit integers count"
        elif leaf.layout is not None and _BAD_LAYOUT.search(leaf.layout.suffix):
            yield f"tiles of a layout must not be negative, nor its padding 0: {leaf}"
        elif leaf.layout is not None and not _is_order(leaf):
            order = list(leaf.layout.minor_to_major)
            yield f"the layout of {leaf.without_layout()} must order its {leaf.rank} dimensions, got {order}"


def _is_order(shape: Shape) -> bool:
    return sorted(shape.minor_to_major) == list(range(shape.rank))


def _operand_count(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    opcode, count = instruction.opcode, len(instruction.operands)
    if opcode not in _OPERANDS and opcode.endswith("-start"):
        opcode = opcode.removesuffix("-start")  # the asynchronous form takes what the plain one takes
    elif opcode not in _OPERANDS and opcode.endswith(("-done", "-update")):
        opcode = "copy-done"
    least, most = _OPERANDS.get(opcode, (0, None))
    if count < least or (most is not None and count > most):
        wanted = (
            str(least) if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        )
        yield f"{instruction.opcode} takes {wanted} operands, got {count}"
    if opcode in ("reduce", "reduce-window") and count % 2:
        yield f"{opcode} takes as many start values as arrays, got {count} operands"
    if opcode == "scatter" and count % 2 == 0:
        yield f"scatter takes n operands, indices and n updates, got {count} operands"


def _needed(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    for key in _NEEDS.get(instruction.opcode, ()):
        if instruction.attribute(key) is None:
            yield f"{instruction.opcode} needs {key}="
    branches = len(instruction.called)
    if instruction.opcode == "conditional" and branches != len(instruction.operands) - 1:
        yield f"conditional has {branches} branches for {len(instruction.operands) - 1} branch operands"


def _inferred(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    implied = infer_shape(computation, instruction)
    wrong = disagreement(implied, instruction.shape) if implied is not None else None
    if wrong is not None:
        yield f"shape of {instruction.opcode}: {wrong}"


def _window(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    if instruction.attribute("window") is not None:
        check_window(attributes.window(instruction))
    yield from ()


def _literal(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    shape, text = instruction.shape, instruction.literal
    if instruction.opcode != "constant" or text is None:
        return
    types = {leaf.element_type for leaf in shape.leaves()}
    if types & {"token", "opaque"}:
        yield f"a constant cannot be of type {shape.without_layout()}"
    elif "pred" not in types and _TRUTH.search(text):
        yield f"constant of {shape.without_layout()} with a truth value; write a number"
    if instruction.is_elided or not shape.is_array:
        return
    # Counting separators is enough to catch a literal of another size; its values are read on demand.
    count = text.count("(") if shape.element_type in ("c64", "c128") else text.count(",") + 1
    if shape.rank and not any(character.isalnum() for character in text):
        count = 0
    is_splat = "{" not in text  # one value for all elements
    if shape.rank and count != (1 if is_splat else shape.element_count):
        yield f"constant of {shape.without_layout()} with {count} values instead of {shape.element_count}"
    elif not shape.rank and shape.element_type not in ("c64", "c128") and count != 1:
        yield f"scalar constant with {count} values"


_TRUTH = re.compile(r"\b(?:true|false)\b")
_BAD_LAYOUT = re.compile(r"T[^TL]*-\d|L\(0\)")
_DEVICES = re.compile(r"devices=\[(?P<tiles>[-\d,\s]+)\](?P<list>[\d,\s]*)")
_ASYNCHRONOUS = re.compile(r"-(start|update|done)$")
_MESH = re.compile(r"mesh\[(?P<axes>[^\]]*)\]\s*(?:,\s*device_ids=\S+)?\s*\{(?P<used>[^{}]*)\}")
_IOTA = re.compile(r"\[(?P<groups>[\d,\s]+)\]\s*<=\s*\[(?P<devices>[\d,\s]+)\]")
_AXIS = re.compile(r"'([^']*)'")


def _replica_groups(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    text = instruction.attribute("replica_groups")
    if text is None:
        return
    mesh, iota = _MESH.search(text), _IOTA.search(text)
    if mesh is not None:
        axes = _AXIS.findall(mesh["axes"])
        for used in _AXIS.findall(mesh["used"]):
            if used not in axes:
                yield f"replica_groups uses axis '{used}' of a mesh with axes {', '.join(axes)}"
    elif iota is not None:
        groups, devices = (_product(iota[part]) for part in ("groups", "devices"))
        if groups != devices:
            yield f"replica_groups arranges {devices} devices as {iota['groups']}, which holds {groups}"


def _sharding(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    """XLA writes a list of devices into an array of the tiles' product without looking at its length."""
    for devices in _DEVICES.finditer(instruction.attribute("sharding") or ""):
        tiles, listed = devices["tiles"], devices["list"].strip(" ,")
        if "-" in tiles:
            yield f"sharding with a negative number of tiles: [{tiles}]"
        elif listed and len(listed.split(",")) != _product(tiles):
            count = len(listed.split(","))
            yield f"sharding lists {count} devices for [{tiles}], which holds {_product(tiles)}"


def _product(text: str) -> int:
    product = 1
    for part in text.split(","):
        product *= int(part)
    return product


def _output_aliases(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    if instruction.attribute("output_to_operand_aliasing") is None:
        return
    for pair in in_place_pairs(program, instruction):
        if pair.operand >= len(instruction.operands):
            yield f"output_to_operand_aliasing names operand {pair.operand} of {len(instruction.operands)}"
        elif not (
            has_place(instruction.shape, pair.output)
            and has_place(computation[instruction.operands[pair.operand]].shape, pair.operand_index)
        ):
            yield f"output_to_operand_aliasing names a place that output or operand {pair.operand} lacks"


def has_place(shape: Shape, index: tuple[int, ...]) -> bool:
    """Whether a shape has a part at this place."""
    try:
        shape.at(index)
    except IndexError:
        return False
    return True


RULES: tuple[Rule, ...] = (
    Rule("opcode", "The opcode is one that XLA knows.", _opcode),
    Rule("shape", "Element types are known, extents not negative, layouts permutations.", _shape),
    Rule("operand-count", "Each opcode has the operands that it takes.", _operand_count),
    Rule("attributes", "Attributes without which an opcode has no meaning are there.", _needed),
    Rule("window", "Windows have positive sizes, strides and dilations.", _window),
    Rule("signature", "Called computations fit operands and results.", mismatched_signatures),
    Rule("inference", "A shape is the one that operands and attributes imply.", _inferred),
    Rule("literal", "A constant has as many values as its shape.", _literal),
    Rule("replica-groups", "Replica groups name the devices that they arrange.", _replica_groups),
    Rule("sharding", "A sharding lists as many devices as it has tiles.", _sharding),
    Rule("output-aliases", "Declared aliases name existing places.", _output_aliases),
)


def broken_rules(program: Program, computation: Computation, instruction: Instruction) -> Iterator[str]:
    """What is wrong with an instruction by the first rule that it breaks."""
    for rule in RULES:
        try:
            found = list(rule.check(program, computation, instruction))
        except HloError as error:
            found = [error.message]
        if found:
            yield from found
            return
