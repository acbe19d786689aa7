"""``kernelcast evaluate tiles``: the table of the tile task."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelcast.cli.choices import integers
from kernelcast.cli.output import JsonOption, emit, table
from kernelcast.cli.recording import RecordOption, RepositoryOption, record
from kernelcast.cli.study_options import SeedOption

if TYPE_CHECKING:
    from kernelcast.jobs.learning.tile_table import TauDifference, TileSummary


def tiles(
    dataset: Annotated[Path, typer.Argument(help="Folder of a dataset of timed tiles.")],
    checkpoints: Annotated[Path, typer.Argument(help="Folder that `kernelcast train --task tile` wrote.")],
    split: Annotated[Path, typer.Option(help="The split that the models were trained with.")] = Path(
        "experiments/split-family.json"
    ),
    split_name: Annotated[
        str, typer.Option(help="What the records call the split: random (by family) or manual.")
    ] = "random",
    seeds: Annotated[str, typer.Option(help="Of the boosted trees, comma-separated.")] = "0,1,2,3,4",
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="File for all rows, as JSON.")] = None,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """How well all models and baselines order the tiles of kernels of families that did not train."""
    from kernelcast.jobs.estimators import checkpoints_in
    from kernelcast.jobs.learning.evaluate_fusion import write_table
    from kernelcast.jobs.learning.evaluate_tiles import evaluate_tiles, rankers_by_model
    from kernelcast.jobs.records import records, tile_figures

    found = evaluate_tiles(
        dataset,
        split,
        checkpoints=rankers_by_model(checkpoints_in(checkpoints)),
        seeds=integers(seeds, "--seeds"),
        ties_seed=seed,
    )
    if out is not None:
        write_table(out, found)
    clock = "simulated" if found.is_simulated else "measured"
    columns = {
        "model": "left", "kernels": "left", "seeds": "right", "τ": "right", "median τ": "right",
        "over seeds": "right", "APE": "right", "top 1": "right", "top 5": "right", "top 10": "right",
    }  # fmt: skip
    emit(
        found,
        as_json=as_json,
        render=[
            table(
                f"tile task, {clock} times of {found.target}, means over programs",
                columns,
                [_row(s) for s in found.summaries],
            ),
            f"{found.train_kernels:,} kernels trained, {found.validation_kernels:,} validated, "
            f"{found.test_kernels:,} tested; of these {found.without_order:,} left out because all their "
            f"tiles take the same time, {found.without_analytical:,} because the analytical model does not "
            f"know them all; {found.test_tiles:,} {clock} tiles",
            *(_told(difference) for difference in found.differences),
        ],
    )
    record(
        "kernelcast evaluate tiles",
        repository,
        lambda made: records(
            tile_figures(found, split_name=split_name), made, seeds=found.seeds, split=found.split
        ),
        wanted=record_results,
    )


def _row(row: TileSummary) -> list[str]:
    low, high = row.tau_range
    return [
        row.model,
        row.population,
        str(row.seeds),
        _number(row.tau_mean),
        _number(row.tau_median),
        f"{_number(low)}–{_number(high)}",
        f"{row.ape_mean:.1f} %",
        *(f"{_number(error, 1)} %" for error in row.top_errors),
    ]


def _told(row: TauDifference) -> str:
    return (
        f"τ of {row.first} over {row.second}: {row.mean:+.3f} (95 % over programs: {row.lower:+.3f} to "
        f"{row.upper:+.3f})"
    )


def _number(value: float, digits: int = 3) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
