"""What is decided about one program: a fusion plan, or one of the compiler's own two defaults."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from kernelcast.errors import PlanError

FORMAT = "kernelcast-plan"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Untouched:
    """The compiler's own module, no callback. Not every default can be expressed as a plan."""

    def __str__(self) -> str:
        return "untouched"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOff:
    """The compiler's own module with library fusions switched off and no other change."""

    def __str__(self) -> str:
        return "library-off"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Group:
    """Materialised values of one computation that one kernel computes together.

    Attributes:
        scope: number of the computation in the space.
        roots: node numbers, ascending.
    """

    scope: int
    roots: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Setting:
    """How the kernel of one root is emitted, where that is not the compiler's habit.

    Attributes:
        scope: number of the computation in the space.
        root: node number.
        emission: ``bare`` or ``wrapped``, for kernels of one operation; ``library`` for what the backend's
            library computes although the compiler would not call it.
    """

    scope: int
    root: int
    emission: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionPlan:
    """A decision for every edge, region and group of one space, in normal form.

    Decisions without effect are set to what they mean, so that equal plans are plans that make equal
    programs. Only a space makes plans (``space.plan``, samples, moves); the constructor does not check.

    Attributes:
        space: digest of the space.
        rules: name, version and digest of the rules.
        fused: bit e is set where edge e fuses.
        loops: bit r is set where region r becomes generated loops instead of a library call.
        groups: multi-output kernels, sorted.
        settings: exceptions in emission, sorted.
    """

    space: str
    rules: str
    fused: int
    loops: int = 0
    groups: tuple[Group, ...] = ()
    settings: tuple[Setting, ...] = ()

    def encode(self) -> str:
        """One line of JSON that ``decode`` reads; equal for equal plans."""
        record = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "space": self.space,
            "rules": self.rules,
            "fused": f"{self.fused:x}",
            "loops": f"{self.loops:x}",
            "groups": [asdict(group) for group in self.groups],
            "settings": [asdict(setting) for setting in self.settings],
        }
        return json.dumps(record, separators=(",", ":"))

    @staticmethod
    def decode(text: str | bytes) -> FusionPlan:
        """The plan that ``encode`` wrote.

        Whether it belongs to a program is for ``FusionSpace.check`` to say.

        Raises:
            PlanError: the text is not a plan, or of a version that this one does not read.

        >>> plan = FusionPlan(space="s", rules="r", fused=5)
        >>> FusionPlan.decode(plan.encode()) == plan
        True
        """
        try:
            record = json.loads(text)
            found = (record["format"], record["version"])
            if found != (FORMAT, FORMAT_VERSION):
                raise PlanError(
                    f"got a file of format {found[0]} version {found[1]}; "
                    f"this version reads {FORMAT} version {FORMAT_VERSION}"
                )
            return FusionPlan(
                space=str(record["space"]),
                rules=str(record["rules"]),
                fused=int(record["fused"], 16),
                loops=int(record["loops"], 16),
                groups=tuple(
                    Group(scope=int(g["scope"]), roots=tuple(int(root) for root in g["roots"]))
                    for g in record["groups"]
                ),
                settings=tuple(
                    Setting(scope=int(s["scope"]), root=int(s["root"]), emission=str(s["emission"]))
                    for s in record["settings"]
                ),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlanError(
                f"not a fusion plan ({type(error).__name__}: {error}); expected the JSON that encode() writes"
            ) from error
