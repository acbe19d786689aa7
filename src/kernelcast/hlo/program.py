"""The immutable HLO program: computations of named instructions, with everything the text said kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kernelcast.errors import HloError
from kernelcast.hlo.opcodes import CONTROL_FLOW
from kernelcast.hlo.shape import Shape

# Attributes whose value names one computation, or several in braces.
CALLING_ATTRIBUTES = (
    "calls", "to_apply", "body", "condition", "branch_computations", "true_computation", "false_computation",
    "called_computations", "select", "scatter", "comparator", "async_computation",
)  # fmt: skip
_ALIAS = re.compile(r"\{([\d, ]*)\}:\s*\((\d+),\s*\{([\d, ]*)\}(?:,\s*([\w-]+))?\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One operation of a computation.

    Attributes:
        name: unique in its computation, without ``%``.
        opcode: HLO's own spelling, e.g. ``dynamic-update-slice``.
        shape: of the result.
        operands: names of instructions of the same computation, in operand order, repeats kept.
        attributes: (key, value) in printed order; values verbatim, so that unknown ones survive. Includes
            called computations, ``control-predecessors``, ``sharding``, ``metadata`` and ``backend_config``.
        literal: for ``constant``, the text of its value, verbatim (``{...}`` where it was elided); for other
            opcodes that print something else than operands, that text; None otherwise.
        parameter_number: for ``parameter``; None otherwise.
    """

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    literal: str | None = None
    parameter_number: int | None = None

    def attribute(self, key: str) -> str | None:
        """The verbatim value of an attribute, or None."""
        for name, value in self.attributes:
            if name == key:
                return value
        return None

    def with_attribute(self, key: str, value: str | None) -> Instruction:
        """The same instruction with one attribute set (in place, or last), or removed for None."""
        kept = [(k, v) for k, v in self.attributes if k != key or value is not None]
        if value is not None:
            kept = [(k, value if k == key else v) for k, v in kept]
            if all(k != key for k, _ in kept):
                kept.append((key, value))
        return replace(self, attributes=tuple(kept))

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that this instruction calls, in printed order."""
        names: list[str] = []
        for key, value in self.attributes:
            if key in CALLING_ATTRIBUTES:
                names.extend(_names(value))
        return tuple(names)

    @property
    def control_predecessors(self) -> tuple[str, ...]:
        """Names of instructions that must run before this one although it does not read them."""
        value = self.attribute("control-predecessors")
        return tuple(_names(value)) if value else ()

    @property
    def is_elided(self) -> bool:
        """Whether this is a constant whose values the printer left out."""
        return self.opcode == "constant" and self.literal is not None and "..." in self.literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """A named acyclic graph of instructions; operands precede their users, and the order is the schedule
    where the program is scheduled.

    Attributes:
        root: name of the instruction whose value is the result.
        attributes: what follows the closing brace, e.g. ``execution_thread``; verbatim.
        parameters: the parameter instructions, by number.
    """

    name: str
    instructions: tuple[Instruction, ...]
    root: str
    attributes: tuple[tuple[str, str], ...] = ()
    parameters: tuple[Instruction, ...] = field(init=False, repr=False, compare=False, hash=False)
    _by_name: Mapping[str, Instruction] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        by_name: dict[str, Instruction] = {}
        for instruction in self.instructions:
            for operand in (*instruction.operands, *instruction.control_predecessors):
                if operand not in by_name:
                    raise HloError(
                        f"operand %{operand} is not defined before it in computation {self.name}",
                        instruction=instruction.name,
                    )
            if instruction.name in by_name:
                raise HloError(f"name is used twice in computation {self.name}", instruction=instruction.name)
            by_name[instruction.name] = instruction
        if self.root not in by_name:
            raise HloError(f"computation {self.name} has no instruction %{self.root} to be its root")
        object.__setattr__(self, "_by_name", MappingProxyType(by_name))
        parameters = [i for i in self.instructions if i.opcode == "parameter"]
        parameters.sort(key=lambda i: i.parameter_number or 0)
        object.__setattr__(self, "parameters", tuple(parameters))

    def __getitem__(self, name: str) -> Instruction:
        try:
            return self._by_name[name]
        except KeyError:
            raise HloError(f"computation {self.name} has no instruction %{name}") from None

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    @property
    def root_instruction(self) -> Instruction:
        return self._by_name[self.root]

    def users(self) -> dict[str, tuple[str, ...]]:
        """For each instruction the names of those that read it, in order, each once."""
        users: dict[str, dict[str, None]] = {i.name: {} for i in self.instructions}
        for instruction in self.instructions:
            for operand in instruction.operands:
                users[operand][instruction.name] = None
        return {name: tuple(found) for name, found in users.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """An output that shares the buffer of a donated parameter."""

    output_index: tuple[int, ...]
    parameter: int
    parameter_index: tuple[int, ...] = ()
    kind: str = "may-alias"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An HLO module.

    ``parse(format_program(p)) == p``, and XLA's parser accepts what is written.

    Attributes:
        name: of the module.
        computations: callees before their callers.
        entry: name of the entry computation.
        attributes: of the module header (``is_scheduled``, ``entry_computation_layout``,
            ``input_output_alias`` …), (key, verbatim value) in printed order.
        preamble: tables between header and computations (``FileNames`` …), verbatim.

    >>> from kernelcast.hlo.text import parse
    >>> program = parse("HloModule m ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] tanh(x) }")
    >>> program.entry_computation["y"].operands, program.entry_computation.users()["x"]
    (('x',), ('y',))
    >>> program.with_attribute("is_scheduled", "true").is_scheduled
    True
    """

    name: str
    computations: tuple[Computation, ...]
    entry: str
    attributes: tuple[tuple[str, str], ...] = ()
    preamble: str = ""
    _by_name: Mapping[str, Computation] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        by_name: dict[str, Computation] = {}
        for computation in self.computations:
            if computation.name in by_name:
                raise HloError(f"two computations are called {computation.name}")
            by_name[computation.name] = computation
        if self.entry not in by_name:
            raise HloError(f"module {self.name} has no computation {self.entry} to be its entry")
        object.__setattr__(self, "_by_name", MappingProxyType(by_name))

    def __getitem__(self, name: str) -> Computation:
        try:
            return self._by_name[name]
        except KeyError:
            raise HloError(f"module {self.name} has no computation {name}") from None

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def entry_computation(self) -> Computation:
        return self._by_name[self.entry]

    def attribute(self, key: str) -> str | None:
        """The verbatim value of a header attribute, or None."""
        return next((value for name, value in self.attributes if name == key), None)

    def with_attribute(self, key: str, value: str | None) -> Program:
        """The same program with one header attribute set (in place, or last), or removed for None."""
        kept = [(k, v) for k, v in self.attributes if k != key]
        if value is not None:
            at = next((i for i, (k, _) in enumerate(self.attributes) if k == key), len(kept))
            kept.insert(at, (key, value))
        return replace(self, attributes=tuple(kept))

    @property
    def is_scheduled(self) -> bool:
        return self.attribute("is_scheduled") == "true"

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """The input–output aliases of the header, i.e. donated parameters."""
        text = self.attribute("input_output_alias") or ""
        indices = lambda t: tuple(int(x) for x in t.split(",") if x.strip())  # noqa: E731
        return tuple(
            Alias(
                output_index=indices(out), parameter=int(number), parameter_index=indices(inner),
                kind=kind or "may-alias",
            )
            for out, number, inner, kind in _ALIAS.findall(text)
        )  # fmt: skip

    @property
    def instruction_count(self) -> int:
        return sum(len(computation) for computation in self.computations)

    def fused_computations(self) -> frozenset[str]:
        """Names of the computations that fusions call, however deeply nested."""
        return self._reached_from(lambda i: i.opcode == "fusion")

    def scalar_computations(self) -> frozenset[str]:
        """Names of the computations applied per element: reducers, comparators, scatter combiners, maps."""
        return self._reached_from(lambda i: i.opcode not in CONTROL_FLOW and i.opcode != "fusion")

    def scheduled_computations(self) -> tuple[Computation, ...]:
        """Entry, loop bodies and conditions, branches and called computations: where kernels are launched."""
        inside = self.fused_computations() | self.scalar_computations()
        return tuple(c for c in self.computations if c.name not in inside)

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """Names of the given computations and of all that they call, however deeply."""
        found: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            if name not in found and name in self._by_name:
                found.add(name)
                stack.extend(n for i in self._by_name[name] for n in i.called)
        return frozenset(found)

    def _reached_from(self, calls: Callable[[Instruction], bool]) -> frozenset[str]:
        return self.reached(n for c in self.computations for i in c for n in (i.called if calls(i) else ()))


def _names(value: str) -> list[str]:
    """The names in ``%a`` or ``{%a, %b}``."""
    return [part.strip().lstrip("%") for part in value.strip("{}").split(",") if part.strip()]
