"""The documents name files and commands that exist."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from kernelcast.cli.app import app

_ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").glob("*.md")])
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMAND_LINE = re.compile(r"(?:^|&& )(kernelcast .+?)(?= +# | && |$)", re.MULTILINE)
_REPOSITORY_FILE = re.compile(r"(?:src|tests|docs|experiments|benchmarks|requirements|\.ci)/[\w./-]+\w")

by_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@by_document
def test_links_lead_somewhere(document: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", document.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), f"{document.name} links to {target}, which does not exist"
        if anchor:
            headings = {_anchor(heading) for heading in _HEADING.findall(_FENCE.sub("", file.read_text()))}
            assert anchor in headings, f"{document.name} links to {target}; the headings are {headings}"


@by_document
def test_files_of_the_repository_that_are_named_exist(document: Path) -> None:
    # docs/results.json and its history are there once something has been recorded.
    for span in _SPAN.findall(_FENCE.sub("", document.read_text())):
        if _REPOSITORY_FILE.fullmatch(span) and not span.startswith("docs/results"):
            assert (_ROOT / span).exists(), f"{document.name} names {span}, which does not exist"


@by_document
def test_commands_and_options_that_are_named_exist(document: Path) -> None:
    for line in command_lines(document.read_text()):
        assert not _wrong(line), f"{document.name}: `{line}`: {_wrong(line)}"


def test_commands_that_messages_and_docstrings_name_exist() -> None:
    for file in sorted((_ROOT / "src").rglob("*.py")):
        for line in command_lines(file.read_text()):
            assert not _wrong(line), f"{file.name}: `{line}`: {_wrong(line)}"


@by_document
def test_make_targets_that_are_named_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (_ROOT / "Makefile").read_text(), re.MULTILINE))
    text = document.read_text()
    named = re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)
    assert set(named) <= targets, f"{document.name} names {set(named) - targets}; the Makefile has {targets}"


def test_every_command_is_documented() -> None:
    text = (_ROOT / "docs" / "command-line.md").read_text()
    for name, command in commands().commands.items():
        assert f"kernelcast {name}" in text, f"docs/command-line.md does not tell of `kernelcast {name}`"
        for inner in command.commands if isinstance(command, TyperGroup) else ():
            assert re.search(rf"`(kernelcast )?({name} )?{inner}\b", text), f"nor of `{name} {inner}`"


def test_the_reading_of_commands_sees_what_is_wrong() -> None:
    block = "```\nkernelcast tune rbf -o x.json  # why\nmake && kernelcast doctor\n```"
    text = f"`kernelcast zoo list --nope` and\n{block}\n"
    assert list(command_lines(text)) == [
        "kernelcast tune rbf -o x.json",
        "kernelcast doctor",
        "kernelcast zoo list --nope",
    ]
    assert _wrong("kernelcast zoo list --nope") == "no option --nope"
    assert _wrong("kernelcast zoo lost").startswith("no command lost, there are list")
    assert not _wrong("kernelcast COMMAND --help")


def command_lines(text: str) -> Iterator[str]:
    """Each command line that stands in a fenced block or a code span."""
    for block in _FENCE.findall(text):
        yield from _COMMAND_LINE.findall(block)
    for span in _SPAN.findall(_FENCE.sub("", text)):
        if span.startswith("kernelcast "):
            yield span


def _wrong(line: str) -> str:
    """What a command line names that the program does not know; empty where it is right."""
    command: TyperCommand | TyperGroup = commands()
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "…"]
    # A word in capitals, such as COMMAND, stands for any.
    while words and isinstance(command, TyperGroup) and not words[0].startswith("-") and words[0].islower():
        if words[0] not in command.commands:
            return f"no command {words[0]}, there are {', '.join(command.commands)}"
        command = command.commands[words.pop(0)]
    known = {"--help", *(o for p in command.params for o in (*p.opts, *p.secondary_opts))}
    unknown = [word for word in words if word.startswith("-") and word not in known]
    return f"no option {', '.join(unknown)}" if unknown else ""


@cache
def commands() -> TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def _anchor(heading: str) -> str:
    """The fragment by which a heading is linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
