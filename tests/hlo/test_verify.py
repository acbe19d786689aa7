"""The rules that valid HLO obeys, and that XLA is never handed what would abort it."""

import json
import random
import zipfile
from pathlib import Path

import pytest

from kernelcast.errors import HloError
from kernelcast.hlo.handover import Cause, Refused, hand_over
from kernelcast.hlo.rules import RULES, broken_rules
from kernelcast.hlo.text import parse
from kernelcast.hlo.verify import parse_verified, verify, violations

ADD = "add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }"


def module(body: str, others: str = ADD, header: str = "") -> str:
    return f"HloModule m{header}\n{others}\nENTRY e {{\n{body}\n}}"


P = "p = f32[4,8] parameter(0)"
# Rule → (instruction that breaks it, part of what is said).
BROKEN: dict[str, list[tuple[str, str]]] = {
    "opcode": [("ROOT r = f32[4,8] frobnicate(p)", "unknown opcode frobnicate")],
    "shape": [
        ("ROOT r = f32[4,8]{0,0} negate(p)", r"must order its 2 dimensions, got \[0, 0\]"),
        ("ROOT r = f32[4,8]{1} negate(p)", r"must order its 2 dimensions, got \[1\]"),
        ("ROOT r = token[4] after-all()", "a token has no dimensions"),
        ("ROOT r = f32[4,8]{1,0:T(8,128)L(0)} copy(p)", "nor its padding 0"),
    ],
    "operand-count": [
        ("ROOT r = f32[4,8] add(p)", "add takes 2 operands, got 1"),
        ("ROOT r = f32[] conditional()", "conditional takes at least 2 operands, got 0"),
        ("ROOT r = (u64[2], u32[4]) rng-bit-generator(), algorithm=rng_three_fry", "takes 1 operands, got 0"),
        ("ROOT r = f32[4] reduce(p, p, p), dimensions={1}, to_apply=add", "as many start values as arrays"),
        ("ROOT r = f32[4,8] scatter(p, p, p, p), to_apply=add", "n operands, indices and n updates"),
        ("ROOT r = ((), (), s32[]) dot-start()", "dot-start takes at least 2 operands, got 0"),
    ],
    "attributes": [
        ("ROOT r = f32[4,8] map(p)", "map needs to_apply="),
        (
            "b = pred[] parameter(1)  ROOT r = f32[4,8] conditional(b, p, p)",
            "0 branches for 2 branch operands",
        ),
    ],
    "window": [
        (
            "z = f32[] constant(0)  ROOT r = f32[4,8] reduce-window(p, z), window={size=0x1}, to_apply=add",
            "must be >= 1",
        )
    ],
    "signature": [
        ("ROOT r = f32[] call(p), to_apply=add", "hands 1 operands to computation add, which has 2"),
        ("ROOT r = f32[4,8] sort(p), dimensions={1}, to_apply=add", r"add must return pred\[\], returns f32"),
    ],
    "inference": [
        ("ROOT r = f32[31] reshape(p)", "reshape from 32 to 31 elements"),
        ("ROOT r = f32[4,9] negate(p)", r"expected f32\[4,8\], got f32\[4,9\]"),
        ("ROOT r = s32[4,8] negate(p)", r"expected f32\[4,8\], got s32\[4,8\]"),
        ("q = f32[4,7] parameter(1)  ROOT r = f32[4,8] add(p, q)", "different dimensions"),
        ("ROOT r = f32[8,4] transpose(p), dimensions={1,1}", "needs a permutation"),
        ("ROOT r = f32[4,8] transpose(p), dimensions={1,0}", r"expected f32\[8,4\]"),
        ("ROOT r = f32[4,4] slice(p), slice={[0:4], [4:9]}", r"slice \[4:9:1\] of an extent of 8"),
        ("ROOT r = f32[4,8,2] broadcast(p), dimensions={0,2}", "extent of 8 at dimension 2"),
        ("ROOT r = f32[8,8] concatenate(p, p), dimensions={2}", "along dimension 2"),
        ("ROOT r = f32[8,8] concatenate(p, p), dimensions={}", "needs one dimension"),
        ("ROOT r = f32[9,8] concatenate(p, p), dimensions={0}", r"expected f32\[8,8\]"),
        (
            "ROOT r = f32[4,4] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "extents 8 and 4",
        ),
        ("ROOT r = f32[4] dot(p, p), lhs_contracting_dims={2}, rhs_contracting_dims={0}", "dimensions"),
        ("ROOT r = s32[4] iota(), iota_dimension=1", "iota along dimension 1"),
        (
            "t = (f32[4,8]) tuple(p)  ROOT r = f32[4,8] get-tuple-element(t), index=1",
            "index 1 is out of range",
        ),
        ("z = f32[] constant(0)  ROOT r = f32[5,8] pad(p, z), padding=0_2x0_0", r"expected f32\[6,8\]"),
        (
            "z = f32[] constant(0)  ROOT r = f32[8] reduce(p, z), dimensions={2}, to_apply=add",
            "over dimensions",
        ),
        ("ROOT r = (u32[], u32[]) replica-id()", r"expected u32\[\]"),
        ("ROOT r = s32[] partition-id()", r"expected u32\[\]"),
        ("ROOT r = f32[4,8] reverse(p), dimensions={2}", "reverse of"),
        (
            "i = s32[] parameter(1)  ROOT r = f32[5,8] dynamic-slice(p, i, i), dynamic_slice_sizes={5,8}",
            "window",
        ),
    ],
    "literal": [
        ("ROOT r = f32[3] constant({1, 2})", "2 values instead of 3"),
        ("ROOT r = s32[] constant(true)", "truth value"),
        ("ROOT r = token[] constant(0)", "cannot be of type token"),
    ],
    "replica-groups": [
        (
            "ROOT r = f32[16,8] all-gather(p), dimensions={0}, replica_groups=[2,2]<=[16]",
            "arranges 16 devices as 2,2, which holds 4",
        ),
        (
            "ROOT r = f32[4,8] all-reduce(p), replica_groups=mesh['a'=2] {'bogus'}, to_apply=add",
            "axis 'bogus' of a mesh with axes a",
        ),
    ],
    "sharding": [
        (
            "ROOT r = f32[4,8] copy(p), sharding={devices=[2,1]0,1,2}",
            r"lists 3 devices for \[2,1\], which holds 2",
        ),
        ("ROOT r = f32[4,8] copy(p), sharding={devices=[2,-1]0,1}", "negative number of tiles"),
    ],
    "output-aliases": [
        (
            'ROOT r = f32[4,8] custom-call(p), custom_call_target="t", '
            "output_to_operand_aliasing={{}: (1, {})}",
            "names operand 1 of 1",
        )
    ],
}


def test_every_rule_is_named_once_and_tested() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert set(names) == set(BROKEN)
    assert all(rule.states.endswith(".") for rule in RULES)


@pytest.mark.parametrize(
    ("rule", "body", "said"), [(rule, *case) for rule, cases in BROKEN.items() for case in cases]
)
def test_a_broken_rule_names_instruction_and_reason(rule: str, body: str, said: str) -> None:
    program = parse(module(f"{P}\n{body}"))
    entry = program.entry_computation
    (error,) = violations(program)
    assert error.instruction == "r"
    with pytest.raises(HloError, match=said):
        verify(program)
    # It is this rule that speaks, and the first that does.
    (checked,) = [r for r in RULES if r.name == rule]
    try:
        first = next(checked.check(program, entry, entry["r"]))
    except HloError as raised:
        first = raised.message
    assert first == next(broken_rules(program, entry, entry["r"]))


def test_case_5_a_bad_shape_is_an_error_with_its_place() -> None:
    text = "HloModule m\nENTRY e { a = f32[4,8] parameter(0)\nROOT r = f32[31] reshape(a) }"
    with pytest.raises(HloError) as raised:
        parse_verified(text)
    assert str(raised.value) == "line 3, %r: reshape from 32 to 31 elements"
    assert (raised.value.line, raised.value.instruction) == (3, "r")


def test_all_violations_are_told_in_the_order_of_the_program() -> None:
    program = parse(module(f"{P}\na = f32[3] negate(p)\nb = f32[5] negate(p)\nROOT c = f32[3] abs(a)"))
    assert [error.instruction for error in violations(program)] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (module("ROOT p = f32[] parameter(1)"), "must be numbered 0 to 0, got"),
        (
            module(
                "p = f32[] parameter(0)\nROOT r = f32[] call(p), to_apply=f",
                "f { ROOT q = f32[] parameter(0) }",
            ).replace(
                "ROOT q = f32[] parameter(0)", "q = f32[] parameter(0)\nROOT z = f32[] call(q), to_apply=f"
            ),
            "calls itself|call.*f",
        ),
        (
            module(
                "ROOT p = f32[4] parameter(0)", header=", entry_computation_layout={(f32[5]{0})->f32[4]{0}}"
            ),
            "parameters in entry_computation_layout",
        ),
        (
            module("ROOT p = f32[4] parameter(0)", header=", input_output_alias={ {}: (1, {}, may-alias) }"),
            "input_output_alias names parameter 1 of 1",
        ),
        (
            module("ROOT p = f32[4] parameter(0)", header=", input_output_alias={ {0}: (0, {}, may-alias) }"),
            "names a place",
        ),
        (
            module("ROOT p = f32[4] parameter(0)").replace("ENTRY e {", "ENTRY e (p: token[4]) -> f32[4] {"),
            "token",
        ),
    ],
    ids=["parameter numbers", "recursion", "entry layout", "donation", "donated place", "signature"],
)
def test_what_is_wrong_between_computations(text: str, said: str) -> None:
    with pytest.raises(HloError, match=said):
        parse_verified(text)


BRANCHES = """
a { ROOT x = f32[4] parameter(0) }
b { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }
c { s = (s32[]) parameter(0)  ROOT g = s32[] get-tuple-element(s), index=0 }
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "p = pred[] parameter(0)  x = f32[5] parameter(1)\n"
            "ROOT r = f32[4] conditional(p, x, x), branch_computations={a, b}",
            r"parameter %x of computation a: expected f32\[4\], got f32\[5\]",
        ),
        (
            "p = f32[] parameter(0)  x = f32[4] parameter(1)\n"
            "ROOT r = f32[4] conditional(p, x, x), branch_computations={a, b}",
            r"selects by pred\[\] or s32\[\], got f32",
        ),
        (
            "x = f32[4] parameter(0)\nROOT r = f32[4] while(x), condition=a, body=b",
            r"computation a must return pred\[\], returns f32\[4\]",
        ),
        (
            "x = f32[4] parameter(0)\nROOT r = f32[5] fusion(x), kind=kLoop, calls=b",
            r"result of computation b: expected f32\[4\], got f32\[5\]",
        ),
    ],
)
def test_callers_and_callees_agree(body: str, said: str) -> None:
    with pytest.raises(HloError, match=said):
        parse_verified(module(body, BRANCHES))


@pytest.mark.parametrize(
    "body",
    [
        "ROOT r = f32[2,2] constant(1)",  # one value for all elements
        "ROOT r = f32[0] constant({})",
        "ROOT r = c64[2] constant({(1, 2), (3, 4)})",
        "p = bf16[4] parameter(0)  ROOT r = f32[4] negate(p)",  # floats of another precision
        "p = f32[<=8] parameter(0)  ROOT r = f32[<=8] negate(p)",
        "p = f32[?,8] parameter(0)  ROOT r = f32[?,8] negate(p)",
        "p = f32[4,8]{1,0:T(8,128)S(1)} parameter(0)  ROOT r = f32[4,8]{0,1} copy(p)",
        "p = f32[0,8] parameter(0)  ROOT r = f32[8,0] transpose(p), dimensions={1,0}",
        "p = f32[2] parameter(0)  z = f32[] constant(0)  ROOT r = f32[0] pad(p, z), padding=-1_-1",
    ],
)
def test_what_xla_takes_is_taken(body: str) -> None:
    assert violations(parse(module(body))) == []


# The collections of texts.


def texts(archive: Path) -> list[tuple[str, str, str]]:
    """(file, why XLA refuses it, text)."""
    with zipfile.ZipFile(archive) as found:
        index = json.loads(found.read("INDEX.json"))
        return [(e["file"], str(e.get("why", "")), found.read(e["file"]).decode()) for e in index]


def test_no_false_alarms_on_modules_that_xla_takes(shared_data: Path) -> None:
    sample = random.Random(0).sample(texts(shared_data / "hlo" / "modules.zip"), 250)
    refused = [name for name, _, text in sample if violations(parse(text))]
    assert len(refused) <= 0.01 * len(sample), refused


def test_no_false_alarms_on_programs_for_tpu(shared_data: Path) -> None:
    for path in sorted((shared_data / "tpu_hlo").glob("*.hlo")):
        assert violations(parse(path.read_text())) == [], path.name


def test_no_false_alarms_on_whole_programs(shared_data: Path) -> None:
    programs = texts(shared_data / "hlo" / "whole_programs.zip")
    for name, _, text in random.Random(0).sample(programs, 6):
        assert violations(parse(text)) == [], name


def test_texts_that_abort_xla_are_refused_before_it(shared_data: Path) -> None:
    crashing = [item for item in texts(shared_data / "hlo" / "rejected_by_xla.zip") if item[1] == "crash"]
    assert len(crashing) == 11
    for _, _, text in crashing:
        with pytest.raises(HloError):
            parse_verified(text)


def test_what_passes_the_verifier_does_not_abort_xla(shared_data: Path) -> None:
    passed: list[str] = []
    for _, why, text in texts(shared_data / "hlo" / "rejected_by_xla.zip"):
        try:
            parse_verified(text)
        except HloError:
            continue
        assert why != "crash"
        passed.append(text)
    answers = list(hand_over(passed))
    assert all(isinstance(a, Refused) and a.cause is Cause.INVALID for a in answers)
