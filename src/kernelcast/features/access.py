"""How often each node of a kernel is computed, and how its value is walked through in memory.

A loop kernel computes each output element from the values it needs, recursively. Two uses of a value share
one computation only where both ask for the same index expression: along elementwise operations they do, past
a transpose, slice, broadcast or reduce they need not. So every node gets a set of *sites*: distinct index
expressions, each with how often it is evaluated and which dimension of the value the innermost loop walks.
The counts decide the cost of a plan: a producer copied behind an index-changing diamond is paid twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kernelcast.core.kernel import Kind
from kernelcast.features.flat import FlatKernel
from kernelcast.hlo import attributes
from kernelcast.hlo.program import Instruction
from kernelcast.hlo.shape import Shape

INVARIANT = -1  # the innermost loop does not move this value's index
IRREGULAR = -2  # the index is data
# These read their operands as whole arrays where they stand alone; inside a generated loop they are a loop
# inside it, as a reduction is.
_WHOLE_IF_BARE = frozenset({"convolution", "dot"})
_REDUCTIONS = frozenset({"convolution", "dot", "reduce", "reduce-window"})
# Index-changing diamonds make sites grow exponentially; beyond this many they are merged into one.
MAX_SITES = 32
# Keeps merged counts, and products with them, inside float32.
MAX_COUNT = 1e18

# These read their operands as whole arrays, each element about once.
_WHOLE_ARRAY = frozenset({
    "scatter", "sort", "custom-call", "fft", "cholesky", "triangular-solve", "topk", "while",
    "conditional", "call", "rng", "rng-bit-generator", "select-and-scatter", "ragged-dot", "all-reduce",
    "all-gather", "all-to-all", "reduce-scatter", "collective-permute", "batch-norm-training",
    "batch-norm-inference", "batch-norm-grad",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """One index expression at which a value is computed.

    Attributes:
        key: equal for equal index expressions of one kernel.
        count: how often it is evaluated in one run of the kernel.
        dimension: of the value, that the innermost loop walks; or INVARIANT or IRREGULAR.
        step: index step of that dimension per iteration.
        extent: iterations of the innermost loop.
        sequential: whether it is inside a reduction's loop, where each step waits for the one before and
            nothing is computed in vectors.
    """

    key: int
    count: float
    dimension: int
    step: float
    extent: float
    sequential: bool = False


Sites = dict[int, Site]


def array_of(shape: Shape) -> Shape:
    """The shape itself, or the first array of a tuple."""
    while shape.is_tuple and shape.elements:
        shape = shape.elements[0]
    return shape


def dimensions_of(instruction: Instruction) -> tuple[int, ...]:
    """The attribute ``dimensions``; empty where absent."""
    return attributes.integers(instruction, "dimensions", default=())


def physical_stride(shape: Shape, dimension: int) -> int:
    """Elements between neighbours along a dimension, in the value's layout."""
    stride = 1
    for number in shape.minor_to_major:
        if number == dimension:
            break
        stride *= shape.dimensions[number]
    return stride


def evaluation_sites(kernel: FlatKernel) -> list[Sites]:
    """For each node its sites, by key.

    What a library runs, and an operation that reads whole arrays, computes each element of its operands once.
    """
    shapes = [array_of(instruction.shape) for instruction in kernel.instructions]
    sites: list[Sites] = [{} for _ in shapes]
    keys = _Keys()
    for output in kernel.outputs:
        writer = kernel.writer(output)
        update = kernel.update_of(writer)
        if update is None:
            _add(sites[output], _root_site(shapes[output], keys))
        else:  # the rest of the buffer stays as it is
            _add(sites[writer], _root_site(shapes[update], keys))
    for node in reversed(range(len(shapes))):
        opcode = kernel.instructions[node].opcode
        whole = (
            kernel.kind is Kind.LIBRARY
            or opcode in _WHOLE_ARRAY
            or (opcode in _WHOLE_IF_BARE and not kernel.is_fusion)
        )
        rule = _RULES.get(opcode, _elementwise)
        for slot, operand in enumerate(kernel.operands[node]):
            if whole:
                _add(sites[operand], _root_site(shapes[operand], keys))
                continue
            use = _Use(kernel, node, slot, shapes, keys)
            for site in sites[node].values():
                reached = rule(use, site)
                if reached is None or reached.count <= 0:
                    continue
                if site.sequential or opcode in _REDUCTIONS:
                    reached = Site(
                        reached.key, reached.count, reached.dimension, reached.step, reached.extent, True
                    )
                _add(sites[operand], reached)
    return sites


class _Keys:
    """Numbers for index expressions: equal path from the output, equal number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, *parts: object) -> int:
        return self._numbers.setdefault(parts, len(self._numbers))


class _Use:
    """One operand slot of one node: what the rules below need to know."""

    __slots__ = ("in_place", "instruction", "keys", "operand", "operands", "second", "shape", "slot")

    def __init__(self, kernel: FlatKernel, node: int, slot: int, shapes: list[Shape], keys: _Keys) -> None:
        self.instruction = kernel.instructions[node]
        self.operands = kernel.operands[node]
        self.slot = slot
        self.shape = shapes[node]
        self.operand = shapes[self.operands[slot]]
        self.keys = keys
        self.in_place = node in kernel.aliased
        self.second = shapes[self.operands[1]] if len(self.operands) > 1 else self.operand


def _root_site(shape: Shape, keys: _Keys) -> Site:
    """One loop nest over all elements in the order of memory."""
    inner = next((d for d in shape.minor_to_major if shape.dimensions[d] > 1), INVARIANT)
    extent = shape.dimensions[inner] if inner >= 0 else 1
    key = keys.number("root", shape.dimensions)
    return Site(key, float(shape.element_count), inner, 1.0, float(extent))


def _add(sites: Sites, site: Site) -> None:
    old = sites.get(site.key)
    if old is not None:
        # The same expression asked for by several users is computed once, as often as the most frequent asks.
        if site.count > old.count:
            sites[site.key] = site
    elif len(sites) < MAX_SITES:
        sites[site.key] = site
    else:
        key, last = next(reversed(sites.items()))
        count = min(MAX_COUNT, last.count + site.count)
        sites[key] = Site(key, count, last.dimension, last.step, last.extent, last.sequential)


def _same_walk(site: Site, key: int, *, share: float = 1.0) -> Site:
    """A site walked as before, under another index expression and a fraction as often."""
    return Site(key, site.count * share, site.dimension, site.step, site.extent)


def _fixed(site: Site, key: int, count: float | None = None) -> Site:
    """A site whose index the innermost loop does not move."""
    return Site(key, site.count if count is None else count, INVARIANT, 0.0, site.extent)


def _elementwise(use: _Use, site: Site) -> Site:
    if use.operand.dimensions == use.shape.dimensions:
        return site
    if use.operand.element_count == 1:
        return _fixed(site, use.keys.number("scalar", site.key))
    return _linear(use, site)


def _linear(use: _Use, site: Site) -> Site:
    """Through a reshape (same elements in row-major order) or a bitcast (same bytes in layout order)."""
    shape, operand = use.shape, use.operand
    key = use.keys.number("linear", site.key, shape.dimensions, operand.dimensions)
    if site.dimension < 0:
        return _same_walk(site, key)
    physical = use.instruction.opcode == "bitcast"
    stride = site.step
    for number in shape.minor_to_major if physical else range(shape.rank - 1, -1, -1):
        if number == site.dimension:
            break
        stride *= shape.dimensions[number]
    below = 1
    for number in operand.minor_to_major if physical else range(operand.rank - 1, -1, -1):
        extent = operand.dimensions[number]
        if extent > 1 and stride < below * extent:
            return Site(key, site.count, number, max(1.0, stride / below), site.extent)
        below *= extent
    return _fixed(site, key)


def _broadcast(use: _Use, site: Site) -> Site:
    mapped = dimensions_of(use.instruction)
    key = use.keys.number("broadcast", site.key, mapped, use.operand.dimensions)
    if site.dimension < 0:
        return _same_walk(site, key)
    if site.dimension not in mapped:
        return _fixed(site, key)
    return Site(key, site.count, mapped.index(site.dimension), site.step, site.extent)


def _transpose(use: _Use, site: Site) -> Site:
    order = dimensions_of(use.instruction)
    inner = order[site.dimension] if site.dimension >= 0 else site.dimension
    return Site(use.keys.number("transpose", site.key, order), site.count, inner, site.step, site.extent)


def _reverse(use: _Use, site: Site) -> Site:
    return _same_walk(site, use.keys.number("reverse", site.key, dimensions_of(use.instruction)))


def _slice(use: _Use, site: Site) -> Site:
    ranges = attributes.slice_ranges(use.instruction)
    step = site.step * ranges[site.dimension].stride if site.dimension >= 0 else site.step
    return Site(use.keys.number("slice", site.key, ranges), site.count, site.dimension, step, site.extent)


def _dynamic_slice(use: _Use, site: Site) -> Site:
    key = use.keys.number("dynamic-slice", site.key, use.operands[1:], use.slot)
    return _fixed(site, key) if use.slot else _same_walk(site, key)


def _dynamic_update_slice(use: _Use, site: Site) -> Site | None:
    key = use.keys.number("update", site.key, use.operands[2:], use.slot)
    if use.slot == 1:
        share = use.second.element_count / max(1, use.shape.element_count)
        return _root_site(use.operand, use.keys) if use.in_place else _same_walk(site, key, share=share)
    if use.slot == 0:
        share = 1.0 - use.second.element_count / max(1, use.shape.element_count)
        return None if use.in_place else _same_walk(site, key, share=share)
    return _fixed(site, key, 1.0 if use.in_place else None)


def _pad(use: _Use, site: Site) -> Site:
    key = use.keys.number("pad", site.key, use.instruction.attribute("padding"), use.slot)
    if use.slot:
        return _fixed(site, key)
    return _same_walk(site, key, share=min(1.0, use.operand.element_count / max(1, use.shape.element_count)))


def _concatenate(use: _Use, site: Site) -> Site:
    key = use.keys.number("concatenate", site.key, use.operands, use.slot)
    along = dimensions_of(use.instruction)[0]
    share = use.operand.element_count / max(1, use.shape.element_count)
    extent = float(max(1, use.operand.dimensions[along])) if site.dimension == along else site.extent
    return Site(key, site.count * share, site.dimension, site.step, extent)


def _reduce(use: _Use, site: Site) -> Site:
    if use.slot >= len(use.operands) // 2:
        return _fixed(site, use.keys.number("initial", site.key))
    reduced = dimensions_of(use.instruction)
    extents = use.operand.dimensions
    key = use.keys.number("reduce", site.key, reduced, extents)
    looped = [d for d in reduced if extents[d] != 1]
    if looped:
        times = math.prod(extents[d] for d in looped)
        return Site(key, site.count * times, max(looped), 1.0, float(extents[max(looped)]))
    kept = [d for d in range(use.operand.rank) if d not in reduced]
    inner = kept[site.dimension] if site.dimension >= 0 else site.dimension
    return Site(key, site.count, inner, site.step, site.extent)


def _reduce_window(use: _Use, site: Site) -> Site:
    if use.slot >= len(use.operands) // 2:
        return _fixed(site, use.keys.number("initial", site.key))
    sizes = [d.size for d in attributes.window(use.instruction).dimensions]
    key = use.keys.number("reduce-window", site.key, use.instruction.attribute("window"))
    looped = [d for d, size in enumerate(sizes) if size > 1]
    if not looped:
        return _same_walk(site, key)
    return Site(key, site.count * math.prod(sizes), max(looped), 1.0, float(sizes[max(looped)]))


def _dot(use: _Use, site: Site) -> Site:
    numbers = attributes.dot_numbers(use.instruction)
    contracted = numbers.lhs_contracting if use.slot == 0 else numbers.rhs_contracting
    extents = use.operand.dimensions
    key = use.keys.number("dot", site.key, use.slot, contracted, extents)
    if not contracted:
        return _same_walk(site, key)
    inner = max(contracted)
    times = math.prod(extents[d] for d in contracted)
    return Site(key, site.count * times, inner, 1.0, float(extents[inner]))


def _convolution(use: _Use, site: Site) -> Site:
    """Each output element reads the window of every input channel of its group, and as many weights."""
    numbers = attributes.convolution_numbers(use.instruction)
    channels = use.second.dimensions[numbers.kernel_input_feature]
    taps = attributes.window(use.instruction).element_count
    key = use.keys.number("convolution", site.key, use.slot, use.operands)
    inner = numbers.input_feature if use.slot == 0 else numbers.kernel_input_feature
    return Site(key, site.count * channels * taps, inner, 1.0, float(max(1, channels)))


def _gather(use: _Use, site: Site) -> Site:
    numbers = attributes.gather_numbers(use.instruction)
    key = use.keys.number("gather", site.key, use.operands[1], use.slot)
    if use.slot:
        batch = [d for d in range(use.shape.rank) if d not in numbers.offset_dims]
        if site.dimension in batch:
            indexed = [d for d in range(use.operand.rank) if d != numbers.index_vector_dim]
            inner = indexed[batch.index(site.dimension)]
            return Site(key, site.count, inner, site.step, site.extent)
        return _fixed(site, key)
    if site.dimension not in numbers.offset_dims:
        return Site(key, site.count, IRREGULAR, 0.0, site.extent)
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    windowed = [d for d in range(use.operand.rank) if d not in gone]
    return Site(key, site.count, windowed[numbers.offset_dims.index(site.dimension)], site.step, site.extent)


_RULES: dict[str, Callable[[_Use, Site], Site | None]] = {
    "bitcast": _linear,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "convolution": _convolution,
    "dot": _dot,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "pad": _pad,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "reshape": _linear,
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}
