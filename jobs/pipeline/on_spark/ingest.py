"""Rows of a dump that Spark compares with each other, and with those of the tables."""

from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline.on_spark import arrived
from jobs.pipeline.row_identity import CONTENT, DETAILS, EARLIER_LEADER, LATER_LEADER, OTHER_LOG, Identify
from jobs.sources.dump import Dump
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.reader import Value
from jobs.tables.spark_reader import in_spark

LACKS_DETAILS: Final = "batch_base IS NULL AND stray IS NULL"


def take(
    tables: Tables, dump: Dump, identify: Identify, repeated: tuple[str, dict[str, Value]] | None, transaction: str
) -> None:
    """Append the rows of a dump that are new; see ``pipeline.ingest``.

    ``repeated``: the condition, and its values, for rows of the tables that the dump may repeat; None: there is none.
    """
    if dump.distinct and repeated is None:
        arrived.write(tables, dump.load(), transaction, identify)
        return
    rows = arrived.identified_rows(dump.load(), identify)
    if not dump.distinct:
        rows = _best_of_each(rows)
    if repeated is None:
        arrived.write(tables, rows, transaction)
        return
    taken = tables.read(LOG_RECORDS).where(in_spark(*repeated))
    arrived.write(tables, _without(rows, taken), transaction)
    if dump.detailed and not taken.where(LACKS_DETAILS).isEmpty():
        details = {name: f"s.{name}" for name in DETAILS}
        run_id = transaction.partition("/")[0]
        lacking = "t.batch_base IS NULL AND t.stray IS NULL"
        tables.merge(LOG_RECORDS, rows, details | {"revised_by": f"'{run_id}'"}, when=lacking)


def _without(rows: DataFrame, taken: DataFrame) -> DataFrame:
    """Return the rows that are not in ``taken``. The query fails if ``taken`` has a different record at a position."""
    known = taken.select(
        *(F.col(name).alias(f"taken_{name}") for name in LOG_RECORDS.key),
        *(F.col(name).alias(f"taken_{name}") for name in ("source", "leader_epoch")),
        *(F.col(name).alias(f"taken_{name}") for name in CONTENT),
    )
    # Null is a value of the key here: a row with an offset has no stray, and one with a stray has no offset.
    same = [F.col(name).eqNullSafe(F.col(f"taken_{name}")) for name in LOG_RECORDS.key]
    # Columns that one of the two dumps lacks are null, and do not count as a difference.
    differs = F.coalesce(reduce(or_, (_known(name) != _known(name, "taken_") for name in CONTENT)), F.lit(False))
    is_new = F.col("taken_cluster").isNull()
    keep = F.when(differs, F.raise_error(_other_log("taken"))).otherwise(is_new)
    return rows.join(known, same, "left").where(keep).select(*rows.columns)


def _known(name: str, prefix: str = "") -> Column:
    """Return a column of ``CONTENT``, null for no time: another source may have that in the value there."""
    column = F.col(f"{prefix}{name}")
    return F.when(column >= 0, column) if name == "timestamp_ms" else column


def _other_log(taken: str) -> Column:
    """Return the error message for a row that is another record than a ``taken`` one, by the prefix of its columns.

    Where both have leader epochs, these tell which one was never replicated.
    """
    epoch, taken_epoch = F.col("leader_epoch"), F.col(f"{taken}_leader_epoch")
    what_to_do = (
        F.when(epoch < taken_epoch, EARLIER_LEADER).when(epoch > taken_epoch, LATER_LEADER).otherwise(OTHER_LOG)
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
            # min and max pass over nulls: what one of the dumps lacks is no difference.
            "differs": reduce(
                or_, (F.min(_known(name)).over(of_key) != F.max(_known(name)).over(of_key) for name in CONTENT)
            ),
        }
    )
    is_best = F.col("rank") == 1
    # The message names both sources, so it is raised for a row that is not the best one.
    keep = F.when(F.col("differs") & ~is_best, F.raise_error(_other_log("best"))).otherwise(is_best)
    return ranked.where(keep).select(*rows.columns)
