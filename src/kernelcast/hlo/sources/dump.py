"""XLA dump folders (``--xla_dump_to``): which file holds the module and the stage that is wanted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kernelcast.errors import KernelcastError
from kernelcast.hlo.sources.stage import Stage

_FILE = re.compile(
    r"module_(?P<number>\d+)\.(?P<name>.+?)\."
    r"(?:(?P<before>before_optimizations)|(?:[\w.-]+_)?after_optimizations)"
    r"(?P<suffix>\.txt|\.hlo\.pb|\.hlo)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpFile:
    """One file of a dump folder that holds a whole module.

    Attributes:
        number: XLA's number of the module, digits as in the file's name.
        name: of the module.
    """

    path: Path
    number: str
    name: str
    stage: Stage

    @property
    def is_proto(self) -> bool:
        return self.path.name.endswith(".pb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A chosen file and, in words, what it was chosen among."""

    file: DumpFile
    among: str


def list_dump(folder: Path) -> tuple[DumpFile, ...]:
    """The modules of a dump folder, by number; other files are left out."""
    found: list[DumpFile] = []
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise KernelcastError(f"{folder}: cannot be listed: {error.strerror}") from error
    for path in paths:
        match = _FILE.fullmatch(path.name)
        if match is not None and path.is_file():
            stage = Stage.UNOPTIMISED if match["before"] else Stage.OPTIMISED
            found.append(DumpFile(path=path, number=match["number"], name=match["name"], stage=stage))
    return tuple(found)


def choose(folder: Path, *, stage: Stage | None, module: str | None) -> Choice:
    """The file of a dump folder to read.

    Args:
        stage: before or after optimisations; for None before, where it was dumped.
        module: number or name of a module; for None the largest, since small helper programs are dumped too.

    Raises:
        KernelcastError: the folder has no such file; lists what there is.
    """
    files = list_dump(folder)
    if not files:
        raise KernelcastError(
            f"{folder}: no XLA dump in this folder; expected files like "
            "module_0001.jit_f.before_optimizations.txt, which XLA_FLAGS=--xla_dump_to=FOLDER writes"
        )
    named = [file for file in files if module is None or module in (file.name, file.number)]
    named = named or [file for file in files if module is not None and file.number == module.zfill(4)]
    if not named:
        raise KernelcastError(f"{folder}: no module {module!r}; there are {_listed(files)}")
    wanted = [file for file in named if file.stage == stage]
    if stage is None:
        wanted = [file for file in named if file.stage is Stage.UNOPTIMISED] or named
    if not wanted:
        present = sorted({file.stage for file in named})
        raise KernelcastError(f"{folder}: no {stage} module there, only {' and '.join(present)}")
    # The proto of a module holds its large constants; the text leaves them out.
    largest = max(wanted, key=lambda file: file.path.stat().st_size)
    same = [file for file in wanted if file.number == largest.number]
    chosen = next((file for file in same if file.is_proto), largest)
    count = len({file.number for file in wanted})
    return Choice(file=chosen, among=f"the largest of {count} modules" if count > 1 else "the only module")


def _listed(files: tuple[DumpFile, ...]) -> str:
    names = list(dict.fromkeys(f"{file.number} ({file.name})" for file in files))
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
