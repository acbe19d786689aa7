"""``kernelcast zoo``: the programs that can be named instead of given as files."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelcast.cli.output import JsonOption, emit, facts, table

app = typer.Typer(help="The bundled programs, by name.", no_args_is_help=True)


@app.command(name="list")
def list_(
    family: Annotated[str | None, typer.Option(help="Only programs of this family.")] = None,
    as_json: JsonOption = False,
) -> None:
    """All programs with their families and variants."""
    from kernelcast import zoo

    chosen = [p for p in zoo.programs() if family in (None, p.family)]
    if not chosen:
        known = ", ".join(sorted({p.family for p in zoo.programs()}))
        raise typer.BadParameter(f"no program is of family {family!r}; families: {known}")
    rows = [[p.name, p.family, " ".join(p.options), p.source] for p in chosen]
    keys = ("program", "family", "variants", "source")
    emit(
        [{**dict(zip(keys, row, strict=True)), "variants": row[2].split()} for row in rows],
        as_json=as_json,
        render=table(
            f"{len(chosen)} programs, {sum(len(p.options) for p in chosen)} variants",
            dict.fromkeys(keys, "left"),
            rows,
        ),
    )


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="program/variant, or a program for its first variant.")],
    as_json: JsonOption = False,
) -> None:
    """One program: its options and the shapes of its inputs."""
    from kernelcast import zoo

    variant = zoo.find(name)
    inputs = [f"{array.dtype}{list(array.shape)}" for array in variant.example_inputs(seed=0)]
    options = dict(variant.options)
    found = {
        "id": variant.id,
        "family": variant.family,
        "options": options,
        "inputs": inputs,
        "source": variant.program.source,
        "licence": variant.program.licence,
    }
    readable = found | {
        "inputs": " ".join(inputs),
        "options": ", ".join(f"{k}={v}" for k, v in options.items()),
    }
    emit(found, as_json=as_json, render=facts(variant.id, readable))
