"""The pieces of HLO text: names, strings, balanced brackets, attribute values, comments and positions."""

from __future__ import annotations

import re

from kernelcast.errors import HloError

# A pattern of fixed depth matches in C what a loop in Python takes microseconds for. JSON or tuples that
# nest deeper than this are measured by balanced_end. Possessive quantifiers keep every pattern linear.
_DEPTH = 10

NAME = r"[\w.\-]+"
STRING = r"""(?:"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+')"""


def _nested(opening: str, closing: str) -> str:
    """The pattern of a bracket with strings and brackets of its own kind inside."""
    inner = rf"""[^{opening}{closing}"']++|{STRING}"""
    pattern = rf"{opening}(?:{inner})*+{closing}"
    for _ in range(_DEPTH):
        pattern = rf"{opening}(?:{inner}|{pattern})*+{closing}"
    return pattern


BRACES = _nested(r"\{", r"\}")
PARENTHESES = _nested(r"\(", r"\)")
BRACKETS = _nested(r"\[", r"\]")

# A layout starts with a digit, a colon or nothing: '-> f32[] {' opens a computation instead.
ARRAY_SHAPE = r"\w+\s*\[[\d\s,<=?]*\](?:\s*\{[\d,\s]*(?::[^{}\n]*)?\})?"
SHAPE = rf"(?:{ARRAY_SHAPE}|b?{PARENTHESES})"
# After a space, braces still belong to the value: replica_groups=mesh['a'=4] {'a'}.
VALUE = rf"""(?:[^\s,{{}}()\[\]"']++|{STRING}|{BRACES}|{PARENTHESES}|{BRACKETS})++(?:\s+{BRACES})*+"""
ATTRIBUTE = re.compile(rf"\s*,\s*([\w\-.]+)\s*=\s*({VALUE})", re.DOTALL)
DEEP_ATTRIBUTE = re.compile(r"\s*,\s*([\w\-.]+)\s*=\s*(?=[{(\[])")

_SPACE = re.compile(r"\s*")
# An unterminated comment or string runs to the end of the text, so that it is looked at once only.
_COMMENT = re.compile(
    r"""(?P<string>"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z)|'(?:[^'\\]++|\\(?:.|\Z))*+(?:'|\Z))"""
    r"""|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|//[^\n]*+""",
    re.DOTALL,
)
_BRACKET = re.compile(rf"{STRING}|[(){{}}\[\]]", re.DOTALL)
_PARENTHESIS = re.compile(r"[()]")


def without_comments(text: str) -> str:
    """The text with the comments outside strings removed; every line keeps its number."""
    if "/*" not in text and "//" not in text:
        return text
    return _COMMENT.sub(_kept_of_comment, text)


def _kept_of_comment(match: re.Match[str]) -> str:
    found = match.group()
    return found if match["string"] is not None else "\n" * found.count("\n")


def space_end(text: str, start: int) -> int:
    """The position of the first character from ``start`` on that is not white space."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


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


def literal_end(text: str, start: int) -> int:
    """The position of the parenthesis that ends a constant's value from ``start`` on, or -1.

    Literals have millions of elements: what has no parentheses of its own is searched without a loop.
    """
    end = text.find(")", start)
    if text.find("(", start, end) < 0:
        return end
    depth = 1
    for match in _PARENTHESIS.finditer(text, start):
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            return match.start()
    return -1


def excerpt(text: str, position: int) -> str:
    """What stands at a position, shortened and quoted for an error message."""
    position = space_end(text, position)
    found = text[position : position + 40].split("\n", 1)[0].rstrip()
    return repr(found) if found else "the end of the text"


def line_of(text: str, position: int) -> int:
    """The 1-based line of what stands at a position, white space before it left out."""
    position = space_end(text, position)
    if position >= len(text):
        position = len(text.rstrip())
    return text.count("\n", 0, position) + 1


def error_at(text: str, position: int, message: str, instruction: str | None = None) -> HloError:
    """An error that names the line of a position."""
    return HloError(message, line=line_of(text, position), instruction=instruction)
