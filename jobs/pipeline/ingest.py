"""Ingest dumps into the typed tables: each record once, even if dumps repeat, overlap, or come in any order.

A row is identified by its log position, or by its place in its file if the dump has no positions. Each dump is read
once, decoded on the way (``typed_tables``), and appended without the rows that exist already. Facts that only a better
dump has about existing rows (batches, transactions) are merged into them. So a run that was killed can simply be
repeated. If two dumps have different records at the same position, they are not of the same log, and the second dump is
rejected.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline import runs, typed_tables
from jobs.pipeline.row_identity import identified
from jobs.pipeline.transaction_outcomes import settle
from jobs.sources.dump import Dump, DumpExtent
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.reader import Value
from jobs.tables.spark_reader import in_spark

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
"""Columns that segments have, and dumps made by a consumer lack."""

CONTENT: Final = ("key_hash", "timestamp_ms")
"""Columns that are equal in all dumps of a record that have them. Values are not compared: they may be deleted."""


def run(tables: Tables, dumps: list[Dump], cluster: str) -> list[Row]:
    """One ingest run; returns its rows of ``runs``, after those of runs that were killed before they had any.

    Without a dump there is nothing to take in, and no run.
    """
    run_id = runs.new_run_id()
    tables.create(RUNS)
    typed_tables.create(tables)
    typed_tables.take_back(tables)
    unfinished = [row for name in runs.unaccounted(tables) for row in runs.account_ingest(tables, name, cluster)]
    if not dumps:
        return unfinished
    ingest(tables, dumps, cluster, run_id)
    given = frozenset[tuple[str, int]]().union(*(dump.given for dump in dumps))
    return [*unfinished, *runs.account_ingest(tables, run_id, cluster, given)]


def next_offsets(tables: Tables, cluster: str) -> dict[str, dict[int, int]]:
    """Return the first offset that was not ingested, by topic and partition."""
    if not tables.exists(RUNS):
        return {}
    offsets: dict[str, dict[int, int]] = {}
    for (topic, partition), last in runs.last_offsets(tables, cluster).items():
        offsets.setdefault(topic, {})[partition] = last + 1
    return offsets


def ingest(tables: Tables, dumps: list[Dump], cluster: str, run_id: str) -> None:
    """Append the records that are not in the tables yet, and merge new facts into those that are."""
    for number, dump in enumerate(dumps):
        _take(tables, dump, cluster, run_id, f"{run_id}/{number}")
    settle(tables, cluster, run_id)


def _take(tables: Tables, dump: Dump, cluster: str, run_id: str, transaction: str) -> None:
    repeated, values = _within(cluster, dump.extents)
    overlapping = typed_tables.has_any(tables, repeated, **values)
    new = dump.segments if dump.distinct and not overlapping else None
    if new is not None:
        typed_tables.write_segments(tables, new, cluster, run_id, transaction)
        return
    identify = partial(identified, cluster=cluster, run_id=run_id)
    if dump.distinct and not overlapping:
        typed_tables.write(tables, dump.rows, transaction, identify)
        return
    rows = typed_tables.identified_rows(dump.rows, identify)
    if not dump.distinct:
        rows = _best_of_each(rows)
    taken = tables.read(LOG_RECORDS).where(in_spark(repeated, values))
    typed_tables.write(tables, _without(rows, taken) if overlapping else rows, transaction)
    if overlapping and dump.detailed and not taken.where(_lacks_details("")).isEmpty():
        details = {name: f"s.{name}" for name in DETAILS}
        tables.merge(LOG_RECORDS, rows, details | {"revised_by": f"'{run_id}'"}, when=_lacks_details("t."))


def _within(cluster: str, extents: list[DumpExtent]) -> tuple[str, dict[str, Value]]:
    """Return the condition for rows that a dump with these extents may repeat, or that have no position.

    It is SQL for ``TableReader``, and the values that it names.
    """
    values: dict[str, Value] = {"cluster": cluster}
    places = ["stray IS NOT NULL"]
    for number, (topic, partition, first) in enumerate(extents):
        of_partition = "" if partition is None else f"AND log_partition = {partition} "
        places.append(f"(log_topic = :topic_{number} {of_partition}AND log_offset >= {first})")
        values[f"topic_{number}"] = topic
    return f"cluster = :cluster AND ({' OR '.join(places)})", values


def _lacks_details(prefix: str) -> str:
    return f"{prefix}batch_base IS NULL AND {prefix}stray IS NULL"


def _without(rows: DataFrame, taken: DataFrame) -> DataFrame:
    """Return the rows that are not in ``taken``. The query fails if ``taken`` has a different record at a position."""
    known = taken.select(
        *(F.col(name).alias(f"taken_{name}") for name in LOG_RECORDS.key),
        *(F.col(name).alias(f"taken_{name}") for name in ("source", "leader_epoch")),
        *(F.col(name).alias(f"taken_{name}") for name in CONTENT),
    )
    same = [F.col(name).eqNullSafe(F.col(f"taken_{name}")) for name in LOG_RECORDS.key]
    # Columns that one of the two dumps lacks are null, and do not count as a difference.
    differs = F.coalesce(reduce(or_, (F.col(name) != F.col(f"taken_{name}") for name in CONTENT)), F.lit(False))
    is_new = F.col("taken_cluster").isNull()
    keep = F.when(differs, F.raise_error(_other_log("taken"))).otherwise(is_new)
    return rows.join(known, same, "left").where(keep).select(*rows.columns)


NEVER_REPLICATED: Final = " was never replicated, as the other one is of a later leader (KIP-101): "
OTHER_LOG: Final = (
    "so they are not of the same log: give each cluster its own name (--cluster). Of records that were printed without "
    "positions, a cluster's tables take one output, and that again when it has grown"
)


def _other_log(taken: str) -> Column:
    """Return the error message for a row that is another record than a ``taken`` one, by the prefix of its columns.

    Where both have leader epochs, these tell which one was never replicated.
    """
    epoch, taken_epoch = F.col("leader_epoch"), F.col(f"{taken}_leader_epoch")
    what_to_do = (
        F.when(
            epoch < taken_epoch,
            f"the first{NEVER_REPLICATED}leave this copy out, or take both in at once into new tables",
        )
        .when(epoch > taken_epoch, f"the second{NEVER_REPLICATED}take both copies in at once, into new tables")
        .otherwise(OTHER_LOG)
    )
    return F.concat(
        F.concat_ws("-", "log_topic", F.col("log_partition").cast("string")),
        *(F.lit(" offset "), "log_offset", F.lit(": "), "source", F.lit(" has a different record than ")),
        *(F.col(f"{taken}_source"), F.lit(", "), what_to_do),
    )


def _best_of_each(rows: DataFrame) -> DataFrame:
    """Return one row for each key: a row with a batch if there is one, then the first by source and place.

    The query fails if two rows with the same key are different records.
    """
    order = [F.col("batch_base").asc_nulls_last(), F.col("source"), F.col("place")]
    of_key = Window.partitionBy(*LOG_RECORDS.key)
    ranked = rows.withColumns(
        {
            "rank": F.row_number().over(of_key.orderBy(*order)),
            **{f"best_{name}": F.first(name).over(of_key.orderBy(*order)) for name in ("source", "leader_epoch")},
            "differs": reduce(or_, (F.min(name).over(of_key) != F.max(name).over(of_key) for name in CONTENT)),
        }
    )
    is_best = F.col("rank") == 1
    # The message names both sources, so it is raised for a row that is not the best one.
    keep = F.when(F.col("differs") & ~is_best, F.raise_error(_other_log("best"))).otherwise(is_best)
    return ranked.where(keep).select(*rows.columns)
