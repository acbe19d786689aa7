"""A text and how far it is read, with the few steps that all parts of the reader share."""

from __future__ import annotations

from dataclasses import dataclass

from kernelcast.errors import HloError
from kernelcast.hlo.lexical import (
    ATTRIBUTE,
    DEEP_ATTRIBUTE,
    balanced_end,
    error_at,
    excerpt,
    line_of,
    space_end,
)


@dataclass(slots=True)
class Cursor:
    """A text being read; functions that take a cursor leave it after what they read.

    Attributes:
        text: without comments.
        position: of the next character.
    """

    text: str
    position: int = 0

    def is_at_end(self) -> bool:
        return space_end(self.text, self.position) >= len(self.text)

    def is_before(self, token: str) -> bool:
        """Whether a token comes next."""
        return self.text.startswith(token, space_end(self.text, self.position))

    def next(self) -> str:
        """What comes next, quoted for an error message."""
        return excerpt(self.text, self.position)

    def line(self, position: int) -> int:
        """The 1-based line of a position."""
        return line_of(self.text, position)

    def error(self, message: str, instruction: str | None = None, *, at: int | None = None) -> HloError:
        """An error that names the line of the given or the present position."""
        return error_at(self.text, self.position if at is None else at, message, instruction)

    def expect(self, token: str, purpose: str) -> None:
        """Steps over a token, or fails with ``expected '{' to open computation f, got …``."""
        start = space_end(self.text, self.position)
        if not self.text.startswith(token, start):
            raise self.error(f"expected '{token}' {purpose}, got {self.next()}")
        self.position = start + len(token)

    def attributes(self, instruction: str | None = None) -> list[tuple[str, str]]:
        """Reads ``, key=value`` as often as it stands here; values verbatim."""
        text, position = self.text, self.position
        found: list[tuple[str, str]] = []
        while True:
            if match := ATTRIBUTE.match(text, position):
                found.append((match[1], match[2]))
                position = match.end()
            elif deep := DEEP_ATTRIBUTE.match(text, position):
                position = balanced_end(text, deep.end())
                if position < 0:
                    raise self.error(
                        f"expected the bracket of {deep[1]} to be closed, got the end of the text",
                        instruction,
                    )
                found.append((deep[1], text[deep.end() : position]))
            else:
                break
        if len(found) > 1 and len({key for key, _ in found}) < len(found):
            keys = [key for key, _ in found]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise self.error(f"attribute {twice} is given twice", instruction)
        self.position = position
        return found
