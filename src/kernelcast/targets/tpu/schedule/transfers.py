"""Slots that start transfers, wait for them and count them: from operands to events of the trace."""

from __future__ import annotations

import re
from collections.abc import Callable

from kernelcast.targets.tpu.schedule.listing import ListingError, Slot
from kernelcast.targets.tpu.schedule.operands import Machine, ReadValue, scalar
from kernelcast.targets.tpu.schedule.operations import Parts, Unfollowable
from kernelcast.targets.tpu.schedule.trace import Adjust, Direction, Transfer, Wait
from kernelcast.targets.tpu.schedule.value import Value, signed

_NAMED = re.compile(r"(\w+)=(\[#[^\]]*\]|[^,\s]+)")
_DIRECTIONS = {
    "dma.hbm_to_vmem": Direction.READ,
    "dma.hbm_to_smem": Direction.READ,
    "dma.vmem_to_hbm": Direction.WRITE,
    "dma.smem_to_hbm": Direction.WRITE,
    "dma.vmem_to_vmem": Direction.LOCAL,
    "dma.vmem_to_smem": Direction.LOCAL,
    "dma.smem_to_vmem": Direction.LOCAL,
}
# Words of a descriptor in scalar memory. A stride word holds the stride above and the steps below 16 bits;
# a size word holds options above 16 bits; an end holds the memory's kind beside the chip and core.
_DESTINATION_END, _DESTINATION_STRIDE, _SOURCE_END, _SOURCE_STRIDE, _SIZE, _FLAG = 1, 2, 4, 5, 6, 7
_HALF = 0xFFFF
_KIND, _HBM, _VMEM = 0x1E00, 0x200, 0x400
# Says which core's flags are meant; all three bits set is this one's.
_OWN_FLAGS = 0x1C00


def start(slot: Slot, parts: Parts) -> Callable[[Machine], None]:
    """What a ``dma`` slot does.

    Raises:
        ListingError: an argument is missing.
    """
    if parts.opcode == "dma":
        descriptor = _needed(scalar(parts.arguments), "the address of a descriptor", slot)
        return lambda machine: machine.events.append(_described(machine, descriptor))
    direction = _DIRECTIONS.get(parts.opcode)
    if direction is None:
        raise ListingError(f"a transfer is one of {', '.join(_DIRECTIONS)}", line=slot.line, text=slot.text)
    named = {name: scalar(text) for name, text in _NAMED.findall(parts.arguments)}
    size = _needed(named.get("size_in_granules"), "size_in_granules", slot)
    flag = _needed(named.get("dst_syncflagno"), "dst_syncflagno", slot)
    steps = named.get("steps_per_stride") or size
    source, destination = named.get("src_stride") or steps, named.get("dst_stride") or steps
    hbm, vmem = (destination, source) if direction is Direction.WRITE else (source, destination)

    def begin(machine: Machine) -> None:
        run = known(steps(machine), "the steps of a transfer")
        machine.events.append(
            Transfer(
                direction=direction,
                granules=known(size(machine), "the size of a transfer"),
                hbm_steps=run,
                hbm_stride=known(hbm(machine), "the stride of a transfer"),
                vmem_steps=run,
                vmem_stride=known(vmem(machine), "the stride of a transfer"),
                flag=known(flag(machine), "the flag of a transfer"),
                is_described=False,
            )
        )

    return begin


def wait(slot: Slot, parts: Parts) -> Callable[[Machine], None]:
    """What a ``dma.done.wait`` slot does."""
    flag, granules = _two(slot, parts)
    return lambda machine: machine.events.append(
        Wait(
            flag=known(flag(machine), "the flag of a wait"),
            granules=known(granules(machine), "the count of a wait"),
        )
    )


def adjust(slot: Slot, parts: Parts) -> Callable[[Machine], None]:
    """What a ``vsyncadd`` slot does."""
    flag, granules = _two(slot, parts)
    return lambda machine: machine.events.append(
        Adjust(
            flag=known(flag(machine), "the flag of a count"),
            granules=signed(known(granules(machine), "a count")),
        )
    )


def known(value: Value, what: str) -> int:
    """The integer.

    Raises:
        Unfollowable: it depends on data.
    """
    if not isinstance(value, int):
        raise Unfollowable(f"{what} depends on data")
    return value


def _described(machine: Machine, descriptor: ReadValue) -> Transfer:
    base = known(descriptor(machine), "the address of a descriptor")

    def word(index: int) -> int:
        stored = machine.memory.get(base + index)
        if not isinstance(stored, int):
            raise Unfollowable(f"word {index} of a transfer's descriptor depends on data or was never stored")
        return stored

    ends = word(_SOURCE_END) & _KIND, word(_DESTINATION_END) & _KIND
    directions = {(_HBM, _VMEM): Direction.READ, (_VMEM, _HBM): Direction.WRITE}
    if ends not in directions:
        raise Unfollowable(f"a transfer between memories of kinds {ends[0]:#x} and {ends[1]:#x} is not known")
    direction = directions[ends]
    source, destination = word(_SOURCE_STRIDE), word(_DESTINATION_STRIDE)
    hbm, vmem = (source, destination) if direction is Direction.READ else (destination, source)
    flag = word(_FLAG)
    return Transfer(
        direction=direction,
        granules=word(_SIZE) & _HALF,
        hbm_steps=hbm & _HALF,
        hbm_stride=hbm >> 16,
        vmem_steps=vmem & _HALF,
        vmem_stride=vmem >> 16,
        flag=flag & ~_OWN_FLAGS if flag & _OWN_FLAGS == _OWN_FLAGS else flag,
        is_described=True,
    )


def _two(slot: Slot, parts: Parts) -> tuple[ReadValue, ReadValue]:
    texts = parts.arguments.split(",")
    if len(texts) != 2:
        raise ListingError("a flag and a count are needed", line=slot.line, text=slot.text)
    return (
        _needed(scalar(texts[0]), "a flag", slot),
        _needed(scalar(texts[1]), "a count", slot),
    )


def _needed(read: ReadValue | None, what: str, slot: Slot) -> ReadValue:
    if read is None:
        raise ListingError(f"{what} is needed", line=slot.line, text=slot.text)
    return read
