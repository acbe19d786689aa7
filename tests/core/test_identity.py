"""Identities of targets: what makes two times comparable."""

import json
from dataclasses import asdict, fields, replace

import pytest

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Statistic

CPU = TargetIdentity(kind="xla-cpu", chip="A CPU", compiler="jaxlib 0.10.2", flags=("--a", "--b=1"))
OTHER = {
    "kind": "xla-tpu-aot", "chip": "Another", "compiler": "jaxlib 0.10.3", "flags": ("--b=1", "--a"),
    "threads": 2, "clock": "simulated", "label": Statistic.GATED_MIN_DIFFERENCE,
}  # fmt: skip


def test_json_gives_the_same_identity_back() -> None:
    assert TargetIdentity.from_json(json.loads(json.dumps(asdict(CPU)))) == CPU


@pytest.mark.parametrize("name", [field.name for field in fields(TargetIdentity)])
def test_every_field_counts(name: str) -> None:
    other = replace(CPU, **{name: OTHER[name]})
    assert other.digest != CPU.digest
    assert CPU.differences(other) == f"{name}: {asdict(CPU)[name]}, not {OTHER[name]}"


def test_differences_are_told_one_by_one() -> None:
    assert CPU.differences(CPU) == ""
    text = CPU.differences(replace(CPU, threads=2, clock="device"))
    assert text == "threads: 1, not 2; clock: wall, not device"


def test_the_digest_is_short_and_the_same_in_every_process() -> None:
    assert CPU.digest == TargetIdentity(**asdict(CPU)).digest
    assert len(CPU.digest) == 16
    int(CPU.digest, 16)
