"""The one pass from a dump to the typed tables, and the way back for a run that was killed in the middle of it.

``log_records`` is written last: a record is taken in once it is there. Rows of other tables that it does not have are
of a run that was killed, and are deleted before the next one, which takes the dump in again.

Where the tables are in a folder here, tasks write the files of all tables themselves. Elsewhere only Spark can write,
one table at a time, and not every cluster can keep a DataFrame in between: the rows of all tables go to ``arrivals``,
and from there to their tables, so that the dump is read once all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline.decode_arrow import TYPED, arrow_schema, typed_rows
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.lookup import lookup
from jobs.tables.records import ARRIVALS

PLACE = ("cluster", "log_topic", "log_partition", "log_offset", "stray")
"""The columns that say of all tables which row of the log it is."""


def create(tables: Tables) -> None:
    """Create the tables that do not exist."""
    for table in TYPED.values():
        tables.create(table)


def write(tables: Tables, rows: DataFrame, transaction: str) -> None:
    """Append what rows of the log become. They are read once, and decoded on the way.

    ``rows`` have the columns of ``log_records``, with all keys and values.
    """
    if written_files.can_be_committed(tables, TYPED.values()):
        files = written_files.write_files(rows, tables.location, typed_rows)
        for name, table in TYPED.items():
            written_files.commit(tables, table, [file for file in files if file.table == name], transaction)
        return
    tables.create(ARRIVALS)
    tables.replace(ARRIVALS, rows.mapInArrow(_arrive, ARRIVALS.schema))
    arrived = tables.read(ARRIVALS)
    (counts,) = arrived.agg(*(F.count(name).alias(name) for name in TYPED)).collect()
    for name, table in TYPED.items():
        if counts[name]:
            tables.append(table, arrived.where(F.col(name).isNotNull()).select(f"{name}.*"), transaction)
    tables.clear(ARRIVALS)


def _arrive(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all tables as rows of ``arrivals``."""
    for batch in batches:
        for table, rows in typed_rows(batch):
            columns = {name: pa.nulls(rows.num_rows, pa.struct(list(arrow_schema(name)))) for name in TYPED}
            columns[table.name] = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
            yield pa.RecordBatch.from_pydict(columns)


def take_back(tables: Tables) -> None:
    """Delete the rows of runs that were killed before ``log_records`` had them."""
    found = lookup(tables)
    (newest,) = found.rows("SELECT coalesce(max(run_id), '') AS run_id FROM $runs WHERE job = 'ingest'")
    for name, table in TYPED.items():
        if table is LOG_RECORDS:
            continue
        later = f"SELECT DISTINCT run_id FROM ${name} WHERE run_id > :newest"
        killed = [row["run_id"] for row in found.rows(later, newest=newest["run_id"])]
        if not killed:
            continue
        of_runs = F.col("run_id").isin(killed)
        log = tables.read(LOG_RECORDS).where(of_runs)
        there = log.select(*(F.col(each).alias(f"taken_{each}") for each in PLACE))
        same = [F.col(each).eqNullSafe(F.col(f"taken_{each}")) for each in PLACE]
        rows = tables.read(table).where(of_runs).join(there, same, "left_anti")
        tables.delete(table, rows.select("run_id", *PLACE))
