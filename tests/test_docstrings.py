"""The examples in docstrings run and give what they say."""

import doctest
import importlib
import pkgutil
import tomllib
from pathlib import Path

import pytest

import kernelcast

_FOUND = [module.name for module in pkgutil.walk_packages(kernelcast.__path__, "kernelcast.")]
# __main__ would run the command line.
MODULES = ["kernelcast", *sorted(name for name in _FOUND if not name.endswith("__main__"))]


@pytest.fixture(scope="module")
def extras(repository_root: Path) -> frozenset[str]:
    """Import names of the packages that only an extra installs."""
    project = tomllib.loads((repository_root / "pyproject.toml").read_text())["project"]
    listed = [name for names in project["optional-dependencies"].values() for name in names]
    return frozenset(name.split(">")[0] for name in listed)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, extras: frozenset[str]) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in extras:
            raise
        pytest.skip(f"needs {error.name}, which only an extra installs")
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0, "the captured output says which example gave what"


# Where a newcomer starts reading; each of these shows itself at work.
@pytest.mark.parametrize(
    "place",
    [
        "core.estimate.Estimates",
        "core.estimate.estimates_of",
        "core.interval.median_interval",
        "core.kernel.Kernel",
        "core.tile.Tile",
        "core.timing.Timing",
        "features.graph.Featuriser",
        "fusion.apply.apply",
        "fusion.decompose.decompose",
        "fusion.extract.kernels_of",
        "fusion.moves.apply_move",
        "fusion.plan.FusionPlan",
        "fusion.space.default",
        "fusion.space.space_of",
        "hlo.cost.program_cost",
        "hlo.format.format_program",
        "hlo.program.Program",
        "hlo.shape.Shape",
        "hlo.text.parse",
        "hlo.verify.violations",
        "metrics.absolute_percentage_errors",
        "metrics.bootstrap_interval",
        "metrics.by_group",
        "metrics.interval_coverage",
        "metrics.kendall_tau",
        "metrics.mape",
        "metrics.regret",
        "metrics.top_k_error",
        "model.network.KernelNetwork",
        "model.predict.Predictor",
        "report.results.Record",
        "search.anneal.anneal",
        "split.Split",
        "zoo.find",
    ],
)
def test_what_a_newcomer_meets_first_has_an_example(place: str) -> None:
    module, name = f"kernelcast.{place}".rsplit(".", 1)
    described = getattr(importlib.import_module(module), name)
    found = doctest.DocTestFinder().find(described, name, globs={})
    assert any(test.examples for test in found), f"{place} has no >>> example"
