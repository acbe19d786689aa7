"""Splits: families fixed in a file, kernels by the strictest program they occur in."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.errors import SchemaError
from kernelcast.split import SPLIT_SCHEMA, SplitPart, assign_kernels, novelty, parse_split, read_split

TRAIN, VALIDATION, TEST = SplitPart.TRAIN, SplitPart.VALIDATION, SplitPart.TEST
BODY: dict[str, Any] = {
    "schema": SPLIT_SCHEMA, "name": "first", "train": ["mlp", "lstm"], "validation": ["vae"], "test": ["gpt"],
}  # fmt: skip


def test_a_split_file_puts_families_into_parts(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text(json.dumps(BODY))
    split = read_split(path)
    assert split.part_of("lstm") is TRAIN
    assert split.part_of("gpt") is TEST
    reordered = parse_split({**BODY, "train": ["lstm", "mlp"]}, place="x")
    assert reordered.digest == split.digest
    assert parse_split({**BODY, "train": ["mlp"]}, place="x").digest != split.digest
    with pytest.raises(SchemaError, match="no family 'moe'; it knows gpt, lstm, mlp, vae"):
        split.part_of("moe")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "has schema None, a split file has"),
        ({**BODY, "schema": "other"}, "has schema 'other'"),
        ({**BODY, "test": ["mlp"]}, "family 'mlp' is in train and in test"),
        ({**BODY, "test": "gpt"}, "'test' must be a list of family names, got 'gpt'"),
        ({k: v for k, v in BODY.items() if k != "validation"}, "'validation' must be a list"),
    ],
)
def test_a_wrong_split_file_is_refused(body: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_split(body, place="split.json")


def test_unreadable_split_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"cannot read the split .*none.json: No such file"):
        read_split(tmp_path / "none.json")
    (tmp_path / "cut.json").write_text("{")
    with pytest.raises(SchemaError, match="not whole JSON"):
        read_split(tmp_path / "cut.json")


def test_a_kernel_goes_to_its_strictest_program() -> None:
    parts = {"mlp": TRAIN, "vae": VALIDATION, "gpt": TEST}
    pairs = [("a", "mlp"), ("b", "mlp"), ("b", "vae"), ("c", "vae"), ("c", "gpt"), ("d", "gpt"), ("a", "mlp")]
    kernels = assign_kernels(pairs, parts)
    assert kernels.train == {"a"}
    assert kernels.validation == {"b"}
    assert kernels.test == {"c", "d"}
    assert kernels.seen_elsewhere == {"c"}
    with pytest.raises(SchemaError, match="program 'moe', which has no part"):
        assign_kernels([("a", "moe")], parts)


def test_novelty_leaves_out_other_sizes_of_a_known_graph() -> None:
    parts = {"mlp": TRAIN, "gpt": TEST}
    kernels = assign_kernels([("a", "mlp"), ("b", "mlp"), ("b", "gpt"), ("c", "gpt"), ("d", "gpt")], parts)
    new = novelty(kernels, {"a": "s1", "b": "s2", "c": "s1", "d": "s3"})
    assert new.all == {"b", "c", "d"}
    assert new.unseen_fingerprints == {"c", "d"}
    assert new.unseen_skeletons == {"d"}


def test_novelty_of_a_pruned_dataset_judges_only_kernels_whose_text_is_left() -> None:
    parts = {"mlp": TRAIN, "gpt": TEST}
    kernels = assign_kernels([("a", "mlp"), ("b", "mlp"), ("c", "gpt"), ("d", "gpt"), ("e", "gpt")], parts)
    new = novelty(kernels, {"a": "s1", "c": "s1", "d": "s3"})
    assert new.unseen_fingerprints == {"c", "d", "e"}
    assert new.unseen_skeletons == {"d"}


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("pqrs"))), st.data())
def test_parts_never_leak(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    parts = {program: data.draw(st.sampled_from(list(SplitPart))) for program in "pqrs"}
    kernels = assign_kernels(pairs, parts)
    assert kernels.train | kernels.validation | kernels.test == {kernel for kernel, _ in pairs}
    assert not kernels.train & kernels.validation
    for kernel, program in pairs:
        if parts[program] is TEST:
            assert kernel in kernels.test
        elif parts[program] is VALIDATION:
            assert kernel not in kernels.train
    new = novelty(kernels, dict.fromkeys((kernel for kernel, _ in pairs), "s"))
    assert new.unseen_skeletons <= new.unseen_fingerprints <= new.all
