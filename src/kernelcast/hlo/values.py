"""What a name stands for: the instruction that made a value, behind tuples and bitcasts."""

from __future__ import annotations

from kernelcast.hlo.attributes import tuple_index
from kernelcast.hlo.program import Computation

Index = tuple[int, ...]
Value = tuple[str, Index]

_SAME = frozenset({"bitcast", "opt-barrier", "add-dependency", "domain"})


def resolve(computation: Computation, name: str, index: Index = ()) -> Value:
    """The instruction that makes the value behind a name, and the place in its result.

    Looks through ``bitcast``, ``get-tuple-element``, ``tuple`` and barriers, and from the end of an
    asynchronous operation to its start; parameters, loops, calls and conditionals are makers here.

    >>> from kernelcast.hlo.text import parse
    >>> entry = parse('''HloModule m
    ... ENTRY e { x = f32[4] parameter(0)  y = f32[4] negate(x)  t = (f32[4], f32[4]) tuple(x, y)
    ...   ROOT r = f32[4] get-tuple-element(t), index=1 }''').entry_computation
    >>> resolve(entry, "r")
    ('y', ())
    """
    while True:
        instruction = computation[name]
        opcode = instruction.opcode
        if opcode in _SAME:
            name = instruction.operands[0]
        elif opcode == "get-tuple-element":
            name, index = instruction.operands[0], (tuple_index(instruction), *index)
        elif opcode == "tuple" and index:
            name, index = instruction.operands[index[0]], index[1:]
        elif opcode == "async-update":
            name = instruction.operands[0]
        elif opcode == "async-done":
            name, index = instruction.operands[0], (1, *index)
        elif opcode == "async-start" and len(index) > 1 and index[0] == 0:
            name, index = instruction.operands[index[1]], index[2:]
        elif opcode == "copy-done":
            name, index = instruction.operands[0], (0, *index)
        elif opcode == "copy-start" and index[:1] == (1,):
            name, index = instruction.operands[0], index[1:]
        else:
            return name, index
