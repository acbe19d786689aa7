"""Reading HLO text: dialects, what XLA's parser also takes, and what errors say."""

import re

import pytest

from kernelcast.errors import HloError
from kernelcast.hlo.format import format_program
from kernelcast.hlo.handover import Accepted, hand_over
from kernelcast.hlo.program import Instruction, Program
from kernelcast.hlo.proto import canonical_proto
from kernelcast.hlo.text import instruction_line, parse

LONG = """
HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

%region (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %add.1 = f32[] add(f32[] %a.1, f32[] %b.1), metadata={op_name="jit(f)/{add}, x" source_line=3}
}

ENTRY %main.2 (x.1: f32[8,4]) -> (f32[8], f32[]) {
  %x.1 = f32[8,4]{1,0:T(8,128)S(1)} parameter(0)
  %zero = f32[]{:T(128)} constant(0)
  %sum = f32[8]{0} reduce(f32[8,4]{1,0:T(8,128)S(1)} %x.1, f32[]{:T(128)} %zero), dimensions={1},
    to_apply=%region
  ROOT %t = (f32[8]{0}, f32[]) tuple(f32[8]{0} %sum, /*index=1*/f32[]{:T(128)} %zero),
    control-predecessors={%sum}
}
"""
SHORT = """
HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

region {
  a.1 = f32[] parameter(0)
  b.1 = f32[] parameter(1)
  ROOT add.1 = f32[] add(a.1, b.1), metadata={op_name="jit(f)/{add}, x" source_line=3}
}

ENTRY main.2 {
  x.1 = f32[8,4]{1,0:T(8,128)S(1)} parameter(0)
  zero = f32[]{:T(128)} constant(0)
  sum = f32[8]{0} reduce(x.1, zero), dimensions={1}, to_apply=%region
  ROOT t = (f32[8]{0}, f32[]) tuple(sum, zero), control-predecessors={%sum}
}
"""

# Instructions without a shape, and the shape that XLA's parser gives them.
IMPLIED = [
    ("y = negate(x)", "f32[4,2]{0,1}"),
    ("y = compare(x, x), direction=LT", "pred[4,2]{0,1}"),
    ("y = transpose(x), dimensions={1,0}", "f32[2,4]{1,0}"),
    ("y = dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "f32[2,2]"),
    ("y = concatenate(x, x), dimensions={1}", "f32[4,4]"),
    ("y = pad(x, f32[] constant(0)), padding=0_1x1_0_2", "f32[5,5]"),
    ("y = tuple(x, x)", "(f32[4,2]{0,1}, f32[4,2]{0,1})"),
    ("y = get-tuple-element((f32[4,2], s32[]) tuple(x, s32[] constant(1))), index=1", "s32[]"),
    (
        "y = reduce(x, f32[] constant(0)), dimensions={0}, to_apply={ a = f32[] parameter(0) "
        "b = f32[] parameter(1) ROOT c = add(a, b) }",
        "f32[2]",
    ),
    ("y = after-all()", "token[]"),
    ("y = select(pred[4,2] constant(1), x, x)", "f32[4,2]"),
    ("y = select(pred[] constant(1), x, x)", "f32[4,2]{0,1}"),
    ("y = clamp(f32[] constant(0), x, f32[] constant(1))", "f32[4,2]{0,1}"),
    (
        "y = sort(x), dimensions={0}, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) "
        "ROOT c = compare(a, b), direction=LT }",
        "f32[4,2]{0,1}",
    ),
    ("y = reverse(x), dimensions={0}", "f32[4,2]{0,1}"),
    ("y = get-dimension-size(x), dimensions={0}", "s32[]"),
    ("y = partition-id()", "u32[]"),
    ("y = call(x), to_apply={ p = f32[4,2] parameter(0) ROOT q = s32[2]{0} constant(1) }", "s32[2]{0}"),
    (
        "y = map(x), dimensions={0,1}, to_apply={ p = f32[] parameter(0) ROOT q = s8[] convert(p) }",
        "s8[4,2]",
    ),
    ("y = complex(x, x)", "c64[4,2]{0,1}"),
]


def entry(lines: str) -> str:
    return f"HloModule m\nENTRY e {{\n  x = f32[4,2]{{0,1}} parameter(0)\n{lines}\n}}\n"


def instruction(lines: str, name: str) -> Instruction:
    return parse(entry(lines)).entry_computation[name]


def failure(text: str) -> HloError:
    with pytest.raises(HloError) as caught:
        parse(text)
    return caught.value


class TestDialects:
    def test_both_dialects_read_as_the_same_program(self) -> None:
        assert parse(LONG) == parse(SHORT)

    def test_everything_is_kept(self) -> None:
        program = parse(LONG)
        assert program.name == "jit_f"
        assert program.entry == "main.2"
        assert program.is_scheduled
        assert program.aliases[0].output_index == (0,)
        main = program.entry_computation
        assert [i.name for i in main] == ["x.1", "zero", "sum", "t"]
        assert main.root == "t"
        assert main["sum"].operands == ("x.1", "zero")
        assert main["sum"].called == ("region",)
        assert main["t"].control_predecessors == ("sum",)
        assert main["x.1"].shape.layout is not None
        assert main["x.1"].shape.layout.tiles == ((8, 128),)
        assert main["x.1"].shape.layout.memory_space == 1
        metadata = program["region"].root_instruction.attribute("metadata")
        assert metadata == '{op_name="jit(f)/{add}, x" source_line=3}'

    def test_one_line_is_enough(self) -> None:
        assert parse(" ".join(SHORT.split("\n"))) == parse(SHORT)

    @pytest.mark.parametrize("end", ["\r\n", "\n\n", "\n\t\n"])
    def test_white_space_has_no_meaning(self, end: str) -> None:
        assert parse(SHORT.replace("\n", end)) == parse(SHORT)

    def test_comments_go_wherever_they_stand(self) -> None:
        text = SHORT.replace("{1,0", '/* a ) " */{1,0').replace("\n", " // it's \"one\n")
        assert parse(text) == parse(SHORT)

    def test_what_looks_like_a_comment_in_a_string_stays(self) -> None:
        found = instruction('ROOT y = f32[4,2] negate(x), metadata={op_name="a//b /* c */"} // gone', "y")
        assert found.attributes == (("metadata", '{op_name="a//b /* c */"}'),)


class TestAttributes:
    @pytest.mark.parametrize(
        "value",
        [
            '{"a":{"b":["}",1]},"c":"\\"{"}',
            '"{\\"known_trip_count\\":{\\"n\\":\\"5\\"}}"',
            "{devices=[2,1]<=[2] metadata={op_name='it'}}",
            "[2,4]<=[4,2]T(1,0)",
            "mesh['a'=1,'b'=4] {'b'}",
            "bf01_01io->bf01",
            "{{0,1},{2,3}}",
            "{\n    a,\n  }",
            "-1_2_3x0_0",
            "{" * 30 + "}" * 30,
        ],
    )
    def test_unknown_ones_are_kept_verbatim(self, value: str) -> None:
        program = parse(entry(f"ROOT y = f32[4,2] negate(x), index=1, nobody_knows={value}, last=true"))
        assert program.entry_computation["y"].attributes == (
            ("index", "1"), ("nobody_knows", value), ("last", "true"),
        )  # fmt: skip
        assert parse(format_program(program)) == program

    def test_computations_have_attributes_too(self) -> None:
        program = parse('HloModule m\nENTRY e {\n ROOT x = f32[] parameter(0)\n}, execution_thread="main"')
        assert program.entry_computation.attributes == (("execution_thread", '"main"'),)

    def test_tables_are_kept(self) -> None:
        tables = 'FileNames\n1 "a{.py"\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}'
        program = parse(f"HloModule m\n\n{tables}\n\nENTRY e {{ ROOT x = f32[] parameter(0) }}")
        assert program.preamble == tables
        empty = "FileNames\n\nFunctionNames"
        assert parse(f"HloModule m\n{empty}\n\ne {{ ROOT x = f32[] parameter(0) }}").preamble == empty


class TestWhatElseXlaTakes:
    def test_no_header_no_entry_no_root(self) -> None:
        program = parse("f { a = f32[] parameter(0) }  g { b = f32[] parameter(0) c = f32[] negate(b) }")
        assert (program.name, program.entry, program.entry_computation.root) == ("module_g", "g", "c")

    def test_an_instruction_alone(self) -> None:
        program = parse("%sum = f32[2,3] add(f32[2,3] %x, f32[2,3]{0,1} y)")
        assert [(i.name, i.opcode) for i in program.entry_computation] == [
            ("x", "parameter"), ("y", "parameter"), ("sum", "add"),
        ]  # fmt: skip
        assert program.entry_computation.root == "sum"
        assert program.is_scheduled

    def test_an_instruction_alone_with_another_in_place_of_an_operand(self) -> None:
        program = parse("f32[] add(f32[] negate(f32[] x), f32[] y)")
        assert [(p.name, p.parameter_number) for p in program.entry_computation.parameters] == [
            ("x", 0),
            ("y", 1),
        ]

    def test_no_control_predecessors_are_no_disorder(self) -> None:
        text = entry("y = f32[4,2] negate(x), control-predecessors={}")
        program = parse(text.replace("HloModule m", "HloModule m, is_scheduled=true"))
        assert program.entry_computation["y"].control_predecessors == ()

    def test_operands_written_in_place(self) -> None:
        program = parse(
            entry("ROOT y = f32[4,2] add(f32[4,2] negate(x), f32[4,2] negate(f32[4,2] negate(x)))")
        )
        assert [(i.name, i.operands) for i in program.entry_computation][1:] == [
            ("negate.anon", ("x",)),
            ("negate.anon.1", ("x",)),
            ("negate.anon.2", ("negate.anon.1",)),
            ("y", ("negate.anon", "negate.anon.2")),
        ]

    def test_computations_written_in_place(self) -> None:
        adder = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
        program = parse(
            entry(
                f"z = f32[] constant(0)\nr = f32[2] reduce(x, z), dimensions={{0}}, to_apply={adder}\n"
                f"ROOT s = f32[2] reduce(x, z), to_apply={adder}, dimensions={{0}}"
            )
        )
        assert [c.name for c in program.computations] == ["_", "_.1", "e"]
        assert program.entry_computation["r"].called == ("_",)
        assert program.entry_computation["s"].attributes == (("to_apply", "%_.1"), ("dimensions", "{0}"))

    @pytest.mark.parametrize(
        ("line", "shape"),
        IMPLIED,
    )
    def test_shapes_that_follow_from_the_operands(self, line: str, shape: str) -> None:
        assert str(instruction(line, "y").shape) == shape

    def test_xla_gives_them_the_same_shapes(self) -> None:
        texts = [entry(line) for line, _ in IMPLIED]
        written = [format_program(parse(text)) for text in texts]
        for text, theirs, ours in zip(texts, hand_over(texts), hand_over(written), strict=True):
            assert isinstance(theirs, Accepted), text
            assert isinstance(ours, Accepted), text
            assert canonical_proto(theirs.result) == canonical_proto(ours.result), text

    def test_any_order_unless_scheduled(self) -> None:
        backwards = entry("ROOT y = f32[4,2] negate(w)\nw = f32[4,2] negate(x)")
        assert [i.name for i in parse(backwards).entry_computation] == ["x", "w", "y"]
        error = failure(backwards.replace("HloModule m", "HloModule m, is_scheduled=true"))
        assert str(error) == "line 5, %w: is used before its place in the schedule of computation e"

    def test_callees_come_first(self) -> None:
        caller = "HloModule m\nENTRY e { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=f }\n"
        program = parse(caller + "f { ROOT x = f32[] parameter(0) }")
        assert [c.name for c in program.computations] == ["f", "e"]

    def test_buffers(self) -> None:
        shape = instruction("ROOT y = b(f32[2,2]{1,0}) custom-call(x)", "y").shape
        assert str(shape) == "b(f32[2,2]{1,0})"
        assert (shape.byte_size, shape.is_array, list(shape.leaves())) == (16, False, [shape])

    def test_constants_keep_their_text(self) -> None:
        assert instruction("c = c64[2] constant({(1, nan(0x7f)),\n (2,-inf)})", "c").literal == (
            "{(1, nan(0x7f)),\n (2,-inf)}"
        )
        elided = instruction("c = f32[1,8,6,2048,2048] constant({...})", "c")
        assert elided.is_elided


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "line 1: expected 'HloModule name', got the end of the text"),
            ("\n\n<html>", "line 3: expected 'HloModule name', got '<html>'"),
            ("HloModule m\n", "line 1: expected a computation such as 'ENTRY main {', got the end"),
            ("HloModule m\n\n?", "line 3: expected a computation such as 'name {', got '?'"),
            ("HloModule m\nENTRY e {}", "line 2: expected an instruction such as"),
            ("HloModule m\nENTRY e (a: f32[]) {", "line 2: expected the signature '(parameters) -> shape'"),
            (entry("y = f32[4,2] negate(z)"), "line 4, %y: operand %z is not defined in computation e"),
            (entry("x = f32[4,2] negate(x)"), "line 4, %x: name is used twice in computation e"),
            (entry("y = f33[4] negate(x)"), "line 4, %y: unknown element type 'f33'; known are pred, s1"),
            (entry("y = f32[4,k] negate(x)"), "line 4, %y: expected a shape, an opcode and '('"),
            (entry("y = reshape(x)"), "line 4, %y: expected a shape before reshape"),
            (entry("y = transpose(x), dimensions={0}"), "%y: transpose of f32[4,2] needs"),
            (entry("y = negate(z)\nz = f32[] constant(1)"), "line 4, %y: expected a shape before"),
            (entry("y = f32[4,2] add(x, +)"), "line 4, %y: expected an operand or ')', got '+)'"),
            (entry("y = f32[4,2] negate(x), index"), "line 4, %y: expected an attribute such as index=1"),
            (entry("y = f32[4,2] negate(x), a=1, a=2"), "line 4, %y: attribute a is given twice"),
            (entry("y = f32[] parameter(one)"), "line 4, %y: expected a parameter number, got 'one)'"),
            (entry("y = f32[] constant(\"1\")"), "line 4, %y: expected the value of the constant"),
            (entry("y = f32[] call(x), to_apply=f"), "line 4, %y: computation f is not defined"),
            (entry("ROOT y = f32[] negate(x)\nROOT z = f32[] negate(x)"), "%z: computation e has a second"),
            (entry("y = f32[] negate(z)\nz = f32[] negate(y)"), "operand %y depends on its own user"),
            (entry("y = f32[] call(x), to_apply=e"), "line 4, %y: computation e calls itself"),
            ("HloModule m\n" + "e { x = f32[] parameter(0) }\n" * 2, "line 3: two computations are"),
            ("e { x = f32[] parameter(0) } !", "line 1: expected a computation such as 'name {', got '!'"),
            ("HloModule m\0", "expected HLO text, got binary data"),
        ],
    )  # fmt: skip
    def test_they_say_where_and_what_was_expected(self, text: str, message: str) -> None:
        assert message in str(failure(text))

    def test_they_carry_line_and_instruction(self) -> None:
        error = failure(entry("y = f32[4,2] negate(z)"))
        assert (error.line, error.instruction) == (4, "y")

    def test_comments_do_not_move_lines(self) -> None:
        text = entry("/* two\nlines */\ny = f32[4,2] negate(z)")
        assert failure(text).line == 6

    @pytest.mark.parametrize("text", [LONG, SHORT])
    def test_every_truncation_is_an_error_or_a_program(self, text: str) -> None:
        complete = parse(text)
        for length in range(len(text.rstrip())):
            try:
                program = parse(text[:length])
            except HloError:
                continue
            assert len(program.computations) < len(complete.computations)

    def test_a_line_can_be_found_afterwards(self) -> None:
        text = entry("y = f32[4,2] negate(x)\nROOT r = f32[31] reshape(y)")
        assert instruction_line(text, "e", "r") == 5
        assert instruction_line(text, "e", "none") is None


class TestAdversarial:
    """Nothing takes more than linear time or depth."""

    many = 20_000

    @pytest.mark.parametrize(
        "text",
        [
            "HloModule m " + "/*" * many,
            "HloModule m, a=//\n" + '"\\' * many,
            entry("y = f32[] " + "(" * many),
            entry("y = f32[] negate(x), a=" + "{([" * many),
            entry("y = f32[] " + "negate(" * many),
            entry("y = " + "(" * many + "f32[]" + ")" * many + " negate(x)"),
            entry("y = f32[] add(" + "x, " * many + "!"),
            entry("y = f32[] constant(" + "(" * many),
            entry("y = f32[] " + "call(x), to_apply={ z = f32[] " * many),
            "HloModule m\nFileNames\n" + '1 "x"\n' * many + '1 "',
            entry("y = f32[] parameter(" + "9" * many + ")"),
        ],
    )
    def test_is_refused(self, text: str) -> None:
        assert failure(text).line is not None

    def test_long_chains_in_the_wrong_order(self) -> None:
        chain = "".join(f"c{i} = f32[] negate(c{i + 1})\n" for i in range(self.many))
        program: Program = parse(entry(chain + f"c{self.many} = f32[] constant(1)"))
        assert program.entry_computation.instructions[1].name == f"c{self.many}"

    def test_a_constant_of_many_megabytes(self) -> None:
        rows = ", ".join(["{ 1.25, -2, 3e-05, nan }"] * 100_000)
        constant = instruction(f"c = f32[100000,4] constant({{ {rows} }}), sharding={{replicated}}", "c")
        assert constant.literal is not None
        assert len(re.findall("nan", constant.literal)) == 100_000
        assert constant.attributes == (("sharding", "{replicated}"),)
