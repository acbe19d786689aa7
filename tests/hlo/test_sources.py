"""Programs from everywhere: each kind of source, the stage chosen, and what is said about bad ones."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import export
from jax.interpreters import mlir

from kernelcast.errors import HloError, KernelcastError
from kernelcast.hlo.sources import Loaded, Stage, load, to_stablehlo
from kernelcast.hlo.sources.dump import list_dump
from kernelcast.hlo.sources.formats import Format, module_proto, sniff
from kernelcast.hlo.text import parse
from kernelcast.hlo.xla import text_to_proto

SHAPE = jax.ShapeDtypeStruct((4, 8), jnp.float32)
TEXT = """HloModule double

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  ROOT y = f32[4,8]{1,0} add(x, x)
}
"""
SCHEDULED = TEXT.replace("HloModule double", "HloModule double, is_scheduled=true")


def double(x: jax.Array) -> jax.Array:
    return x + x


def opcodes(loaded: Loaded) -> list[str]:
    return sorted(i.opcode for i in loaded.program.entry_computation)


@pytest.fixture(scope="module")
def lowered() -> jax.stages.Lowered:
    return jax.jit(double).lower(SHAPE)


@pytest.fixture(scope="module")
def serialised(lowered: jax.stages.Lowered) -> dict[Format, bytes]:
    """The same program in each format."""
    proto = text_to_proto(TEXT)
    module = lowered.compiler_ir("stablehlo")
    return {
        Format.HLO_TEXT: TEXT.encode(),
        Format.HLO_PROTO: proto,
        Format.STABLEHLO_TEXT: lowered.as_text().encode(),
        Format.STABLEHLO_BYTECODE: mlir.module_to_bytecode(module),
        Format.JAX_EXPORT: bytes(export.export(jax.jit(double))(SHAPE).serialize()),
    }


def hlo_proto(module: bytes) -> bytes:
    """An HloProto around a HloModuleProto: field 1, its length, the module, and a field 3."""
    assert 128 <= len(module) < 1 << 14
    length = bytes([len(module) & 0x7F | 0x80, len(module) >> 7])
    return b"\x0a" + length + module + b"\x1a\x00"


@pytest.mark.parametrize("kind", list(Format))
def test_each_format_is_told_by_its_content_and_read(
    kind: Format, serialised: dict[Format, bytes], tmp_path: Path
) -> None:
    assert sniff(serialised[kind], "it") is kind
    path = tmp_path / "name_that_says.nothing"
    path.write_bytes(serialised[kind])
    loaded = load(path)
    assert opcodes(loaded) == ["add", "parameter"]
    assert loaded.stage is Stage.UNOPTIMISED
    assert loaded.origin == str(path)
    stablehlo = to_stablehlo(str(path))
    assert "stablehlo.add" in stablehlo
    assert "module @" in stablehlo


def test_live_jax_objects_are_read(lowered: jax.stages.Lowered) -> None:
    for source, arguments in (
        (double, (SHAPE,)),
        (double, (np.ones((4, 8), np.float32),)),
        (jax.jit(double), (SHAPE,)),
        (lowered, ()),
        (export.export(jax.jit(double))(SHAPE), ()),
    ):
        assert opcodes(load(source, *arguments)) == ["add", "parameter"]
        assert "stablehlo.add" in to_stablehlo(source, *arguments)


def test_a_function_is_compiled_when_the_optimised_stage_is_wanted(lowered: jax.stages.Lowered) -> None:
    for source, arguments in ((double, (SHAPE,)), (lowered, ()), (lowered.compile(), ())):
        loaded = load(source, *arguments, stage=Stage.OPTIMISED)
        assert loaded.stage is Stage.OPTIMISED
        assert loaded.program.is_scheduled


def test_an_unused_argument_stays_a_parameter() -> None:
    loaded = load(lambda x, unused: x + 1, SHAPE, SHAPE)
    assert len(loaded.program.entry_computation.parameters) == 2


def test_donation_survives() -> None:
    jitted = jax.jit(double, donate_argnums=0)
    assert load(jitted, SHAPE).program.aliases[0].parameter == 0
    assert "tf.aliasing_output" in to_stablehlo(jitted, SHAPE)


def test_large_constants_keep_their_values() -> None:
    table = np.arange(64, dtype=np.float32)
    program = load(lambda x: x + table, jax.ShapeDtypeStruct((64,), jnp.float32)).program
    constants = [i for c in program.computations for i in c if i.opcode == "constant"]
    assert constants
    assert not any(i.is_elided for i in constants)


def test_an_exported_function_with_symbolic_shapes_needs_arguments(tmp_path: Path) -> None:
    symbolic = jax.ShapeDtypeStruct(export.symbolic_shape("n,8"), jnp.float32)
    exported = export.export(jax.jit(double))(symbolic)
    path = tmp_path / "double.bin"
    path.write_bytes(exported.serialize())
    for source in (exported, path):
        with pytest.raises(HloError, match=r"symbolic shapes.*give its arguments"):
            load(source)
        loaded = load(source, SHAPE)
        assert loaded.program.entry_computation.parameters[0].shape.dimensions == (4, 8)


def test_an_hlo_proto_is_unwrapped(serialised: dict[Format, bytes]) -> None:
    module = serialised[Format.HLO_PROTO]
    wrapped = hlo_proto(module)
    assert module_proto(module) == module
    assert module_proto(wrapped) == module
    assert opcodes(load(wrapped)) == ["add", "parameter"]


def test_a_nameless_module_gets_a_name() -> None:
    body = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    text = f"module {{\n  {body}\n}}"
    assert to_stablehlo(text).startswith("module @program {")


@pytest.fixture
def dump(tmp_path: Path, serialised: dict[Format, bytes]) -> Path:
    """Two modules, the second larger, with the other files that XLA writes beside them."""
    small = "module_0001.jit_small"
    large = "module_0003.jit_double.v2"
    padding = "\n" + "// padding\n" * 100
    for stem, extra in ((small, ""), (large, padding)):
        (tmp_path / f"{stem}.before_optimizations.txt").write_text(TEXT + extra)
        (tmp_path / f"{stem}.cpu_after_optimizations.txt").write_text(SCHEDULED + extra)
        (tmp_path / f"{stem}.cpu_after_optimizations-buffer-assignment.txt").write_text("BufferAssignment")
        (tmp_path / f"{stem}.debug_options").write_text("xla_x: 1")
    (tmp_path / f"{large}.before_optimizations.hlo.pb").write_bytes(serialised[Format.HLO_PROTO])
    (tmp_path / "jit_double").mkdir()
    return tmp_path


def test_a_dump_gives_its_largest_module_before_optimisations(dump: Path) -> None:
    assert [(f.number, f.stage.value, f.is_proto) for f in list_dump(dump)] == [
        ("0001", "unoptimised", False),
        ("0001", "optimised", False),
        ("0003", "unoptimised", True),
        ("0003", "unoptimised", False),
        ("0003", "optimised", False),
    ]
    loaded = load(dump)
    assert loaded.stage is Stage.UNOPTIMISED
    assert "module_0003.jit_double.v2.before_optimizations.hlo.pb" in loaded.origin
    assert "the largest of 2 modules" in loaded.origin


@pytest.mark.parametrize("module", ["1", "0001", "jit_small"])
def test_a_module_of_a_dump_is_chosen_by_number_or_name(dump: Path, module: str) -> None:
    loaded = load(dump, module=module, stage=Stage.OPTIMISED)
    assert "module_0001.jit_small.cpu_after_optimizations.txt" in loaded.origin
    assert loaded.stage is Stage.OPTIMISED


def test_a_dump_says_what_it_holds_when_asked_for_something_else(dump: Path) -> None:
    with pytest.raises(KernelcastError, match=r"no module '7'; there are 0001 \(jit_small\), 0003"):
        load(dump, module="7")
    for path in dump.glob("*before*"):
        path.unlink()
    assert load(dump).stage is Stage.OPTIMISED
    with pytest.raises(KernelcastError, match="no unoptimised module there, only optimised"):
        load(dump, stage=Stage.UNOPTIMISED)


def test_a_folder_without_a_dump_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelcastError, match=r"no XLA dump in this folder.*xla_dump_to"):
        load(tmp_path)


def test_the_stage_of_a_text_is_told_and_checked() -> None:
    assert load(SCHEDULED).stage is Stage.OPTIMISED
    with pytest.raises(KernelcastError, match="holds an unoptimised program, but an optimised one was asked"):
        load(TEXT, stage=Stage.OPTIMISED)
    with pytest.raises(KernelcastError, match="is optimised already"):
        to_stablehlo(SCHEDULED)


def test_elided_constants_are_refused_by_name_where_values_are_needed() -> None:
    text = "HloModule m\nENTRY e {\n  ROOT table = f32[100] constant({...})\n}"
    assert load(text).program.entry_computation.root_instruction.is_elided
    with pytest.raises(
        HloError, match=r"the given text: %table: the values of this .* constant were left out"
    ):
        to_stablehlo(text)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty; expected HLO text"),
        (b"  \n", "is empty"),
        (b"hello there\n", "is text that starts with 'hello there"),
        (b"\x7fELF\x02\x01\x00\x00", "no known format .*starting with 7f 45 4c 46"),
        (b"HloModule m\nENTRY e {\n  ROOT x = f32[4] foo(", "line 3"),
        (b"module @m {", "StableHLO module"),
        (b"ML\xefR\x0dMLIR", "StableHLO module"),
        (b"HloModule m\n\xff", "not all UTF-8"),
    ],
)
def test_bad_files_are_named_with_what_is_wrong(content: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.hlo"
    path.write_bytes(content)
    for read in (load, to_stablehlo):
        with pytest.raises(KernelcastError, match=f"bad.hlo: .*{text}"):
            read(path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"// note\nHloModule m\n", Format.HLO_TEXT),
        (b"/* a\n b */ ENTRY e {", Format.HLO_TEXT),
        (b"e {\n  a = f32[] parameter(0)", Format.HLO_TEXT),
        (b"%sum (a: f32[]) -> f32[] {", Format.HLO_TEXT),
        (b"module {", Format.STABLEHLO_TEXT),
        (b"#loc = loc(unknown)\nmodule @m {", Format.STABLEHLO_TEXT),
        (b'"builtin.module"() ({', Format.STABLEHLO_TEXT),
        (b"ML\xefR\x01", Format.STABLEHLO_BYTECODE),
    ],
)
def test_beginnings_that_tell(content: bytes, kind: Format) -> None:
    assert sniff(content, "it") is kind


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_of_a_format_or_an_error_of_ours(content: bytes) -> None:
    try:
        sniff(content, "it")
    except KernelcastError as error:
        assert str(error).startswith("it: ")  # noqa: PT017


@pytest.mark.parametrize("kind", [Format.HLO_PROTO, Format.STABLEHLO_BYTECODE, Format.JAX_EXPORT])
def test_binary_files_cut_short_are_refused(kind: Format, serialised: dict[Format, bytes]) -> None:
    whole = serialised[kind]
    for length in (len(whole) // 4, len(whole) // 2):
        with pytest.raises(KernelcastError, match="the given bytes: "):
            load(whole[:length])


def test_a_shape_that_aborts_xla_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.hlo"
    path.write_text("HloModule m\nENTRY e { a = f32[4,8] parameter(0)\nROOT r = f32[31] reshape(a) }")
    for read in (load, to_stablehlo):
        with pytest.raises(HloError, match=r"bad.hlo: line 3, %r: .*32.*31") as caught:
            read(path)
        assert (caught.value.line, caught.value.instruction) == (3, "r")


def test_an_invalid_program_is_refused_before_xla_sees_it() -> None:
    program = parse("HloModule m\nENTRY e { a = f32[4,8] parameter(0)\nROOT r = f32[31] reshape(a) }")
    with pytest.raises(HloError, match="%r"):
        to_stablehlo(program)


def test_missing_files_and_wrong_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelcastError, match=r"module_1\.txt: there is no such file"):
        load("module_1.txt")
    with pytest.raises(KernelcastError, match="expected a regular file"):
        load(Path("/dev/null"))
    with pytest.raises(KernelcastError, match="cannot read a program from int"):
        load(3)
    with pytest.raises(KernelcastError, match="has its shapes already; give it no arguments"):
        load(TEXT, SHAPE)
