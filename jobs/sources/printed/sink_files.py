"""Parquet and Avro files of sinks: a row for each record, with the same fields as a line of JSON has."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coordinator_core.errors import CoordinatorAuditError, InputError
from jobs.installation import how_to_add
from jobs.sources.packed import is_packed, opened
from jobs.sources.printed import json_lines
from jobs.sources.printed.printed_rows import Row, damaged, known_names, place_of

ROWS_A_BATCH = 4096


def parquet_rows(path: str) -> Iterator[Row]:
    """Yield the rows of a Parquet file; raises InputError if it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            require_unique(known_names(file.schema_arrow.names), path)
            for batch in file.iter_batches(ROWS_A_BATCH):
                yield from _rows(batch.to_pylist(), path)
    except (pa.ArrowException, OSError) as error:
        cause = "it is packed: unpack it" if is_packed(path) else " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read as parquet: {cause}") from error


def require_unique(columns: Sequence[str], path: str) -> None:
    """Raise InputError if a table has two columns of one name."""
    for name in columns:
        if columns.count(name) > 1:
            raise InputError(f"{path}: the column {name!r} is there {columns.count(name)} times")


def avro_rows(path: str) -> Iterator[Row]:
    """Yield the rows of an Avro file; raises InputError if it cannot be read, or fastavro is not installed."""
    try:
        import fastavro
    except ImportError:
        raise InputError(f"{path}: Avro needs fastavro, which is not installed: {how_to_add('avro')}") from None
    try:
        with opened(path) as stream:
            yield from _rows(fastavro.reader(stream), path)
    except CoordinatorAuditError:
        raise
    except Exception as error:  # fastavro raises whatever the bytes make Python raise
        raise InputError(f"{path}: not readable as Avro: {type(error).__name__}: {error}") from error


def _rows(records: Any, path: str) -> Iterator[Row]:
    named = place_of(path)
    for number, record in enumerate(records, 1):
        try:
            if not isinstance(record, Mapping):
                raise InputError(f"expected a record, not a {type(record).__name__}")
            yield {**json_lines.row_of(dict(record), named), "place": number}
        except (CoordinatorAuditError, ValueError, TypeError, KeyError, OverflowError) as error:
            yield damaged(str(record).encode("utf-8", "replace")[:4096], f"record {number}: {error}", number)
