"""Reads the listing of a final schedule: bundles of slots, one bundle a cycle.

A bundle is ``ADDRESS LABEL: > > { slot ;; slot ;; … } /* comment */`` and may run over several lines.
Comments carry three things that matter: names of arguments (``/*size_in_granules=*/``), where a region
starts, which is how branches name their targets, and that a load is of the chip's or the core's number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.errors import KernelcastError

_HEADER = re.compile(r"^ *(0x[0-9a-f]+|0) +(?:[A-Z]{2})?: ?[> ]*\{ ?", re.MULTILINE)
_REGION = re.compile(r"\bStart(?:/End empty)? region (\d+)")
_ARGUMENT_NAME = re.compile(r"/\*(\w+)=\*/")
_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
# Vector slots move no control flow; vsyncadd and vdelay are the two that matter for time.
_VECTOR = re.compile(r"\s*(?:%\w+ = )?v(?!syncadd|delay)")
_RELEVANT = re.compile(r"%[sp]\d|= [a-uw-z]|vsyncadd|vdelay")


class ListingError(KernelcastError):
    """A listing that cannot be read.

    Attributes:
        line: 1-based line of the text.
        text: what stands there.
    """

    def __init__(self, message: str, *, line: int, text: str) -> None:
        super().__init__(f"line {line}: {message}, got {text[:200]!r}")
        self.line = line
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One operation of a bundle, as text.

    Attributes:
        text: without comments; argument names stand as ``name=``.
        notes: its comments.
        line: 1-based line of the bundle.
    """

    text: str
    notes: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What the core issues in one cycle.

    Attributes:
        address: as printed; consecutive.
        slots: those that are not vector operations.
    """

    address: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A whole schedule.

    Attributes:
        bundles: in order of their addresses.
        regions: index of the first bundle of each region, the targets of branches.
    """

    bundles: tuple[Bundle, ...]
    regions: Mapping[int, int]


def read_listing(text: str) -> Listing:
    """The bundles of a listing.

    Raises:
        ListingError: the text holds no bundles, a bundle is cut short, or addresses are not consecutive.

    >>> read_listing(" 0   : { %s1_s0 = smov 4 /* bytes */ ;; %2 = vnop } /* Start region 7 */").regions
    {7: 0}
    """
    bundles: list[Bundle] = []
    regions: dict[int, int] = {}
    headers = list(_HEADER.finditer(text))
    if not headers:
        raise ListingError("a listing of bundles is needed", line=1, text=text.partition("\n")[0])
    line, counted = 1, 0
    for index, header in enumerate(headers):
        line += text.count("\n", counted, header.start())
        counted = header.start()
        end = headers[index + 1].start() if index + 1 < len(headers) else len(text)
        body = text[header.end() : end]
        address = int(header[1], 16)
        if address != index:
            raise ListingError(f"bundle {index:#x} is needed here", line=line, text=header[0])
        if "region" in body:
            for region in _REGION.findall(body):
                regions.setdefault(int(region), index)
        bundles.append(Bundle(address=address, slots=_slots(body, line)))
    return Listing(bundles=tuple(bundles), regions=regions)


def _slots(body: str, line: int) -> tuple[Slot, ...]:
    if not _RELEVANT.search(body):
        return ()
    parts = _ARGUMENT_NAME.sub(r"\1=", body).split(" ;; ")
    found: list[Slot] = []
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        if _VECTOR.match(part) and not is_last:
            continue
        text = _COMMENT.sub("", part).strip()
        if is_last:
            if not text.endswith("}"):
                raise ListingError("the bundle has no end", line=line, text=body.strip())
            text = text[:-1].rstrip()
        if text and not _VECTOR.match(text):
            notes = tuple(note.strip() for note in _COMMENT.findall(part))
            found.append(Slot(text=text, notes=notes, line=line))
    return tuple(found)
