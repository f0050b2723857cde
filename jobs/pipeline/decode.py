"""Decode ``log_records`` into ``offset_commits``, ``group_records``, ``cluster_records`` and ``quarantine``.

The rows that an ingest run added never change, so decoding them gives the same result at any time. Each table gets one
append per run, in a transaction named after the run. Facts that later runs add to a record are merged into its decoded
row.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import Family
from jobs.pipeline import commit_summaries, decode_arrow, log_ranges, runs
from jobs.pipeline.decode_arrow import Work
from jobs.pipeline.runs import LedgerBalance
from jobs.sources.files import FAMILIES
from jobs.tables.delta import Table, Tables
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMIT_TYPES, OFFSET_COMMITS

LEARNED: Final = ("batch_base", "batch_last", "producer_id", "producer_epoch", "outcome", "source", "place")
"""Columns of a decoded row that a later run may still change."""


class Output(NamedTuple):
    """A table of decoded records, the function that decodes them, and the condition for rows of the log to go there."""

    table: Table
    work: Work
    wanted: Column


def outputs() -> list[Output]:
    """Return the tables of decoded records. Each record goes to exactly one of them, or to quarantine."""
    commits = _is_log_of(Family.GROUP) & F.col("record_type").isin(*OFFSET_COMMIT_TYPES)
    groups = _is_log_of(Family.GROUP, Family.SHARE, Family.CONNECT) & ~F.coalesce(commits, F.lit(False))
    return [
        Output(OFFSET_COMMITS, decode_arrow.offset_commits, commits),
        Output(GROUP_RECORDS, decode_arrow.struct_records, groups),
        Output(CLUSTER_RECORDS, decode_arrow.struct_records, _is_log_of(Family.METADATA)),
    ]


def _is_log_of(*families: Family) -> Column:
    return F.col("log_topic").isin([topic for topic, family in FAMILIES.items() if family in families])


def run(tables: Tables) -> list[Row]:
    """Decode the records of every ingest run that is not decoded yet, and summarise their commits.

    Return the rows added to ``runs``.

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
    log_ranges.update(tables)
    commit_summaries.update(tables)
    return rows


def decode(tables: Tables, run_id: str) -> list[LedgerBalance]:
    """Decode the rows that an ingest run added. Return how many went to each table."""
    added = tables.read(LOG_RECORDS).where(F.col("run_id") == run_id)
    is_record = F.col("kind") == "record"
    counts = runs.taken(added, {output.table.name: is_record & output.wanted for output in outputs()})
    filled = [output for output in outputs() if any(row[output.table.name] for row in counts)]
    for table, work, wanted in filled:
        tables.append(table, _mapped(added.where(is_record & wanted), work, table), run_id)
    decoded = [output.table for output in filled]
    balances = runs.balance(tables, run_id, counts, decoded)
    if any(balance.missing > 0 for balance in balances):
        tables.append(QUARANTINE, _quarantined(added), run_id)
        balances = runs.balance(tables, run_id, counts, decoded)
    return balances


def pass_on(tables: Tables, run_id: str) -> None:
    """Merge the facts that an ingest run added to older records into their decoded rows."""
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


def _quarantined(added: DataFrame) -> DataFrame:
    """Return the damaged bytes, and the records that cannot be decoded, with the reason."""
    faulty = _mapped(added.where("kind = 'record'"), decode_arrow.undecodable, QUARANTINE)
    damage = added.where("kind = 'damaged'").withColumns(
        {"reason": F.col("error"), "part": F.col("kind"), "byte_position": F.col("place")}
    )
    return faulty.unionByName(damage.select(*QUARANTINE.schema.names))
