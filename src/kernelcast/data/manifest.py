"""The manifest of a dataset: which parts make it up, and what they have in common.

A part that the manifest does not name does not exist: replacing this one small file is what commits several
tables at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelcast.core.identity import TargetIdentity
from kernelcast.data.durable import write_durably
from kernelcast.data.rule import LabelRule
from kernelcast.data.schema import READABLE_COLUMNS, SCHEMA, columns_digest
from kernelcast.errors import SchemaError, StoreError

MANIFEST = "manifest.json"
PARTS = "parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One immutable Parquet file.

    Attributes:
        file: name inside the folder of parts.
        digest: BLAKE2b of its bytes, 32 hexadecimal digits.
    """

    table: str
    file: str
    rows: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a dataset is.

    Attributes:
        target: what its times were measured on.
        rule: when a kernel counts as measured.
        versions: of the libraries that created it.
        parts: in the order written.
        columns: digest of the tables as they were when it was last written.
    """

    target: TargetIdentity
    rule: LabelRule
    versions: Mapping[str, str]
    parts: tuple[Part, ...] = ()
    columns: str = field(default_factory=columns_digest)

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that stand for the data: they change with any part, target or rule."""
        return _digest(_body(self))

    def of_table(self, table: str) -> tuple[Part, ...]:
        """The parts of one table."""
        return tuple(part for part in self.parts if part.table == table)


def new_manifest(target: TargetIdentity, rule: LabelRule) -> Manifest:
    """A manifest without parts, with the versions installed here."""
    names = ("kernelcast", "jaxlib", "pyarrow")
    return Manifest(target=target, rule=rule, versions={name: version(name) for name in names})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the folder's manifest, whole or not at all."""
    body = _body(manifest)
    text = json.dumps({**body, "digest": _digest(body)}, indent=1) + "\n"
    write_durably(folder / MANIFEST, text.encode())


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a dataset folder.

    Raises:
        StoreError: no such folder, no manifest, or a manifest that is not whole.
        SchemaError: a manifest of another schema.
    """
    path = folder / MANIFEST
    body = _read_json(path)
    schema, columns = body.get("schema"), body.get("columns")
    if schema != SCHEMA:
        raise SchemaError(
            f"{path} has schema {schema!r}; this version of kernelcast reads {SCHEMA!r}: "
            "collect again, or install the version that wrote it"
        )
    if columns not in READABLE_COLUMNS:
        raise SchemaError(
            f"{path} has columns {columns!r} of schema {SCHEMA!r}; this version of kernelcast has "
            f"{columns_digest()!r}: collect again, or install the version that wrote it"
        )
    stated = body.pop("digest", None)
    if stated != _digest(body):
        raise StoreError(
            f"{path} was changed by hand or damaged: it states digest {stated}, has {_digest(body)}"
        )
    return Manifest(
        target=TargetIdentity.from_json(body["target"]),
        rule=LabelRule.from_json(body["rule"]),
        versions=body["versions"],
        parts=tuple(Part(**part) for part in body["parts"]),
        columns=columns,
    )


def check_target(folder: Path, manifest: Manifest, target: TargetIdentity) -> None:
    """Raises SchemaError where the dataset was measured on another target."""
    if manifest.target.digest != target.digest:
        raise SchemaError(
            f"{folder} was measured on target {manifest.target.digest}, not on {target.digest} "
            f"({manifest.target.differences(target)}): times of two targets do not mix; use another folder"
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(
            f"{path.parent} is not a dataset: it has no {MANIFEST}; give a folder of `kernelcast collect`"
        ) from None
    except NotADirectoryError:
        raise StoreError(f"{path.parent} is a file, not a dataset folder") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    except ValueError:  # of JSON or of UTF-8
        raise StoreError(f"{path} is not a dataset manifest: it is not whole JSON text") from None
    if not isinstance(body, dict):
        raise StoreError(f"{path} is not a dataset manifest: it holds {type(body).__name__}, not an object")
    return body


def _body(manifest: Manifest) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "columns": manifest.columns,
        "versions": dict(manifest.versions),
        "target": asdict(manifest.target),
        "target_digest": manifest.target.digest,
        "rule": manifest.rule.to_json(),
        "parts": [asdict(part) for part in manifest.parts],
    }


def _digest(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
