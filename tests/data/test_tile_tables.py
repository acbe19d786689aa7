"""The two tables of tiles, and datasets from before they were there."""

import json
import math
from dataclasses import replace
from pathlib import Path

from kernelcast.core.identity import TargetIdentity
from kernelcast.data.manifest import write_manifest
from kernelcast.data.rule import LabelRule
from kernelcast.data.schema import ROW_TYPES, TileListingRow, TileRow, columns_digest
from kernelcast.data.store import Dataset, Writer, verify

TARGET = TargetIdentity(kind="test", chip="none", compiler="none")
RULE = LabelRule()
TILE = TileRow(
    kernel="a", target=TARGET.digest, tile="output[4,2] in element", is_default=1, analytical_s=math.nan
)
LISTING = TileListingRow(kernel="a", target=TARGET.digest, seed=0, most=64, valid=1, problem="")


def test_an_unknown_analytical_time_stays_unknown(tmp_path: Path) -> None:
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit([TILE], [LISTING])
    (held,) = Dataset.open(tmp_path).rows(TileRow)
    assert math.isnan(held.analytical_s)
    assert replace(held, analytical_s=0.0) == replace(TILE, analytical_s=0.0)
    assert list(Dataset.open(tmp_path).rows(TileListingRow)) == [LISTING]
    assert verify(tmp_path) == []


def test_an_older_dataset_keeps_its_digest_until_it_is_written(tmp_path: Path) -> None:
    older = columns_digest(ROW_TYPES[:-2])
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        write_manifest(tmp_path, replace(writer.manifest, columns=older))
    before = Dataset.open(tmp_path).manifest
    assert before.columns == older
    assert before.digest == json.loads((tmp_path / "manifest.json").read_text())["digest"]
    assert list(Dataset.open(tmp_path).rows(TileRow)) == []
    with Writer.open(tmp_path, target=TARGET, rule=RULE) as writer:
        writer.commit([LISTING])
    assert Dataset.open(tmp_path).manifest.columns == columns_digest()
