"""``kernelcast evaluate tiles``, ``measured-tiles`` and ``tile-speed``: how good and how fast rankers are."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelcast.cli.choices import integers
from kernelcast.cli.output import JsonOption, emit, stderr, table
from kernelcast.cli.recording import RecordOption, RepositoryOption, record
from kernelcast.cli.study_options import SeedOption

if TYPE_CHECKING:
    from kernelcast.jobs.learning.tile_table import TauDifference, TileSummary

# Kernels of the speed study: so many, with so many instructions, which make graphs of 30 nodes and more on
# average.
_KERNELS, _NODES = 120, (26, 72)
# Of the convolution of 5,798 valid tiles that was measured on a TPU v3, in TpuGraphs' ``op_tuning``.
_CONVOLUTION_NODES = 19


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
    from kernelcast.jobs.learning.evaluate_tiles import evaluate_tiles, rankers_by_model
    from kernelcast.jobs.learning.fusion_table import write_table
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


def measured_tiles(
    runs: Annotated[Path, typer.Argument(help="Folder of TpuGraphs' op_tuning: <kernel>.json and .hlo.")],
    checkpoints: Annotated[Path, typer.Argument(help="Folder that `kernelcast train --task tile` wrote.")],
    target: Annotated[
        str, typer.Option(help="Whose compiler's analytical cycles stand beside; empty for none.")
    ] = "tpu_v3",
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """How well models order tiles of kernels that were measured on a real TPU; none has learned from them."""
    from kernelcast.jobs.estimators import checkpoints_in
    from kernelcast.jobs.learning.evaluate_tiles import rankers_by_model
    from kernelcast.jobs.records import measured_tile_figures, records
    from kernelcast.jobs.studies.measured_tiles import LEAST_RUNS, judge_on_measured
    from kernelcast.model.rank import TileRanker
    from kernelcast.targets.tpu.xla_tpu import XlaTpu

    folders = rankers_by_model(checkpoints_in(checkpoints))
    rankers = {name: [TileRanker.load(folder) for folder in held] for name, held in folders.items()}
    with XlaTpu(target) if target else nullcontext() as lister, stderr().status("ordering measured tiles"):
        found = judge_on_measured(runs, rankers, lister)
    models = list(found.kernels[0].tau) if found.kernels else []
    rows = [[k.name, str(k.runs), *(_number(k.tau[model]) for model in models)] for k in found.kernels]
    rows.append(
        [f"mean, ≥ {LEAST_RUNS} runs", str(sum(k.runs for k in found.judged)),
         *(_number(found.tau_mean(model)) for model in models)]
    )  # fmt: skip
    emit(
        found,
        as_json=as_json,
        render=[
            table(
                f"τ with times measured on {found.device}",
                {"kernel": "left", "runs": "right", **dict.fromkeys(models, "right")},
                rows,
            ),
            f"{sum(k.without_analytical for k in found.kernels)} runs left out whose tile has no analytical "
            "cycles here",
            *(f"{name}: {why}" for name, why in found.problems.items()),
        ],
    )
    record(
        "kernelcast evaluate measured-tiles",
        repository,
        lambda made: records(measured_tile_figures(found, chip=target or "tpu_v3"), made, seeds=found.seeds),
        wanted=record_results,
    )


def tile_speed(
    dataset: Annotated[Path, typer.Argument(help="Folder of a dataset, whose kernels are taken.")],
    seed: SeedOption = 0,
    record_results: RecordOption = False,
    repository: RepositoryOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Pairs of graph and tile trained on a second, and the time to rank 5,800 tiles of a convolution."""
    import numpy as np

    from kernelcast.core.kernel import Kind
    from kernelcast.data.kernels import kernels
    from kernelcast.data.schema import KernelRow
    from kernelcast.data.store import Dataset
    from kernelcast.errors import SchemaError
    from kernelcast.jobs.records import records, tile_speed_figures
    from kernelcast.jobs.studies.tile_speed import RANKED_TILES
    from kernelcast.jobs.studies.tile_speed import tile_speed as run

    opened = Dataset.open(dataset)
    rows = list(opened.columns(KernelRow, "nodes", "fingerprint", "kind"))
    middle = [fingerprint for nodes, fingerprint, _ in rows if _NODES[0] <= nodes <= _NODES[1]]
    convolutions = [row for row in rows if row[2] == Kind.CONVOLUTION]
    if not convolutions or not middle:
        raise SchemaError(
            f"{dataset} has {len(convolutions)} kernels of kind {Kind.CONVOLUTION} and {len(middle)} of "
            f"{_NODES[0]} to {_NODES[1]} nodes; this study needs some of both"
        )
    chosen = set(np.random.default_rng(seed).permutation(middle)[:_KERNELS].tolist())
    closest = min(convolutions, key=lambda row: abs(row[0] - _CONVOLUTION_NODES))
    (ranked,) = kernels(opened, {closest[1]})
    found = run(list(kernels(opened, chosen)), ranked, seed=seed)
    emit(
        found,
        as_json=as_json,
        render=[
            f"{found.pairs_per_s:,.0f} pairs of graph and tile a second, {found.kernels} kernels of "
            f"{found.nodes_mean:.1f} nodes on average",
            f"{found.rank_s:.3f} s to rank {RANKED_TILES:,} tiles of a convolution of "
            f"{found.ranked_nodes} nodes",
        ],
    )
    record(
        "kernelcast evaluate tile-speed",
        repository,
        lambda made: records(tile_speed_figures(found), made, seeds=[seed]),
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
