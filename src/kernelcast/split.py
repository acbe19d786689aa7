"""Which programs train, validate and test, and which kernels follow: no kernel of a test program trains.

A kernel belongs to many programs, so it is not the kernels that are split. A committed file puts families
into parts, fixed before the first training; kernels follow from where they occur.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kernelcast.errors import SchemaError

SPLIT_SCHEMA = "kernelcast-split-1"


class SplitPart(StrEnum):
    """What a program is used for."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Families by part.

    Attributes:
        families: part of each family; all variants of one architecture stay together.

    >>> body = {"schema": SPLIT_SCHEMA, "name": "s", "train": ["mlp"], "validation": [], "test": ["gpt"]}
    >>> parse_split(body, place="here").part_of("gpt").value
    'test'
    """

    name: str
    families: Mapping[str, SplitPart]

    def part_of(self, family: str) -> SplitPart:
        """The part of a family.

        Raises:
            SchemaError: a family that the split does not know, rather than a guess that may leak.
        """
        try:
            return self.families[family]
        except KeyError:
            raise SchemaError(
                f"split {self.name} has no family {family!r}; it knows {', '.join(sorted(self.families))}: "
                "add it to one part of the split file, or leave its programs out"
            ) from None

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that stand for who is in which part."""
        text = json.dumps({family: part.value for family, part in sorted(self.families.items())})
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def read_split(path: Path) -> Split:
    """The split in a JSON file ``{"schema", "name", "train": [families], "validation": […], "test": […]}``.

    Raises:
        SchemaError: not such a file, or a family in two parts.
    """
    try:
        body = json.loads(path.read_bytes())
    except OSError as error:
        raise SchemaError(f"cannot read the split {path}: {error.strerror}") from error
    except ValueError:
        raise SchemaError(f"{path} is not a split file: it is not whole JSON text") from None
    return parse_split(body, place=str(path))


def parse_split(body: Any, *, place: str) -> Split:
    """The split that a JSON value describes; ``place`` says in errors where it came from."""
    schema = body.get("schema") if isinstance(body, dict) else None
    if schema != SPLIT_SCHEMA:
        raise SchemaError(f"{place} has schema {schema!r}, a split file has {SPLIT_SCHEMA!r}")
    families: dict[str, SplitPart] = {}
    for part in SplitPart:
        listed = body.get(part.value)
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise SchemaError(f"{place}: {part.value!r} must be a list of family names, got {listed!r}")
        for family in listed:
            if family in families:
                raise SchemaError(
                    f"{place}: family {family!r} is in {families[family].value} and in {part.value}"
                )
            families[family] = part
    return Split(name=str(body.get("name", "")), families=families)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelParts:
    """Kernels by what they may be used for; fingerprints.

    A kernel of several programs goes to the strictest: test before validation before training.

    Attributes:
        train: that occur in training programs only.
        validation: that occur in a validation program and in no test program.
        test: that occur in a test program.
        seen_elsewhere: those of ``test`` that also occur in a program of another part. They do not train, but
            a program in training looks like theirs; errors are reported with and without them.
    """

    train: frozenset[str]
    validation: frozenset[str]
    test: frozenset[str]
    seen_elsewhere: frozenset[str]


def assign_kernels(
    occurrences: Iterable[tuple[str, str]], program_parts: Mapping[str, SplitPart]
) -> KernelParts:
    """Puts each kernel into a part by where it occurs.

    Args:
        occurrences: (kernel, program) pairs, repeats allowed, of all plans that are known.
        program_parts: part of each program.

    Raises:
        SchemaError: an occurrence in a program without a part.
    """
    parts_of: dict[str, set[SplitPart]] = {}
    for kernel, program in occurrences:
        if program not in program_parts:
            raise SchemaError(
                f"kernel {kernel} occurs in program {program!r}, which has no part of the split"
            )
        parts_of.setdefault(kernel, set()).add(program_parts[program])
    strictest = {
        kernel: next(
            part for part in (SplitPart.TEST, SplitPart.VALIDATION, SplitPart.TRAIN) if part in parts
        )
        for kernel, parts in parts_of.items()
    }
    having = lambda part: frozenset(kernel for kernel, own in strictest.items() if own is part)  # noqa: E731
    return KernelParts(
        train=having(SplitPart.TRAIN),
        validation=having(SplitPart.VALIDATION),
        test=having(SplitPart.TEST),
        seen_elsewhere=frozenset(k for k, own in parts_of.items() if SplitPart.TEST in own and len(own) > 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Novelty:
    """The three populations over which test errors are reported, each inside the one before; fingerprints.

    Attributes:
        all: every kernel of a test program.
        unseen_fingerprints: those that occur in no training or validation program.
        unseen_skeletons: those of which training and validation have not even the graph at another size.
    """

    all: frozenset[str]
    unseen_fingerprints: frozenset[str]
    unseen_skeletons: frozenset[str]


def novelty(parts: KernelParts, skeletons: Mapping[str, str]) -> Novelty:
    """The test kernels by how new they are.

    Args:
        skeletons: skeleton of each kernel whose text is known. A pruned dataset lacks those of kernels that
            were never timed: nothing was learned from them, and there is nothing to judge.
    """
    unseen = parts.test - parts.seen_elsewhere
    elsewhere = parts.train | parts.validation | parts.seen_elsewhere
    known = {skeletons[kernel] for kernel in elsewhere if kernel in skeletons}
    return Novelty(
        all=parts.test,
        unseen_fingerprints=unseen,
        unseen_skeletons=frozenset(
            kernel for kernel in unseen if kernel in skeletons and skeletons[kernel] not in known
        ),
    )
