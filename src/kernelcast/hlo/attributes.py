"""Typed access to the attributes of instructions, which ``Program`` keeps as verbatim text.

An attribute that the opcode cannot do without raises ``HloError`` when it is missing; for the others the
functions say what absence means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from kernelcast.errors import HloError
from kernelcast.hlo.attribute_text import flag as flag
from kernelcast.hlo.attribute_text import integer as integer
from kernelcast.hlo.attribute_text import integers as integers
from kernelcast.hlo.attribute_text import required as required
from kernelcast.hlo.attribute_text import unquoted as unquoted
from kernelcast.hlo.dimension_numbers import ConvolutionNumbers as ConvolutionNumbers
from kernelcast.hlo.dimension_numbers import DotNumbers as DotNumbers
from kernelcast.hlo.dimension_numbers import GatherNumbers as GatherNumbers
from kernelcast.hlo.dimension_numbers import ScatterNumbers as ScatterNumbers
from kernelcast.hlo.dimension_numbers import convolution_numbers as convolution_numbers
from kernelcast.hlo.dimension_numbers import dot_numbers as dot_numbers
from kernelcast.hlo.dimension_numbers import gather_numbers as gather_numbers
from kernelcast.hlo.dimension_numbers import scatter_numbers as scatter_numbers
from kernelcast.hlo.program import Instruction

_RANGE = re.compile(r"\[\s*(\d{1,19})\s*:\s*(\d{1,19})\s*(?::\s*(\d{1,19})\s*)?\]")
_PADDING = re.compile(r"(-?\d{1,19})_(-?\d{1,19})(?:_(\d{1,19}))?")
_WINDOW_FIELDS = frozenset({"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowDimension:
    """One dimension of a window that slides over a base.

    Attributes:
        size: extent of the window.
        stride: step between two positions.
        padding_low: elements added before the base; negative ones are cut off.
        padding_high: elements added after it.
        base_dilation: distance of the base's elements (``lhs_dilate``).
        window_dilation: distance of the window's elements (``rhs_dilate``).
        is_reversed: whether the window is applied backwards.
    """

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    is_reversed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window, dimension by dimension: spatial ones of a convolution, all of a reduce-window."""

    dimensions: tuple[WindowDimension, ...]

    @property
    def element_count(self) -> int:
        """Elements of the window itself."""
        count = 1
        for dimension in self.dimensions:
            count *= dimension.size
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRange:
    """Indices ``start``, ``start + stride``, … below ``limit`` of one dimension."""

    start: int
    limit: int
    stride: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """Elements added to one dimension: before it, after it, and between each two (``interior``)."""

    low: int
    high: int
    interior: int = 0


def window(instruction: Instruction) -> Window:
    """The window of a convolution or reduce-window; an absent or empty one has no dimensions.

    Raises:
        HloError: the text is no window, or its parts have different lengths.
    """
    text = (instruction.attribute("window") or "{}").strip("{} \n")
    parts: dict[str, list[str]] = {}
    for part in text.split():
        key, separator, value = part.partition("=")
        if not separator or key not in _WINDOW_FIELDS:
            raise HloError(
                f"expected a window of {', '.join(sorted(_WINDOW_FIELDS))}, got {part!r}",
                instruction=instruction.name,
            )
        parts[key] = value.split("x")
    sizes = parts.get("size", [])
    try:
        return Window(
            dimensions=tuple(
                _window_dimension({key: values[number] for key, values in parts.items()})
                for number in range(len(sizes))
            )
        )
    except (IndexError, ValueError):
        message = f"expected a window with {len(sizes)} numbers in each part, got {text!r}"
        raise HloError(message, instruction=instruction.name) from None


def _window_dimension(parts: Mapping[str, str]) -> WindowDimension:
    low, high = (int(amount) for amount in parts.get("pad", "0_0").split("_"))
    return WindowDimension(
        size=int(parts["size"]),
        stride=int(parts.get("stride", "1")),
        padding_low=low,
        padding_high=high,
        base_dilation=int(parts.get("lhs_dilate", "1")),
        window_dilation=int(parts.get("rhs_dilate", "1")),
        is_reversed=parts.get("rhs_reversal", "0") == "1",
    )


def slice_ranges(instruction: Instruction) -> tuple[SliceRange, ...]:
    """The ranges of a slice, dimension by dimension."""
    text = required(instruction, "slice")
    ranges = tuple(
        SliceRange(start=int(start), limit=int(limit), stride=int(stride or 1))
        for start, limit, stride in _RANGE.findall(text)
    )
    if len(ranges) != text.count("["):
        raise HloError(
            f"expected ranges such as {{[0:8], [2:6:2]}}, got {text!r}", instruction=instruction.name
        )
    return ranges


def padding_config(instruction: Instruction) -> tuple[Padding, ...]:
    """The padding of a pad, dimension by dimension; an absent one is that of a scalar."""
    text = instruction.attribute("padding") or ""
    paddings: list[Padding] = []
    for part in text.split("x") if text else ():
        match = _PADDING.fullmatch(part)
        if match is None:
            message = f"expected padding such as 0_1x2_0_1 (low_high_interior), got {text!r}"
            raise HloError(message, instruction=instruction.name)
        paddings.append(Padding(low=int(match[1]), high=int(match[2]), interior=int(match[3] or 0)))
    return tuple(paddings)


def direction(instruction: Instruction) -> str:
    """How a compare compares: EQ, NE, LT, LE, GT or GE."""
    return required(instruction, "direction")


def tuple_index(instruction: Instruction) -> int:
    """Which element a get-tuple-element takes."""
    return integer(instruction, "index")


def custom_call_target(instruction: Instruction) -> str:
    """The name of the function that a custom call calls."""
    return unquoted(required(instruction, "custom_call_target"))


def feature_group_count(instruction: Instruction) -> int:
    """Groups of features of a convolution; 1 where the text gives none."""
    return integer(instruction, "feature_group_count", default=1)


def batch_group_count(instruction: Instruction) -> int:
    """Groups of the batch of a convolution; 1 where the text gives none."""
    return integer(instruction, "batch_group_count", default=1)


def parse_backend_config(instruction: Instruction) -> dict[str, Any] | None:
    """The backend's JSON object, plain or as an escaped string; None where there is none or other text."""
    text = instruction.attribute("backend_config")
    if text is None:
        return None
    try:
        config = json.loads(unquoted(text))
    except ValueError:
        return None
    return cast("dict[str, Any]", config) if isinstance(config, dict) else None


def loop_computations(while_instruction: Instruction) -> tuple[str, str]:
    """Names of a loop's body and condition."""
    body, condition = (required(while_instruction, key) for key in ("body", "condition"))
    return body.lstrip("%"), condition.lstrip("%")


def known_trip_count(instruction: Instruction) -> int | None:
    """How often the compiler found a while to run its body; None where it does not say."""
    config = parse_backend_config(instruction)
    count = config.get("known_trip_count") if config else None
    number = cast("dict[str, Any]", count).get("n") if isinstance(count, dict) else None
    return int(number) if isinstance(number, int | str) and str(number).isdecimal() else None
