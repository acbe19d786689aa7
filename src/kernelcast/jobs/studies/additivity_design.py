"""What an additivity study times, written down before anything is timed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.data.durable import write_durably
from kernelcast.errors import SchemaError
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import default
from kernelcast.jobs.programs.studied_program import StudiedProgram, captured
from kernelcast.jobs.studies.plans_tried import distinct_plans
from kernelcast.report.files import read_text
from kernelcast.targets.protocol import Fuses

FORMAT = "kernelcast-additivity"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditivityDesign:
    """What is timed, fixed beforehand.

    Attributes:
        seed: that the plans were drawn with.
        note: programs on which the memory factor is fitted. new: the others.
        plans: of each program, the recovered default first.
    """

    seed: int
    note: tuple[str, ...]
    new: tuple[str, ...]
    plans: Mapping[str, tuple[FusionPlan, ...]]

    @property
    def programs(self) -> tuple[str, ...]:
        return (*self.note, *self.new)

    def write(self, path: Path) -> None:
        """Writes the design as JSON."""
        record = {
            "format": FORMAT, "version": FORMAT_VERSION, "seed": self.seed,
            "note": self.note, "new": self.new,
            "plans": {name: [json.loads(p.encode()) for p in plans] for name, plans in self.plans.items()},
        }  # fmt: skip
        write_durably(path, (json.dumps(record, separators=(",", ":")) + "\n").encode())

    @staticmethod
    def read(path: Path) -> AdditivityDesign:
        """The design in a file.

        Raises:
            SchemaError: the file is something else.
        """
        try:
            record = json.loads(read_text(path))
            if (record["format"], record["version"]) != (FORMAT, FORMAT_VERSION):
                raise SchemaError(
                    f"{path} is a {record['format']} of version {record['version']}, "
                    f"not {FORMAT} version {FORMAT_VERSION}"
                )
            return AdditivityDesign(
                seed=int(record["seed"]),
                note=tuple(record["note"]),
                new=tuple(record["new"]),
                plans={
                    name: tuple(FusionPlan.decode(json.dumps(plan)) for plan in plans)
                    for name, plans in record["plans"].items()
                },
            )
        except (ValueError, KeyError, TypeError) as error:
            raise SchemaError(
                f"{path} is not an additivity design ({error}); "
                "`kernelcast evaluate additivity --draw` makes one"
            ) from error


def draw_design(
    note: Sequence[StudiedProgram],
    new: Sequence[StudiedProgram],
    target: Fuses,
    *,
    plans_each: int,
    seed: int,
) -> AdditivityDesign:
    """A design with the recovered default and so many distinct random plans of each program."""
    plans: dict[str, tuple[FusionPlan, ...]] = {}
    for program in (*note, *new):
        space = captured(program, target)
        plans[program.id] = (default(space), *distinct_plans(space, plans_each, seed))
    return AdditivityDesign(
        seed=seed, note=tuple(p.id for p in note), new=tuple(p.id for p in new), plans=plans
    )
