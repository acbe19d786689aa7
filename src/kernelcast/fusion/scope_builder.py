"""The nodes of one scheduled computation, its fusions taken apart.

The clones of a producer, one in each kernel that computes it again, become one node: two operations are one
where opcode, shape with layout, attributes, operands and called computations agree, and the compiler fused
the same of their operands. (The last condition keeps clones apart of which one had an operand fused and the
other read it from memory; without it the default would not be a plan. For the same reason a clone stays apart
from a value that its own kernel reads from memory.)

Results of distinct instructions of the module never become one: they are distinct buffers, and a loop may
update both. A result that will be overwritten does not become one with its clones either: what computes the
value itself may do so at any time, what reads that buffer may not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelcast.core.fingerprint import canonical_attributes
from kernelcast.fusion.graph import NO_REGION, DefaultKernel, FusedPair, Node, Region, Scope
from kernelcast.fusion.rules import Rule, Rules
from kernelcast.hlo.attribute_text import integer
from kernelcast.hlo.program import Computation, Instruction, Program


def content_digest(*parts: object) -> str:
    """16 hexadecimal digits that stand for a tuple of texts and numbers."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@dataclass(slots=True)
class _Expansion:
    """What is gathered while one fusion is taken apart."""

    slot: int
    region: int
    reads: frozenset[int | None]
    members: int = 0
    pairs: list[FusedPair] = field(default_factory=list)
    count: int = 0


class ScopeBuilder:
    """Builds the nodes of one scheduled computation."""

    def __init__(
        self,
        program: Program,
        computation: Computation,
        rules: Rules,
        contents: dict[str, str],
        used_names: set[str],
        *,
        scope: int,
        first_region: int,
        path: str,
        overwritten: frozenset[str],
    ) -> None:
        self._program = program
        self._computation = computation
        self._rules = rules
        self._contents = contents
        self._used_names = used_names
        self._own_names = {i.name for i in computation}
        self._scope = scope
        self._first_region = first_region
        self._path = path
        self._overwritten = overwritten
        self._nodes: list[Node] = []
        self._number: dict[str, int] = {}  # of names in the original computation
        self._by_key: dict[object, int] = {}
        self._kernels: dict[int, DefaultKernel] = {}
        self._fused: set[FusedPair] = set()
        self._pinned = _pinned(computation)
        self._parts = _parts(computation)
        self.regions: list[Region] = []
        self.kept_whole: list[tuple[str, str]] = []

    def build(self) -> Scope:
        for slot, instruction in enumerate(self._computation):
            if instruction.name in self._number:
                continue  # one of several results of a fusion that was taken apart
            reason = self._why_whole(instruction) if instruction.opcode == "fusion" else ""
            if instruction.opcode == "fusion" and not reason:
                self._take_apart(instruction, slot)
                continue
            if reason:
                self.kept_whole.append((instruction.name, reason))
            self._number[instruction.name] = self._add_as_it_is(instruction, slot)
        return Scope(
            computation=self._computation,
            nodes=tuple(self._nodes),
            root=self._number[self._computation.root],
            kernels=self._kernels,
            fused=frozenset(self._fused),
            path=self._path,
        )

    def _why_whole(self, fusion: Instruction) -> str:
        """Why a fusion is not taken apart; empty where it is."""
        if fusion.name in self._pinned:
            return "control edges hold it in its place"
        fused = self._program[fusion.called[0]]
        if _has_several_results(fused) and not (self._rules.several_results and self._are_taken_out(fusion)):
            return "it has several results"
        kind = fusion.attribute("kind")
        if kind not in self._rules.kinds and not self._is_library(fusion):
            return f"kind={kind} is not generated loops"
        return self._illegal_member(fused)

    def _are_taken_out(self, fusion: Instruction) -> bool:
        """Whether each result of a fusion with several is computed there, anew, and read by itself."""
        fused = self._program[fusion.called[0]]
        results = [fused[name].opcode for name in fused.root_instruction.operands]
        parts = self._parts.get(fusion.name, ())
        readers = [i for i in self._computation if fusion.name in i.operands]
        return (
            fusion.name != self._computation.root
            and len(parts) == len(readers)
            and not any(part.name in self._pinned for part in parts)
            and not {"parameter", "constant", "fusion"} & set(results)
            and all(i.opcode != "dynamic-update-slice" for i in fused)
        )

    def _is_library(self, fusion: Instruction) -> bool:
        config = fusion.attribute("backend_config") or ""
        return fusion.attribute("kind") == "kCustom" and any(
            f'"{kind}"' in config for kind in self._rules.library_kinds
        )

    def _illegal_member(self, fused: Computation, *, is_whole_kernel: bool = True) -> str:
        """Why the rules do not allow a member where it stands; empty where they allow all.

        Args:
            fused: the computation of a fusion.
            is_whole_kernel: whether its root is the result of the kernel; else it is a producer too.
        """
        if fused.root_instruction.opcode in ("parameter", "constant"):
            return "it computes nothing"
        is_several = is_whole_kernel and _has_several_results(fused)
        results = fused.root_instruction.operands if is_several else (fused.root,)
        for instruction in fused:
            is_result = is_whole_kernel and instruction.name in results
            if instruction.opcode in ("parameter", "constant") or (
                is_several and instruction.name == fused.root
            ):
                continue
            if instruction.opcode == "fusion":
                if instruction.attribute("kind") not in self._rules.kinds:
                    return f"%{instruction.name} inside it is no generated loop"
                nested = self._program[instruction.called[0]]
                reason = self._illegal_member(nested, is_whole_kernel=is_result)
                if reason:
                    return reason
                continue
            rule = self._rules.rule(instruction, [fused[operand].shape for operand in instruction.operands])
            what = f"%{instruction.name} ({instruction.opcode})"
            if rule is None:
                return f"no rule allows {what} in a fusion"
            if is_result and not rule.root:
                return f"no rule allows {what} as the result"
            if not is_result and not (rule.producer and instruction.shape.is_array):
                return f"no rule allows {what} as a producer"
        return ""

    def _add_as_it_is(self, instruction: Instruction, slot: int) -> int:
        """A node for an instruction of the module itself. It never becomes one with another of them."""
        operands = tuple(self._number[operand] for operand in instruction.operands)
        renamed = replace(instruction, operands=tuple(self._name(operand) for operand in operands))
        rule = self._rule_of(instruction, operands)
        digest = self._value(instruction, operands)
        if rule is None:
            if instruction.opcode not in _PURE_DATA:
                digest = content_digest(digest, self._ordinal(digest))
            return self._append(
                Node(
                    instruction=renamed,
                    operands=operands,
                    after=tuple(self._number[name] for name in instruction.control_predecessors),
                    rule=None,
                    value=digest,
                    slot=(slot, _LAST),
                )
            )
        inside = (False,) * len(operands)
        number = self._node(instruction, operands, inside, slot=(slot, _LAST), result_of=instruction.name)
        self._kernels[number] = DefaultKernel(instruction=instruction, operands=operands, members=1 << number)
        return number

    def _rule_of(self, instruction: Instruction, operands: tuple[int, ...]) -> Rule | None:
        if instruction.name in self._pinned:
            return None
        shapes = [self._nodes[operand].instruction.shape for operand in operands]
        if instruction.opcode == "copy" and shapes[0] == instruction.shape:
            return None  # put there by copy insertion to keep two buffers apart: never fused
        return self._rules.rule(instruction, shapes)

    def _take_apart(self, fusion: Instruction, slot: int) -> None:
        """Nodes for the operations of a fusion."""
        outer = tuple(self._number[operand] for operand in fusion.operands)
        region = self._first_region + len(self.regions) if self._is_library(fusion) else NO_REGION
        expansion = _Expansion(slot=slot, region=region, reads=frozenset(outer))
        fused = self._program[fusion.called[0]]
        parts = self._parts.get(fusion.name, ()) if _has_several_results(fused) else ()
        # Of the module's instructions for one result, the last names it.
        results = {_taken_from(fused, part): part.name for part in parts} or {fused.root: fusion.name}
        local = self._expand(fused, [(number, False) for number in outer], expansion, results=results)
        for name, result in results.items():
            self._number[result] = local[name][0]
        for part in parts:
            self._number[part.name] = local[_taken_from(fused, part)][0]
        named = tuple((local[name][0], self._computation[result]) for name, result in results.items())
        kernel = DefaultKernel(
            instruction=fusion,
            operands=outer,
            members=expansion.members,
            region=region,
            parts=named if parts else (),
        )
        self._kernels.update(dict.fromkeys((number for number, _ in named), kernel))
        self._fused.update(expansion.pairs)
        if region != NO_REGION:
            self.regions.append(Region(scope=self._scope, root=named[0][0], members=expansion.members))

    def _expand(
        self,
        fused: Computation,
        bound: Sequence[tuple[int, bool]],
        expansion: _Expansion,
        *,
        results: Mapping[str, str],
    ) -> dict[str, tuple[int, bool]]:
        """Adds the operations of a fused computation; for each the node, and whether the kernel computes it.

        Args:
            fused: the computation.
            bound: for each parameter the node, and whether the same kernel computes it.
            expansion: gathers members and fused pairs.
            results: which of its operations are results of which of the module's instructions.
        """
        local: dict[str, tuple[int, bool]] = {}
        for instruction in fused:
            if instruction.parameter_number is not None:
                local[instruction.name] = bound[instruction.parameter_number]
            elif instruction.opcode == "constant":
                local[instruction.name] = (self._inline_constant(instruction, expansion), False)
            elif instruction.opcode == "fusion":
                inner = self._program[instruction.called[0]]
                arguments = [local[operand] for operand in instruction.operands]
                result = results.get(instruction.name)
                found = self._expand(
                    inner, arguments, expansion, results={} if result is None else {inner.root: result}
                )
                local[instruction.name] = (found[inner.root][0], True)
            elif instruction.opcode != "tuple":  # the several results; no rule allows another
                operands = tuple(local[operand][0] for operand in instruction.operands)
                inside = tuple(local[operand][1] for operand in instruction.operands)
                result = results.get(instruction.name)
                number = self._node(
                    instruction, operands, inside,
                    slot=(expansion.slot, expansion.count if result is None else _LAST),
                    result_of=result, expansion=expansion,
                )  # fmt: skip
                expansion.count += 1
                expansion.members |= 1 << number
                expansion.pairs.extend(
                    FusedPair(producer=operand, consumer=number)
                    for operand, is_inside in zip(operands, inside, strict=True)
                    if is_inside
                )
                local[instruction.name] = (number, True)
        return local

    def _node(
        self,
        instruction: Instruction,
        operands: tuple[int, ...],
        inside: tuple[bool, ...],
        *,
        slot: tuple[int, int],
        result_of: str | None = None,
        expansion: _Expansion | None = None,
    ) -> int:
        """The number of an operation's node, found or made.

        Args:
            inside: for each operand whether the same kernel computes it.
            result_of: the module's instruction whose result it is. It may become one with a clone, but not
                with another result, and not where its buffer will be overwritten.
            expansion: the fusion that it is a part of, if any.
        """
        region = expansion.region if expansion is not None else NO_REGION
        value = self._value(instruction, operands)
        # Equal scalar constants are one value, wherever they stand; other operands count as nodes.
        identities = tuple(self._scalar_value(operand) or operand for operand in operands)
        key: tuple[object, ...] = (instruction.opcode, value, identities, inside, region)
        found = self._by_key.get(key)
        if expansion is not None and found in expansion.reads:
            key = (*key, expansion.slot)
            found = self._by_key.get(key)
        is_apart = result_of is not None and (found in self._kernels or result_of in self._overwritten)
        if found is not None and not is_apart:
            if result_of is not None:
                self._nodes[found] = replace(self._nodes[found], slot=slot)
            return found
        shapes = [self._nodes[operand].instruction.shape for operand in operands]
        name = instruction.name if result_of == instruction.name else self._fresh(instruction.name)
        number = self._append(
            Node(
                instruction=replace(
                    instruction, name=name, operands=tuple(self._name(operand) for operand in operands)
                ),
                operands=operands,
                rule=self._rules.rule(instruction, shapes),
                region=region,
                value=content_digest(value, region >= 0, self._ordinal((value, region))),
                slot=slot,
            )
        )
        if not is_apart:
            self._by_key[key] = number
        return number

    def _scalar_value(self, number: int) -> str:
        """The value of a scalar constant; empty for other nodes."""
        node = self._nodes[number]
        return node.value if node.is_constant and node.instruction.shape.rank == 0 else ""

    def _inline_constant(self, constant: Instruction, expansion: _Expansion) -> int:
        value = self._value(constant, ())
        key = ("constant", value, constant.name if constant.is_elided else "")
        if key not in self._by_key:
            self._by_key[key] = self._append(
                Node(
                    instruction=replace(constant, name=self._fresh(constant.name)),
                    operands=(),
                    rule=None,
                    value=value,
                    slot=(expansion.slot, expansion.count),
                    is_inline_constant=True,
                )
            )
        return self._by_key[key]

    def _append(self, node: Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _name(self, number: int) -> str:
        return self._nodes[number].instruction.name

    def _fresh(self, name: str) -> str:
        """The name itself where this scope does not use it yet, else one that the module does not use."""
        if name not in self._own_names:
            self._own_names.add(name)
            return name
        suffix = 1
        while f"{name}.u{suffix}" in self._used_names:
            suffix += 1
        unique = f"{name}.u{suffix}"
        self._used_names.add(unique)
        self._own_names.add(unique)
        return unique

    def _value(self, instruction: Instruction, operands: tuple[int, ...]) -> str:
        return content_digest(
            instruction.opcode,
            str(instruction.shape),
            canonical_attributes(instruction, self._contents),
            instruction.literal,
            instruction.parameter_number,
            [self._nodes[operand].value for operand in operands],
        )

    def _ordinal(self, key: object) -> int:
        """How many values of one content came before: 0 for the first."""
        count = self._by_key.get(("ordinal", key), -1) + 1
        self._by_key["ordinal", key] = count
        return count


_LAST = 1 << 30  # position of a result: after all that its instruction computes on the way
_PURE_DATA = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def _has_several_results(fused: Computation) -> bool:
    return fused.root_instruction.opcode == "tuple"


def _parts(computation: Computation) -> dict[str, list[Instruction]]:
    """For each instruction with several results what takes them out, in the order of the text."""
    found: dict[str, list[Instruction]] = {}
    for instruction in computation:
        if instruction.opcode == "get-tuple-element":
            found.setdefault(instruction.operands[0], []).append(instruction)
    return found


def _taken_from(fused: Computation, part: Instruction) -> str:
    """The operation of a fused computation that a ``get-tuple-element`` of its fusion gives."""
    return fused.root_instruction.operands[integer(part, "index")]


def _pinned(computation: Computation) -> frozenset[str]:
    """Instructions with a control edge at either end."""
    found: set[str] = set()
    for instruction in computation:
        if instruction.control_predecessors:
            found.update((instruction.name, *instruction.control_predecessors))
    return frozenset(found)
