"""Reads, writes and reads again a folder of HLO texts, and asks XLA's parser whether it sees the same."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelcast.errors import HloError
from kernelcast.hlo.format import format_program
from kernelcast.hlo.handover import Accepted, Cause, Refused, hand_over
from kernelcast.hlo.proto import canonical_proto
from kernelcast.hlo.text import parse
from kernelcast.hlo.verify import violations

_TIMED_RUNS = 5
_SMALLER_FILE_INSTRUCTIONS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFailure:
    """A text that did not come out as it should, and how."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionReport:
    """How one collection of texts fared.

    Attributes:
        tried: texts in the collection.
        same: texts read, written, read again as the same program, and, where XLA's parser takes the original,
            seen by it as the same proto.
        refused_by_xla: texts among ``same`` that XLA's parser does not take, written by us or not.
        failures: all others.
    """

    tried: int
    same: int
    refused_by_xla: int
    failures: tuple[FileFailure, ...]

    @property
    def same_fraction(self) -> float:
        return self.same / self.tried if self.tried else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedReport:
    """How the texts fared that XLA's parser rejects.

    Attributes:
        refused_by_reader: not read, with a clean error.
        refused_by_verifier: read, and found to break a rule before any hand-over.
        refused_by_xla: read and verified, then refused by XLA's parser without an abort.
        accepted_by_xla: read and verified, and what we wrote was taken.
        crashes: read and verified; what we wrote ended or stalled the child that XLA's parser ran in.
    """

    tried: int
    refused_by_reader: int
    refused_by_verifier: int
    refused_by_xla: int
    accepted_by_xla: int
    crashes: tuple[FileFailure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedReport:
    """The speed of ``parse``, best of five.

    Attributes:
        file: the text with most instructions.
        instructions_per_s: on it.
        slowdown: its time per instruction over that of ``smaller_file``; 1 where reading is linear.
    """

    file: str
    instructions: int
    instructions_per_s: float
    smaller_file: str
    smaller_instructions: int
    slowdown: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundtripReport:
    """Everything that ``roundtrip`` found."""

    modules: CollectionReport
    whole_programs: CollectionReport
    tpu: CollectionReport
    rejected: RejectedReport
    speed: SpeedReport


def roundtrip(
    folder: Path,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    clock: Callable[[], float] = time.perf_counter,
) -> RoundtripReport:
    """The report on all texts of a data folder.

    Args:
        folder: holds ``hlo/modules.zip``, ``hlo/whole_programs.zip``, ``hlo/rejected_by_xla.zip`` and
            ``tpu_hlo/*.hlo``.
        progress: called with the number of texts done and of all.
        clock: seconds.

    Raises:
        HloError: a file is missing or no archive; names it.
    """
    modules = _zipped(folder / "hlo" / "modules.zip")
    programs = _zipped(folder / "hlo" / "whole_programs.zip")
    rejected = _zipped(folder / "hlo" / "rejected_by_xla.zip")
    tpu = {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / "tpu_hlo").glob("*.hlo"))}
    total = len(modules) + len(programs) + len(tpu) + len(rejected)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    return RoundtripReport(
        modules=collection_report(modules, advance),
        whole_programs=collection_report(programs, advance),
        tpu=collection_report(tpu, advance),
        rejected=rejected_report(rejected, advance),
        speed=speed_report(programs, clock),
    )


def collection_report(
    texts: Mapping[str, str], advance: Callable[[], None] = lambda: None
) -> CollectionReport:
    """The round trip of each text by name, and both sides of it in XLA's eyes."""
    written: dict[str, str] = {}
    failures: list[FileFailure] = []
    for name, text in texts.items():
        try:
            program = parse(text)
            written[name] = format_program(program)
            if parse(written[name]) != program:
                failures.append(FileFailure(file=name, reason="what was written reads as another program"))
                del written[name]
        except HloError as error:
            failures.append(FileFailure(file=name, reason=f"not read: {error}"))
            written.pop(name, None)
        if name not in written:
            advance()
    refused = 0
    # Two children in step: XLA's parser fills constants that were left out from a counter of the process, so
    # in one child the second of two equal texts would differ.
    originals = hand_over(texts[name] for name in written)
    rewritten = hand_over(written.values())
    for name, original, ours in zip(written, originals, rewritten, strict=True):
        reason = _difference(original, ours)
        refused += isinstance(original, Refused)
        if reason is not None:
            failures.append(FileFailure(file=name, reason=reason))
        advance()
    return CollectionReport(
        tried=len(texts), same=len(texts) - len(failures), refused_by_xla=refused, failures=tuple(failures)
    )


def _difference(original: Accepted | Refused, ours: Accepted | Refused) -> str | None:
    if isinstance(original, Refused):
        return None
    if isinstance(ours, Refused):
        return f"XLA's parser takes the original, not what was written: {ours.reason}"
    if canonical_proto(original.result) != canonical_proto(ours.result):
        return "XLA's parser sees another proto in what was written"
    return None


def rejected_report(texts: Mapping[str, str], advance: Callable[[], None] = lambda: None) -> RejectedReport:
    """What becomes of texts that are wrong: an error of ours, or a hand-over that fails cleanly."""
    written: dict[str, str] = {}
    unread = invalid = 0
    for name, text in texts.items():
        try:
            program = parse(text)
        except HloError:
            unread += 1
            advance()
            continue
        if violations(program):
            invalid += 1
            advance()
        else:
            written[name] = format_program(program)
    refused = accepted = 0
    crashes: list[FileFailure] = []
    for name, answer in zip(written, hand_over(written.values()), strict=True):
        if isinstance(answer, Accepted):
            accepted += 1
        elif answer.cause is Cause.INVALID:
            refused += 1
        else:
            crashes.append(FileFailure(file=name, reason=answer.reason))
        advance()
    return RejectedReport(
        tried=len(texts),
        refused_by_reader=unread,
        refused_by_verifier=invalid,
        refused_by_xla=refused,
        accepted_by_xla=accepted,
        crashes=tuple(crashes),
    )


def speed_report(texts: Mapping[str, str], clock: Callable[[], float]) -> SpeedReport:
    """The speed on the largest of the texts, and on that nearest to 2,000 instructions."""
    sizes = {name: parse(text).instruction_count for name, text in texts.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    smaller = min(sizes, key=lambda name: abs(sizes[name] - _SMALLER_FILE_INSTRUCTIONS))
    per_instruction_s = {
        name: min(_seconds(texts[name], clock) for _ in range(_TIMED_RUNS)) / sizes[name]
        for name in (largest, smaller)
    }
    return SpeedReport(
        file=largest,
        instructions=sizes[largest],
        instructions_per_s=1 / per_instruction_s[largest],
        smaller_file=smaller,
        smaller_instructions=sizes[smaller],
        slowdown=per_instruction_s[largest] / per_instruction_s[smaller],
    )


def _seconds(text: str, clock: Callable[[], float]) -> float:
    start = clock()
    parse(text)
    return clock() - start


def _zipped(path: Path) -> dict[str, str]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".hlo"))
            return {name: archive.read(name).decode("utf-8") for name in names}
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise HloError(f"expected an archive of HLO texts at {path}: {error}") from error
