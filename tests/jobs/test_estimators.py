"""What an estimator is named after, and which split it belongs to."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.jobs.tuning_fakes import PriceEstimator

from kernelcast.errors import SchemaError
from kernelcast.jobs.estimators import NamedEstimator, checkpoints_in
from kernelcast.split import Split, SplitPart


def test_an_estimator_of_another_split_is_not_judged_by_this_one() -> None:
    split = Split(name="family", families={"mlp": SplitPart.TRAIN, "gpt": SplitPart.TEST})
    found = NamedEstimator(
        name="gnn × 2", estimator=PriceEstimator(), terms=None, splits=frozenset({split.digest})
    )
    found.check_split(split)
    for splits in ({"other"}, {"other", split.digest}, set[str]()):
        with pytest.raises(SchemaError, match="it may know what is tested"):
            replace(found, splits=frozenset(splits)).check_split(split)


def test_a_folder_without_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="is no checkpoint and holds none"):
        checkpoints_in(tmp_path)
