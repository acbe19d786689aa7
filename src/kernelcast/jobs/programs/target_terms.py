"""What turns kernel times into a program's time on one target: fitted once, kept in a file by the models."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelcast.data.durable import write_durably
from kernelcast.errors import SchemaError
from kernelcast.jobs.programs.memory_factor import MemoryFactor
from kernelcast.jobs.programs.overheads import Overheads
from kernelcast.report.files import read_text

FORMAT = "kernelcast-target-terms"
FORMAT_VERSION = 1
FILE_NAME = "target-terms.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTerms:
    """program seconds = factor(temporary memory) · Σ runs · kernel + overheads.

    Attributes:
        target: digest of the target's identity.
        factor: of temporary memory, fitted by `kernelcast evaluate additivity`.
        overheads: measured on the machine.
    """

    target: str
    factor: MemoryFactor
    overheads: Overheads

    def write(self, path: Path) -> None:
        """Writes the terms as JSON."""
        record = {
            "format": FORMAT, "version": FORMAT_VERSION, "target": self.target,
            "factor": asdict(self.factor), "overheads": asdict(self.overheads),
        }  # fmt: skip
        write_durably(path, (json.dumps(record, indent=1) + "\n").encode())

    @staticmethod
    def read(path: Path) -> TargetTerms:
        """The terms in a file.

        Raises:
            SchemaError: the file is something else.
            OSError: it cannot be read.
        """
        try:
            record = json.loads(read_text(path))
            if (record["format"], record["version"]) != (FORMAT, FORMAT_VERSION):
                raise SchemaError(
                    f"{path} is a {record['format']} of version {record['version']}, "
                    f"not {FORMAT} version {FORMAT_VERSION}"
                )
            return TargetTerms(
                target=str(record["target"]),
                factor=MemoryFactor(**record["factor"]),
                overheads=Overheads(**record["overheads"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise SchemaError(
                f"{path} does not hold a target's terms ({type(error).__name__}: {error}); "
                "`kernelcast evaluate additivity --terms` writes them"
            ) from error
