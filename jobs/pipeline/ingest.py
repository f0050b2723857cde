"""Dumps to ``log_records``: each record once, whatever is dumped twice, overlaps, or comes in any order.

A row is known by its log position, or, where the dump does not say that, by its place in its file. Rows that are there
already are left out of the one append that a dump makes; what a better dump knows about them (batches, transactions)
is merged into them. So a run that was killed anywhere is simply run again. Where two dumps have different records at
one position, they are not of one log: nothing of the second one is taken.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline import runs
from jobs.pipeline.transaction_outcomes import settle
from jobs.sources.dump import Dump, DumpExtent
from jobs.sources.files import SNAPSHOT_SUFFIX
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS, PLACED, RUNS

DETAILS: Final = (
    "batch_base",
    "batch_last",
    "leader_epoch",
    "compression",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "outcome",
    "timestamp_type",
    "source",
    "place",
)
"""What a segment says about a record, and a dump by a consumer does not."""

CONTENT: Final = ("key", "timestamp_ms")
"""What is the same in every dump of a record that says it; values may have been dropped."""


def run(tables: Tables, dumps: list[Dump], cluster: str) -> list[Row]:
    """One ingest run; returns its rows of ``runs``, after those of runs that were killed before they had any.

    Without a dump there is nothing to take in, and no run.
    """
    run_id = runs.new_run_id()
    for table in (LOG_RECORDS, RUNS):
        tables.create(table)
    unfinished = [row for name in runs.unaccounted(tables) for row in runs.account_ingest(tables, name, cluster)]
    if not dumps:
        return unfinished
    ingest(tables, dumps, cluster, run_id)
    given = frozenset[tuple[str, int]]().union(*(dump.given for dump in dumps))
    return [*unfinished, *runs.account_ingest(tables, run_id, cluster, given)]


def next_offsets(tables: Tables, cluster: str) -> dict[str, dict[int, int]]:
    """The first offset behind what was taken, by topic and partition."""
    if not tables.exists(LOG_RECORDS):
        return {}
    log = tables.read(LOG_RECORDS).where(F.col("cluster") == cluster)
    log = log.where(PLACED)
    found: dict[str, dict[int, int]] = {}
    for row in log.groupBy("log_topic", "log_partition").agg(F.max("log_offset").alias("last")).collect():
        found.setdefault(row.log_topic, {})[row.log_partition] = row.last + 1
    return found


def ingest(tables: Tables, dumps: list[Dump], cluster: str, run_id: str) -> None:
    """Add the records that are not in ``log_records`` yet, and learn what the dumps know about those that are."""
    for number, dump in enumerate(dumps):
        _take(tables, dump, cluster, run_id, f"{run_id}/{number}")
    settle(tables, cluster, run_id)


def _take(tables: Tables, dump: Dump, cluster: str, run_id: str, transaction: str) -> None:
    taken = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & _within(dump.extents))
    rows = _identified(dump.rows, cluster, run_id)
    if not dump.distinct:
        rows = _best_of_each(rows)
    overlapping = not taken.isEmpty()
    tables.append(LOG_RECORDS, _without(rows, taken) if overlapping else rows, transaction)
    if overlapping and dump.detailed and not taken.where(_lacks_details("")).isEmpty():
        details = {name: f"s.{name}" for name in DETAILS}
        tables.merge(LOG_RECORDS, rows, details | {"revised_by": f"'{run_id}'"}, when=_lacks_details("t."))


def _identified(rows: DataFrame, cluster: str, run_id: str) -> DataFrame:
    """The rows of a dump as rows of ``log_records``."""
    unplaced = F.col("log_offset").isNull()
    # A snapshot is the same wherever a copy of it lies.
    name = F.when(F.col("source").endswith(SNAPSHOT_SUFFIX), F.substring_index("source", "/", -1)).otherwise(
        F.col("source")
    )
    stray = F.concat_ws("#", name, F.when(unplaced, F.col("place")))
    return rows.select(
        F.lit(cluster).alias("cluster"),
        F.lit(run_id).alias("run_id"),
        _record_type().alias("record_type"),
        *rows.columns,
        F.when(unplaced | F.col("log_partition").isNull(), stray).alias("stray"),
        F.lit(None).cast("string").alias("revised_by"),
        F.lit(None).cast("boolean").alias("value_dropped"),
    )


def _record_type() -> Column:
    """The int16 at the beginning of a key, as it is signed."""
    unsigned = F.conv(F.hex(F.substring("key", 1, 2)), 16, 10).cast("int")
    number = F.when(unsigned >= 1 << 15, unsigned - (1 << 16)).otherwise(unsigned)
    return F.when((F.col("kind") == "record") & (F.length("key") >= 2), number).cast("short")


def _within(extents: list[DumpExtent]) -> Column:
    """Rows that a dump with these extents can have again; those without a position are always among them."""
    placed = [
        (F.col("log_topic") == topic)
        & (F.lit(True) if partition is None else F.col("log_partition") == partition)
        & (F.col("log_offset") >= first)
        for topic, partition, first in extents
    ]
    return reduce(or_, placed, F.col("stray").isNotNull())


def _lacks_details(prefix: str) -> str:
    return f"{prefix}batch_base IS NULL AND {prefix}stray IS NULL"


def _without(rows: DataFrame, taken: DataFrame) -> DataFrame:
    """The rows whose identity is not among those taken; fails for one that is another record than the one taken."""
    known = taken.select(
        *(F.col(name).alias(f"taken_{name}") for name in LOG_RECORDS.key),
        F.col("source").alias("taken_source"),
        *(F.col(name).alias(f"taken_{name}") for name in CONTENT),
    )
    same = [F.col(name).eqNullSafe(F.col(f"taken_{name}")) for name in LOG_RECORDS.key]
    differs = reduce(or_, (F.col(name) != F.col(f"taken_{name}") for name in CONTENT))
    is_new = F.when(F.coalesce(differs, F.lit(False)), F.raise_error(_other_log(F.col("taken_source"))))
    return rows.join(known, same, "left").where(is_new.otherwise(F.col("taken_cluster").isNull())).select(*rows.columns)


def _other_log(taken_source: Column) -> Column:
    """What is wrong with a row."""
    return F.concat(
        F.concat_ws("-", "log_topic", F.col("log_partition").cast("string")),
        *(F.lit(" offset "), "log_offset", F.lit(": "), "source", F.lit(" has another record there than ")),
        *(taken_source, F.lit(", so they are not of one log: give each cluster a name of its own (--cluster)")),
    )


def _best_of_each(rows: DataFrame) -> DataFrame:
    """One row for each identity, always the same one: that with a batch, then the first by source and place."""
    order = [F.col("batch_base").asc_nulls_last(), F.col("source"), F.col("place")]
    each = Window.partitionBy(*LOG_RECORDS.key)
    ranked = rows.withColumns(
        {
            "rank": F.row_number().over(each.orderBy(*order)),
            "of_source": F.first("source").over(each.orderBy(*order)),
            "differs": reduce(or_, (F.min(name).over(each) != F.max(name).over(each) for name in CONTENT)),
        }
    )
    # The message names the second row, so it is made of that one.
    is_best = F.when(F.col("differs") & (F.col("rank") > 1), F.raise_error(_other_log(F.col("of_source"))))
    return ranked.where(is_best.otherwise(F.col("rank") == 1)).select(*rows.columns)
