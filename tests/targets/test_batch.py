from collections.abc import Callable
from dataclasses import replace

import pytest

from kernelcast.core.kernel import Kernel
from kernelcast.hlo.text import parse
from kernelcast.hlo.verify import verify
from kernelcast.targets.pjrt.batch import batch_text
from kernelcast.targets.pjrt.batch_inputs import mlir_type, unsupported


def test_each_kernel_has_a_branch_and_the_last_branch_is_empty(
    elementwise: Kernel, transposed: Kernel
) -> None:
    batch = batch_text([elementwise, transposed])
    program = parse(batch.text)
    assert program.is_scheduled
    (choice,) = [i for i in program["run_once"] if i.opcode == "conditional"]
    assert choice.attribute("branch_computations") == "{%k0, %k1, %k.empty}"
    assert [i.opcode for i in program["k0"]].count("fusion") == 1
    assert [i.opcode for i in program["k1"]].count("dot") == 1
    assert {i.opcode for i in program["k.empty"]} == {"parameter", "tuple"}


def test_unused_results_are_kept_by_a_control_edge(elementwise: Kernel) -> None:
    program = parse(batch_text([elementwise]).text)
    assert program["k0"].root_instruction.control_predecessors == ("kernel",)


def test_kernels_share_inputs_of_one_size_and_type(elementwise: Kernel, transposed: Kernel) -> None:
    batch = batch_text([elementwise, transposed, elementwise])
    # 512 = 16 · 32 elements of f32 serve all three; the product needs two different ones.
    assert [(i.elements, i.slot) for i in batch.inputs] == [(512, 0), (512, 1)]
    assert batch.input_bytes == 2 * 512 * 4


def test_parameters_keep_their_layout(transposed: Kernel) -> None:
    program = parse(batch_text([transposed]).text)
    assert [str(i.shape) for i in program["k0"] if i.opcode == "bitcast"] == [
        "f32[16,32]{1,0}",
        "f32[16,32]{0,1}",
    ]


def test_buffer_written_in_place_goes_round_the_loop(in_place: Kernel, elementwise: Kernel) -> None:
    batch = batch_text([elementwise, in_place])
    assert [i.owner for i in batch.inputs] == [None, 1, None, None]
    program = parse(batch.text)
    state = program["run_once"].root_instruction
    assert state.operands[4] == "written1"
    assert "private1" in program["batch"]


def test_computations_of_several_kernels_do_not_clash(elementwise: Kernel) -> None:
    program = parse(batch_text([elementwise] * 3).text)
    assert {"k0.work", "k1.work", "k2.work"} <= {c.name for c in program.computations}


@pytest.mark.parametrize("build", [lambda e, t, p: [e], lambda e, t, p: [e, t], lambda e, t, p: [p, e]])
def test_text_is_valid(
    build: Callable[..., list[Kernel]], elementwise: Kernel, transposed: Kernel, in_place: Kernel
) -> None:
    verify(parse(batch_text(build(elementwise, transposed, in_place)).text))


def test_marks_of_the_surrounding_program_are_left_out(elementwise: Kernel) -> None:
    entry = elementwise.program.entry_computation
    marked = tuple(
        i.with_attribute("metadata", '{op_name="x"}').with_attribute("sharding", "{replicated}")
        for i in entry
    )
    program = replace(
        elementwise.program,
        computations=(*elementwise.program.computations[:-1], replace(entry, instructions=marked)),
    )
    assert batch_text([replace(elementwise, program=program)]).text == batch_text([elementwise]).text


def test_elided_constants_and_tuple_parameters_are_refused(elementwise: Kernel) -> None:
    assert unsupported(elementwise) is None
    elided = parse(
        "HloModule m\n\nENTRY %e {\n"
        "  %c = f32[100]{0} constant({...})\n  ROOT %n = f32[100]{0} negate(%c)\n}\n"
    )
    failure = unsupported(replace(elementwise, program=elided))
    assert failure is not None
    assert failure.message.startswith("%c: the values of this constant were left out")
    tupled = parse(
        "HloModule m\n\nENTRY %e {\n  %p = (f32[2]{0}, f32[]) parameter(0)\n"
        "  ROOT %g = f32[2]{0} get-tuple-element(%p), index=0\n}\n"
    )
    failure = unsupported(replace(elementwise, program=tupled))
    assert failure is not None
    assert "only arrays can be made up" in failure.message


def test_mlir_names() -> None:
    names = {
        "pred": "i1",
        "s32": "i32",
        "u4": "ui4",
        "bf16": "bf16",
        "c64": "complex<f32>",
        "f8e5m2": "f8E5M2",
    }
    assert {hlo: mlir_type(hlo) for hlo in names} == names
