"""``log_records`` to ``offset_commits``, ``group_records``, ``cluster_records`` and ``quarantine``.

What an ingest run has added never changes, so its decoding is the same whenever it is done: each table gets one append
a run, in a transaction of that name. What later runs learned about a record is merged into its decoded row.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import Family
from jobs.pipeline import decode_arrow, runs
from jobs.pipeline.decode_arrow import Work
from jobs.pipeline.runs import LedgerBalance
from jobs.sources.files import FAMILIES
from jobs.tables.delta import Table, Tables
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMIT_TYPES, OFFSET_COMMITS

LEARNED: Final = ("batch_base", "batch_last", "producer_id", "producer_epoch", "outcome", "source", "place")
"""What a record's decoded row repeats of what a later run can still learn."""


class Output(NamedTuple):
    """A table of decoded records, and which records of the log go there."""

    table: Table
    work: Work
    wanted: Column


def outputs() -> list[Output]:
    """Where decoded records go: each record of a log to one table."""
    commits = _of(Family.GROUP) & F.col("record_type").isin(*OFFSET_COMMIT_TYPES)
    groups = _of(Family.GROUP, Family.SHARE, Family.CONNECT) & ~F.coalesce(commits, F.lit(False))
    return [
        Output(OFFSET_COMMITS, decode_arrow.offset_commits, commits),
        Output(GROUP_RECORDS, decode_arrow.struct_records, groups),
        Output(CLUSTER_RECORDS, decode_arrow.struct_records, _of(Family.METADATA)),
    ]


def _of(*families: Family) -> Column:
    return F.col("log_topic").isin([topic for topic, family in FAMILIES.items() if family in families])


def run(tables: Tables) -> list[Row]:
    """Decode every ingest run that is not decoded yet; returns the rows of ``runs`` about it.

    Raises:
        UnbalancedError: the counts of a run do not add up.
    """
    for name in runs.unaccounted(tables):
        runs.account_ingest(tables, name)
    for table in (*(output.table for output in outputs()), QUARANTINE):
        tables.create(table)
    rows = []
    for run_id, records in runs.undecoded(tables):
        balances = decode(tables, run_id) if records else []
        pass_on(tables, run_id)
        rows += runs.account_decode(tables, run_id, balances)
    return rows


def decode(tables: Tables, run_id: str) -> list[LedgerBalance]:
    """Decode what an ingest run has added; returns where its records are now."""
    added = tables.read(LOG_RECORDS).where(F.col("run_id") == run_id)
    is_record = F.col("kind") == "record"
    counts = runs.taken(added, {output.table.name: is_record & output.wanted for output in outputs()})
    filled = [output for output in outputs() if any(row[output.table.name] for row in counts)]
    for table, work, wanted in filled:
        tables.append(table, _mapped(added.where(is_record & wanted), work, table), run_id)
    decoded = [output.table for output in filled]
    balances = runs.balance(tables, run_id, counts, decoded)
    if any(of.missing > 0 for of in balances):
        tables.append(QUARANTINE, _set_aside(added), run_id)
        balances = runs.balance(tables, run_id, counts, decoded)
    return balances


def pass_on(tables: Tables, run_id: str) -> None:
    """Merge what an ingest run has learned about older records into their decoded rows."""
    revised = tables.read(LOG_RECORDS).where((F.col("revised_by") == run_id) & (F.col("run_id") != run_id))
    if revised.isEmpty():
        return
    for table, _, wanted in outputs():
        names = [name for name in LEARNED if name in table.schema.names]
        changes = revised.where(wanted).select(*table.key, *names)
        tables.merge(table, changes, {name: f"s.{name}" for name in names})


def _mapped(rows: DataFrame, work: Work, table: Table) -> DataFrame:
    passed_on = [name for name in rows.columns if name in {*table.schema.names, "key", "value"}]
    return rows.select(*passed_on).mapInArrow(decode_arrow.mapper(work, table, FAMILIES), table.schema)


def _set_aside(added: DataFrame) -> DataFrame:
    """Damaged bytes, and the records that do not decode, with the reason."""
    faulty = _mapped(added.where("kind = 'record'"), decode_arrow.undecodable, QUARANTINE)
    damage = added.where("kind = 'damaged'").withColumns(
        {"reason": F.col("error"), "part": F.col("kind"), "byte_position": F.col("place")}
    )
    return faulty.unionByName(damage.select(*QUARANTINE.schema.names))
