"""The ``kernelcast`` command: its groups, and what becomes of errors."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from kernelcast.cli import datasets, demo, evaluate, features, machine, programs, report, tiles, zoo
from kernelcast.cli.output import stderr
from kernelcast.errors import KernelcastError, StoreError, TargetError
from kernelcast.targets.tpu import libtpu

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="kernelcast",
    help="Predict how long XLA programs take under a fusion plan, and find plans that are faster.",
    epilog="Results go to stdout, progress and errors to stderr. KERNELCAST_DEBUG=1 shows tracebacks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(programs.ingest)
app.command()(features.features)
app.command()(programs.predict)
app.command()(programs.measure)
app.command()(programs.tune)
app.command()(programs.replay)
app.command()(tiles.tiles)
app.command()(datasets.collect)
app.command()(datasets.train)
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(zoo.app, name="zoo")
app.command()(machine.doctor)
app.command()(demo.demo)
app.add_typer(report.app, name="report")


@app.callback()
def options(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the library's log on stderr.")
    ] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s"
    )


@app.command()
def version() -> None:
    """The versions of Kernelcast and of what its results depend on."""
    from kernelcast.report.provenance import versions

    for name, number in versions().items():
        typer.echo(f"{name} {number}")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command and exits: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one command; its errors are printed, never raised, unless KERNELCAST_DEBUG is set."""
    debug = os.environ.get("KERNELCAST_DEBUG", "") not in ("", "0")
    if libtpu.installed_version() is not None and not libtpu.has_chip():
        # JAX would try libtpu first in every process, which says on stderr that it found no chip.
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        # Typer's own mode prints wrong usage (2), turns ctrl-C into 130 and a closed pipe into 1, and exits.
        app(args=None if arguments is None else list(arguments))
    except SystemExit as done:
        if done.code == INTERRUPTED:
            stderr().print("interrupted; what was written before is kept")
        return done.code if isinstance(done.code, int) else 0
    # The process boundary: what is neither ours nor the system's is a bug, and still no traceback for a user.
    except Exception as error:
        if debug:
            traceback.print_exc()
        else:
            _print_error(error)
        return exit_code(error)
    return 0


def exit_code(error: Exception) -> int:
    """2 where the input is at fault, so that a script can tell; else 1."""
    if isinstance(error, StoreError):
        # What the system refused is no fault of the input; a folder that is no dataset is.
        return FAILURE if isinstance(error.__cause__, OSError) else BAD_INPUT
    if isinstance(error, KernelcastError):
        return FAILURE if isinstance(error, TargetError) else BAD_INPUT
    return (
        BAD_INPUT
        if isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError)
        else FAILURE
    )


def _print_error(error: Exception) -> None:
    if isinstance(error, KernelcastError):
        kind, text = "error", str(error)
    elif isinstance(error, OSError):
        kind = "error"
        text = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    else:
        kind = "internal error"
        text = (
            f"{type(error).__name__}: {error}\n"
            "This is a bug of Kernelcast. KERNELCAST_DEBUG=1 shows where it arose."
        )
    stderr().print(Text.assemble((f"{kind}: ", "bold red"), text), soft_wrap=True)
