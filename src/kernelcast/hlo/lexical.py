"""The pieces of HLO text: names, strings, balanced brackets, attribute values, comments and positions."""

from __future__ import annotations

import re

from kernelcast.errors import HloError

NAME = r"[\w.\-]+"
STRING = r"""(?:"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+')"""


def _nested(opening: str, closing: str, depth: int) -> str:
    """The pattern of a bracket with strings and up to ``depth`` brackets of its own kind inside."""
    inner = rf"""[^{opening}{closing}"']++|{STRING}"""
    pattern = rf"{opening}(?:{inner})*+{closing}"
    for _ in range(depth):
        pattern = rf"{opening}(?:{inner}|{pattern})*+{closing}"
    return pattern


# A pattern of fixed depth matches in C what a loop in Python would take microseconds for; what is nested
# deeper is measured by balanced_end.
BRACES = _nested(r"\{", r"\}", 6)
PARENTHESES = _nested(r"\(", r"\)", 5)
BRACKETS = _nested(r"\[", r"\]", 2)

ARRAY_SHAPE = r"\w+\[[^\]\n]*\](?:\{[^{}]*\})?"
SHAPE = rf"(?:{ARRAY_SHAPE}|{PARENTHESES})"
VALUE = rf"""(?:[^\s,{{}}()\[\]"']++|{STRING}|{BRACES}|{PARENTHESES}|{BRACKETS})++"""

ATTRIBUTE = re.compile(rf"\s*,\s*([\w\-.]+)\s*=\s*({VALUE})", re.DOTALL)
SPACE = re.compile(r"\s*")

_COMMENT = re.compile(rf"{STRING}|/\*.*?\*/|//[^\n]*", re.DOTALL)
_BRACKET = re.compile(rf"{STRING}|[(){{}}\[\]]", re.DOTALL)


def without_comments(text: str) -> str:
    """The text with comments outside strings removed; line numbers stay as they were."""
    if "/*" not in text and "//" not in text:
        return text
    return _COMMENT.sub(_newlines_of_comment, text)


def _newlines_of_comment(match: re.Match[str]) -> str:
    found = match.group()
    return found if found[0] in "\"'" else "\n" * found.count("\n") if "\n" in found else ""


def balanced_end(text: str, start: int) -> int:
    """The position after the bracket that closes the one at ``start``, or -1; strings are skipped."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        token = match.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            if depth == 0:
                return match.end()
    return -1


def line_of(text: str, position: int) -> int:
    """The 1-based line of a position."""
    return text.count("\n", 0, position) + 1


def excerpt(text: str, position: int) -> str:
    """What stands at a position, shortened and quoted for an error message."""
    found = text[position : position + 40].split("\n", 1)[0].strip()
    return repr(found) if found else "the end of the line" if position < len(text) else "the end of the text"


def error_at(text: str, position: int, message: str, instruction: str | None = None) -> HloError:
    """An error that names the line of a position."""
    position = min(position, len(text))
    start = SPACE.match(text, position)
    return HloError(message, line=line_of(text, start.end() if start else position), instruction=instruction)
