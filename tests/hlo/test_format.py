"""What is written reads back as the same program."""

from hypothesis import given, settings
from tests.hlo.programs import SHAPES, programs

from kernelcast.hlo.format import format_computation, format_instruction, format_program
from kernelcast.hlo.program import Computation, Instruction, Program
from kernelcast.hlo.shape import Shape, array_shape, tuple_shape
from kernelcast.hlo.shape_text import parse_shape
from kernelcast.hlo.text import parse


@given(programs())
@settings(max_examples=60, deadline=None)
def test_what_was_written_reads_as_the_same_program(program: Program) -> None:
    assert parse(format_program(program)) == program


@given(SHAPES)
@settings(max_examples=150, deadline=None)
def test_a_shape_reads_as_it_was_written(shape: Shape) -> None:
    assert parse_shape(str(shape)) == shape


def test_every_part_of_a_program_is_written() -> None:
    scalar = array_shape("f32", ())
    one = Instruction(name="one", opcode="constant", shape=scalar, literal="1")
    x = Instruction(name="x", opcode="parameter", shape=scalar, parameter_number=0)
    add = Instruction(
        name="add",
        opcode="add",
        shape=scalar,
        operands=("x", "one"),
        attributes=(("metadata", '{op_name="a"}'),),
    )
    main = Computation(
        name="main", instructions=(one, x, add), root="add", attributes=(("execution_thread", '"main"'),)
    )
    program = Program(
        name="m",
        computations=(main,),
        entry="main",
        attributes=(("is_scheduled", "true"),),
        preamble='FileNames\n1 "a.py"',
    )
    assert format_program(program) == (
        'HloModule m, is_scheduled=true\n\nFileNames\n1 "a.py"\n\nENTRY %main {\n'
        "  %one = f32[] constant(1)\n  %x = f32[] parameter(0)\n"
        '  ROOT %add = f32[] add(%x, %one), metadata={op_name="a"}\n}, execution_thread="main"\n'
    )


def test_parts_can_be_written_alone() -> None:
    x = Instruction(name="x", opcode="parameter", shape=array_shape("s4", (2, 3), (1, 0)), parameter_number=3)
    assert format_instruction(x) == "%x = s4[2,3]{1,0} parameter(3)"
    computation = Computation(name="f", instructions=(x,), root="x")
    assert format_computation(computation) == "%f {\n  ROOT %x = s4[2,3]{1,0} parameter(3)\n}"


def test_long_tuples_are_marked_as_the_compiler_marks_them() -> None:
    shape = tuple_shape(*[array_shape("pred", ())] * 7)
    assert str(shape).count("/*index=5*/pred[]") == 1
