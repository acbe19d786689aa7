"""Rows as the bytes of a Parquet file, and back; the only file that knows the Parquet library."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from kernelcast.data.schema import SAMPLES, Column, Row, RowT, SampleColumns
from kernelcast.errors import SchemaError, StoreError

_TYPES = {
    Column.TEXT: pa.string(),
    Column.INT32: pa.int32(),
    Column.INT64: pa.int64(),
    Column.FLOAT32: pa.float32(),
    Column.FLOAT64: pa.float64(),
    Column.INT32_LIST: pa.list_(pa.int32()),
    Column.FLOAT32_LIST: pa.list_(pa.float32()),
}
_LONG_TEXTS = frozenset({"text", "encoded"})
_COMPRESSION_LEVEL = 9


def encode(row_type: type[Row], rows: Sequence[Row]) -> bytes:
    """The rows of one table as a Parquet file."""
    columns: dict[str, Any] = {}
    for name, kind in row_type.COLUMNS.items():
        values = [getattr(row, name) for row in _holders(row_type, name, rows)]
        columns[name] = pa.array(values, type=_TYPES[kind])
    sink = io.BytesIO()
    # Long texts compress best undivided and without a dictionary; every other column repeats a lot.
    pq.write_table(
        pa.table(columns), sink, compression="zstd", compression_level=_COMPRESSION_LEVEL,
        use_dictionary=cast(Any, [name for name in row_type.COLUMNS if name not in _LONG_TEXTS]),
        data_page_size=64 << 20, row_group_size=1 << 20, write_statistics=False,
    )  # fmt: skip
    return sink.getvalue()


def decode_columns(row_type: type[Row], content: bytes, names: Sequence[str]) -> dict[str, list[Any]]:
    """Some columns of a Parquet file of this table, as Python values.

    Raises:
        StoreError: not a Parquet file.
        SchemaError: a column is missing or of another type.
    """
    try:
        # In this thread alone: a pool thread that lets go of a Python buffer while the interpreter ends
        # aborts the process (pyarrow 26).
        file = pq.ParquetFile(io.BytesIO(content), pre_buffer=False)
        present = [name for name in names if name in file.schema_arrow.names]
        table = file.read(columns=present, use_threads=False)
    except pa.ArrowException as error:
        raise StoreError(f"not a readable Parquet file: {error}") from error
    for name in names:
        found = table.schema.field(name).type if name in table.schema.names else None
        wanted = _TYPES[row_type.COLUMNS[name]]
        if found != wanted:
            raise SchemaError(
                f"column {name} of {row_type.TABLE} is {found or 'missing'}, should be {wanted}"
            )
    return {name: table.column(name).to_pylist() for name in names}


def decode(row_type: type[RowT], content: bytes) -> list[RowT]:
    """The rows of a Parquet file of this table; raises as ``decode_columns``."""
    columns = decode_columns(row_type, content, list(row_type.COLUMNS))
    fields = {name: values for name, values in columns.items() if not _in_samples(row_type, name)}
    if len(fields) < len(columns):
        samples = zip(*(columns[name] for name in SAMPLES), strict=True)
        fields["samples"] = [SampleColumns(**dict(zip(SAMPLES, values, strict=True))) for values in samples]
    make = cast(Any, row_type)  # a protocol has no constructor of its own
    return [make(**dict(zip(fields, values, strict=True))) for values in zip(*fields.values(), strict=True)]


def _in_samples(row_type: type[Row], name: str) -> bool:
    return "clock" in row_type.COLUMNS and name in SAMPLES


def _holders(row_type: type[Row], name: str, rows: Sequence[Row]) -> Sequence[Any]:
    return [cast(Any, row).samples for row in rows] if _in_samples(row_type, name) else rows
