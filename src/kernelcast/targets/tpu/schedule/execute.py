"""Executes the scalar slots of a listing: one cycle a bundle, all reads of a bundle before its writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelcast.core.timing import Failure, Reason
from kernelcast.targets.tpu.schedule import transfers
from kernelcast.targets.tpu.schedule.listing import ListingError, Slot, read_listing
from kernelcast.targets.tpu.schedule.operands import Machine, ReadTruth
from kernelcast.targets.tpu.schedule.operations import (
    Act,
    Assign,
    Branch,
    Delay,
    Halt,
    Operation,
    Parts,
    Unfollowable,
    assignment,
    divide,
    store,
    take_apart,
)
from kernelcast.targets.tpu.schedule.trace import Compute, Event, merged
from kernelcast.targets.tpu.schedule.value import Unknown

# Above any kernel seen by two orders of magnitude; about ten seconds here.
MOST_STEPS = 10_000_000

# Slots without a scalar result that move no control flow: phis are renamings that the register numbers carry
# out already, and checks that would stop a faulty kernel are taken to pass.
IGNORED = frozenset({"sphi", "pphi", "shalt.err", "sfence", "snop"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a kernel did.

    Attributes:
        events: in the order issued.
        bundles: in the listing.
    """

    events: tuple[Event, ...]
    bundles: int


@dataclass(frozen=True, slots=True)
class _Step:
    """A bundle that does more than pass a cycle."""

    assigns: tuple[Assign, ...]
    acts: tuple[Act, ...]
    leave: Branch | Halt | None
    cycles: int
    line: int


def trace_of(text: str, *, delay_slots: int, most_steps: int = MOST_STEPS) -> Trace | Failure:
    """What a listing does when it runs, or why that cannot be told.

    Args:
        delay_slots: bundles after a branch that are issued whether or not it is taken.
        most_steps: bundles with scalar slots that may be executed, so that nothing runs for ever.
    """
    try:
        listing = read_listing(text)
        steps = [_step(bundle.slots) if bundle.slots else None for bundle in listing.bundles]
    except ListingError as error:
        return Failure(reason=Reason.UNSUPPORTED, message=str(error))
    core = _Core(machine=Machine(), steps=steps, most_steps=most_steps)
    try:
        _run(core, listing.regions, delay_slots)
    except _TooLong as error:
        return Failure(reason=Reason.TIMEOUT, message=str(error))
    except Unfollowable as error:
        return Failure(reason=Reason.VALUE_DEPENDENT, message=str(error))
    except _NoTarget as error:
        return Failure(reason=Reason.UNSUPPORTED, message=str(error))
    return Trace(events=tuple(merged(core.machine.events)), bundles=len(steps))


class _TooLong(Exception):
    """The kernel runs for longer than allowed."""


class _NoTarget(Exception):
    """A branch is taken to a region that starts nowhere in the listing."""


@dataclass(slots=True, kw_only=True)
class _Core:
    """A core that issues bundles.

    Attributes:
        machine: its state. steps: what the bundles do; None for those that only pass a cycle.
        most_steps: that may still be issued.
    """

    machine: Machine
    steps: Sequence[_Step | None]
    most_steps: int

    def issue(self, index: int) -> Branch | Halt | None:
        """Issues one bundle; the branch that it takes, or the end."""
        step, machine = self.steps[index], self.machine
        if step is None:
            machine.events.append(Compute(1))
            return None
        self.most_steps -= 1
        if self.most_steps < 0:
            raise _TooLong(f"line {step.line}: the kernel is longer than this may take; is there a loop?")
        machine.events.append(Compute(step.cycles))
        try:
            values = [assign.read(machine) for assign in step.assigns]
            for act in step.acts:
                if _holds(act.condition, machine):
                    act.run(machine)
            leave = step.leave if step.leave and _holds(step.leave.condition, machine) else None
        except Unfollowable as error:
            raise Unfollowable(f"line {step.line}: {error}") from None
        for assign, value in zip(step.assigns, values, strict=True):
            assign.write(machine, value)
        return leave


def _run(core: _Core, regions: Mapping[int, int], delay_slots: int) -> None:
    position, end = 0, len(core.steps)
    following = _following(core.steps)
    while position < end:
        if following[position] > position:
            core.machine.events.append(Compute(following[position] - position))
            position = following[position]
            continue
        leave = core.issue(position)
        if isinstance(leave, Halt):
            return
        position += 1
        if leave is not None:
            for index in range(position, min(position + delay_slots, end)):
                if core.issue(index) is not None:
                    raise Unfollowable(f"bundle {index:#x} leaves from the delay slot of a branch")
            if leave.region not in regions:
                raise _NoTarget(
                    f"the branch before bundle {position:#x} goes to region {leave.region}, "
                    "which starts nowhere in the listing"
                )
            position = regions[leave.region]


def _holds(condition: ReadTruth | None, machine: Machine) -> bool:
    if condition is None:
        return True
    held = condition(machine)
    if isinstance(held, Unknown):
        raise Unfollowable("what is done next depends on data")
    return held


def _following(steps: Sequence[_Step | None]) -> list[int]:
    """For each bundle the next one, itself included, that does something."""
    found = [len(steps)] * (len(steps) + 1)
    for index in range(len(steps) - 1, -1, -1):
        found[index] = found[index + 1] if steps[index] is None else index
    return found


def _step(slots: Sequence[Slot]) -> _Step:
    """What the bundle of these slots does."""
    operations = [found for slot in slots if (found := _operation(slot)) is not None]
    leaves = [o for o in operations if isinstance(o, Branch | Halt)]
    if len(leaves) > 1:
        raise ListingError("a bundle leaves in one way", line=slots[0].line, text=slots[-1].text)
    return _Step(
        assigns=tuple(o for o in operations if isinstance(o, Assign)),
        acts=tuple(o for o in operations if isinstance(o, Act)),
        leave=leaves[0] if leaves else None,
        cycles=1 + sum(o.cycles for o in operations if isinstance(o, Delay)),
        line=slots[0].line,
    )


_BRANCH = re.compile(r"target = \$region(\d+)")


def _operation(slot: Slot) -> Operation | None:
    """The operation of a slot; None where it moves neither control flow nor time."""
    parts = take_apart(slot)
    if parts.opcode in IGNORED:
        return None
    if parts.opcode.startswith("sbr"):
        target = _BRANCH.search(parts.arguments)
        if target is None:
            raise ListingError("a branch needs 'target = $region…'", line=slot.line, text=slot.text)
        return Branch(condition=parts.condition, region=int(target[1]))
    if parts.opcode == "shalt":
        return Halt(condition=parts.condition)
    if parts.opcode == "vdelay":
        return Delay(cycles=int(parts.arguments))
    if run := _act(slot, parts):
        return Act(run=run, condition=parts.condition)
    assign = assignment(slot, parts)
    if assign is None:
        raise ListingError("the operation is not known", line=slot.line, text=slot.text)
    return assign


def _act(slot: Slot, parts: Parts) -> Callable[[Machine], None] | None:
    if parts.opcode == "sst":
        return store(slot, parts)
    if parts.opcode.startswith("dma.done"):
        return transfers.wait(slot, parts)
    if parts.opcode == "dma" or parts.opcode.startswith("dma."):
        return transfers.start(slot, parts)
    if parts.opcode.startswith("vsyncadd"):
        return transfers.adjust(slot, parts)
    if parts.opcode.startswith("sdivrem"):
        return divide(slot, parts)
    return None
