"""Zoo variants as sources of a collection: captured by XLA:CPU, with both defaults and random plans."""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Iterable, Iterator

from kernelcast.core.kernel import Kernel
from kernelcast.core.timing import Failure, Reason
from kernelcast.data.schema import KernelRow, OccurrenceRow, PlanRow, ProgramRow
from kernelcast.errors import KernelcastError
from kernelcast.fusion.decompose import decompose
from kernelcast.fusion.plan import FusionPlan, LibraryOff, Untouched
from kernelcast.fusion.sample import sample
from kernelcast.fusion.space import FusionSpace, space_of
from kernelcast.hlo.program import Program
from kernelcast.hlo.text import parse
from kernelcast.hlo.trips import TripCount
from kernelcast.jobs.collection.survey import Survey
from kernelcast.targets.lowering import lower
from kernelcast.targets.pjrt.xla_cpu import XlaCpu
from kernelcast.zoo.program import Variant

Calls = Iterable[tuple[Kernel, TripCount]]


class ZooSource:
    """A zoo variant; implements ``Source``."""

    def __init__(self, variant: Variant, target: XlaCpu) -> None:
        """
        Args:
            target: captures; its worker may be shared by all sources.
        """
        self._variant = variant
        self._target = target

    @property
    def id(self) -> str:
        """The variant's identifier in the zoo."""
        return self._variant.id

    def survey(self, *, seed: int, random_plans: int) -> Survey | Failure:
        """Both defaults and so many random plans; a program that cannot be captured is a failure."""
        rng = random.Random(f"{seed} {zlib.crc32(self.id.encode())}")
        try:
            function, arguments = self._variant.build()
            stablehlo = lower(function, *arguments).stablehlo
            space = space_of(parse(self._target.capture(stablehlo)))
            library_off = parse(self._target.capture(stablehlo, library=False))
            plans = sample(space, rng, random_plans)
            rows = _Rows(self.id)
            rows.add(str(Untouched()), "", "default", calls_of(space.original))
            rows.add(str(LibraryOff()), "", "library-off", calls_of(library_off))
            for plan in plans:
                rows.add(plan_digest(plan), plan.encode(), "random", plan_calls(space, plan))
        except KernelcastError as error:
            return Failure(reason=Reason.COMPILE, message=str(error))
        return Survey(
            program=self._program_row(space.digest), plans=rows.plans, occurrences=rows.occurrences,
            kernels=list(rows.kernels.values()),
        )  # fmt: skip

    def _program_row(self, space: str) -> ProgramRow:
        program = self._variant.program
        return ProgramRow(
            program=self.id, name=program.name, family=program.family, variant=self._variant.name,
            source=program.source, licence=program.licence, space=space,
        )  # fmt: skip


def plan_digest(plan: FusionPlan) -> str:
    """16 hexadecimal digits that stand for a plan in tables."""
    return hashlib.blake2b(plan.encode().encode(), digest_size=8).hexdigest()


def calls_of(program: Program) -> Iterator[tuple[Kernel, TripCount]]:
    """The kernels of a final module, each with how often one run of the program launches it."""
    for call in decompose(program).calls:
        yield call.kernel, call.times


def plan_calls(space: FusionSpace, plan: FusionPlan) -> Iterator[tuple[Kernel, TripCount]]:
    """The kernels of a plan, each with how often one run of the program launches it."""
    for group in space.groups(plan):
        yield space.kernel(group), space.multiplicity(group)


class _Rows:
    """Gathers the rows of one program."""

    def __init__(self, program: str) -> None:
        self._program = program
        self.plans: list[PlanRow] = []
        self.occurrences: list[OccurrenceRow] = []
        self.kernels: dict[str, KernelRow] = {}

    def add(self, plan: str, encoded: str, how: str, calls: Calls) -> None:
        """Adds a plan with the kernels that it launches."""
        self.plans.append(PlanRow(program=self._program, plan=plan, encoded=encoded, how=how))
        totals: dict[str, tuple[int, TripCount]] = {}
        for kernel, times in calls:
            name = kernel.fingerprint
            if name not in self.kernels:
                self.kernels[name] = kernel_row(kernel)
            count, total = totals.get(name, (0, None))
            totals[name] = (count + 1, times if total is None else total + times)
        self.occurrences.extend(
            OccurrenceRow(
                program=self._program, plan=plan, kernel=name, calls=count, times=total.value,
                trip_source=total.source.value,
            )
            for name, (count, total) in totals.items()
        )  # fmt: skip


def kernel_row(kernel: Kernel) -> KernelRow:
    """The row of a kernel."""
    return KernelRow(
        fingerprint=kernel.fingerprint, skeleton=kernel.skeleton, kind=kernel.kind.value,
        nodes=kernel.canonical.instruction_count, text=kernel.text,
    )  # fmt: skip
