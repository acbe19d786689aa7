"""``kernelcast features``: a program as the numbers that models read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcast.cli.output import JsonOption, emit, facts
from kernelcast.cli.programs import ProgramArgument


def features(
    program: ProgramArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npz file to write.")],
    form: Annotated[
        str, typer.Option("--format", help="tpugraphs (the whole module) or kernelcast-1 (kernel by kernel).")
    ] = "tpugraphs",
    stage: Annotated[
        str | None, typer.Option(help="unoptimised or optimised, where the source has both.")
    ] = None,
    module: Annotated[str | None, typer.Option(help="Name or number of a module of a dump folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Writes the features of a program, without running anything.

    The form tpugraphs is that of the files of TpuGraphs: 140 numbers for each instruction, opcodes, edges.
    """
    from kernelcast.hlo.sources import Stage
    from kernelcast.jobs.featurise import Format, featurise

    if form not in tuple(Format):
        raise typer.BadParameter(f"--format is one of {', '.join(Format)}, got {form}")
    if stage is not None and stage not in tuple(Stage):
        raise typer.BadParameter(f"--stage is one of {', '.join(Stage)}, got {stage}")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"--out: the folder {out.parent} does not exist")
    found = featurise(
        program, out, form=Format(form), stage=None if stage is None else Stage(stage), module=module
    )
    told = {
        "read from": found.origin,
        "written to": found.path,
        "schema": f"{found.schema}, digest {found.schema_digest}",
        "size": f"{found.graphs:,} graphs, {found.nodes:,} nodes, {found.edges:,} edges",
        "arrays": ", ".join(f"{name} {'×'.join(map(str, s))}" for name, s in found.arrays.items()),
    }
    emit(found, as_json=as_json, render=facts(found.program, told))
