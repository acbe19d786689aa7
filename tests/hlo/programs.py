"""Random valid programs, for properties of the reader and the writer."""

from __future__ import annotations

from hypothesis import strategies as st

from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import ELEMENT_BITS, Layout, Shape, tuple_shape

NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_.\-]{0,12}", fullmatch=True)
STRINGS = st.text(
    st.characters(codec="utf-8", exclude_characters='"\\\0', exclude_categories=["Cs"]), max_size=12
)
_KEYS = st.from_regex(r"[a-z_][a-z_0-9]{2,10}", fullmatch=True).map(lambda key: f"x_{key}")
_NUMBERS = st.integers(-3, 9).map(str)
_QUOTED = STRINGS.map(lambda text: f'"{text}"')
_NESTED = st.recursive(
    _NUMBERS | _QUOTED,
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}"),
    max_leaves=6,
)
VALUES = st.one_of(
    _NUMBERS,
    _QUOTED,
    st.sampled_from(["bf01_01io->bf01", "0_5x1_2_3", "[2,4]<=[4,2]T(1,0)", "mesh['a'=2] {'a'}", r'"\"q\""']),
    st.lists(_NESTED, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}"),
)


@st.composite
def array_shapes(draw: st.DrawFn) -> Shape:
    element_type = draw(st.sampled_from([name for name in ELEMENT_BITS if name not in ("token", "opaque")]))
    dimensions = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    rank = len(dimensions)
    dynamic = tuple(sorted(draw(st.sets(st.integers(0, rank - 1), max_size=2)))) if rank else ()
    layout = None
    if draw(st.booleans()):
        order = tuple(draw(st.permutations(range(rank))))
        suffix = draw(st.sampled_from(["", "T(8,128)", "T(8,128)(2,1)", "T(8,*)E(4)S(1)", "S(5)"]))
        layout = Layout(minor_to_major=order, suffix=suffix)
    return Shape(element_type=element_type, dimensions=dimensions, dynamic=dynamic, layout=layout)


SHAPES = st.recursive(
    array_shapes() | st.just(Shape(element_type="token")),
    lambda inner: (
        st.lists(inner, max_size=7).map(lambda elements: tuple_shape(*elements))
        | inner.map(lambda held: Shape(element_type="buffer", elements=(held,)))
    ),
    max_leaves=8,
)


def attribute_lists(maximum: int) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    pairs = st.lists(st.tuples(_KEYS, VALUES), max_size=maximum, unique_by=lambda pair: pair[0])
    return pairs.map(tuple)


@st.composite
def computations(draw: st.DrawFn, name: str, callees: tuple[str, ...]) -> Computation:
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    instructions: list[Instruction] = []
    for number, instruction_name in enumerate(names):
        instructions.append(draw(_instructions(instruction_name, names[:number], callees, number)))
    return Computation(
        name=name,
        instructions=tuple(instructions),
        root=draw(st.sampled_from(names)),
        attributes=draw(attribute_lists(1)),
    )


@st.composite
def _instructions(
    draw: st.DrawFn, name: str, before: list[str], callees: tuple[str, ...], number: int
) -> Instruction:
    opcode = draw(
        st.sampled_from(["parameter", "constant", "add", "custom-call", "all-gather-start", "call"])
    )
    attributes = draw(attribute_lists(3))
    operands: tuple[str, ...] = ()
    if opcode not in ("parameter", "constant") and before:
        operands = tuple(draw(st.lists(st.sampled_from(before), max_size=3)))
        if draw(st.booleans()):
            predecessors = ", ".join(f"%{p}" for p in draw(st.sets(st.sampled_from(before), min_size=1)))
            attributes += (("control-predecessors", f"{{{predecessors}}}"),)
    if opcode == "call" and callees:
        attributes = (("to_apply", f"%{draw(st.sampled_from(callees))}"), *attributes)
    return Instruction(
        name=name,
        opcode=opcode,
        shape=draw(SHAPES),
        operands=operands,
        attributes=attributes,
        literal=draw(
            st.sampled_from(["1", "{...}", "{ { 1, 2 }, { nan(0x7f), -inf } }", "((1, {2}), (0, -1))"])
        )
        if opcode == "constant"
        else None,
        parameter_number=number if opcode == "parameter" else None,
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program of up to four computations whose names, shapes and attributes are as odd as text allows."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    built = tuple(draw(computations(name, tuple(names[:number]))) for number, name in enumerate(names))
    preamble = draw(st.sampled_from(["", 'FileNames\n1 "a//b.py"\n\nStackFrames\n1 {file_location_id=1}']))
    return Program(
        name=draw(NAMES),
        computations=built,
        entry=draw(st.sampled_from(names)),
        attributes=draw(attribute_lists(3)),
        preamble=preamble,
    )
