"""Complete the decoded records of ingest runs: what was learned of them later, their counts, and their summaries.

Ingest decodes each record as it reads it (``typed_tables``). What a run learned of records that were in the tables
already is merged into their decoded rows here. Then the counts of the run must add up, and the ranges of offsets and
the summaries of commits are continued.
"""

from typing import Final, NamedTuple

import pyarrow as pa

from coordinator_core.records import Family
from jobs.pipeline import commit_summaries, log_ranges, runs, typed_tables
from jobs.pipeline.runs import RunRow
from jobs.relations.gaps import COMMITS
from jobs.sources.files import FAMILIES
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.reader import missing_table, sql_text
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.table import Table

LEARNED: Final = ("batch_base", "batch_last", "producer_id", "producer_epoch", "outcome", "source", "place")
"""Columns of a decoded row that a later run may still change."""


class Output(NamedTuple):
    """A table of decoded records, and the condition (SQL) for rows of the log that are in it."""

    table: Table
    wanted: str


def outputs() -> list[Output]:
    """Return the tables of decoded records."""
    commits = f"{_is_log_of(Family.GROUP)} AND record_type IN {COMMITS}"
    groups = f"{_is_log_of(Family.GROUP, Family.SHARE, Family.CONNECT)} AND NOT coalesce({commits}, FALSE)"
    metadata = _is_log_of(Family.METADATA)
    return [Output(OFFSET_COMMITS, commits), Output(GROUP_RECORDS, groups), Output(CLUSTER_RECORDS, metadata)]


def _is_log_of(*families: Family) -> str:
    topics = (sql_text(topic) for topic, family in FAMILIES.items() if family in families)
    return f"log_topic IN ({', '.join(topics)})"


def run(tables: Tables) -> list[RunRow]:
    """Complete every ingest run that is not complete yet. Return the rows added to ``runs``.

    Raises:
        MissingTableError: nothing was ingested into these tables.
        UnbalancedError: the counts of a run do not add up.
    """
    if not tables.exists(LOG_RECORDS):
        raise missing_table(tables.location, LOG_RECORDS.name)
    unaccounted = runs.unaccounted(tables)
    typed_tables.create(tables)
    if unaccounted:
        typed_tables.take_back(tables)
    for name in unaccounted:
        runs.account_ingest(tables, name)
    rows = []
    for run_id, records in runs.undecoded(tables):
        # Outcomes first: the counts are of rows as they will stay, and the summaries below sum what holds.
        pass_on(tables, run_id)
        balances = runs.balance(tables, run_id) if records else []
        rows += runs.account_decode(tables, run_id, balances)
    log_ranges.update(tables)
    commit_summaries.update(tables)
    return rows


def pass_on(tables: Tables, run_id: str) -> None:
    """Merge the facts that an ingest run learned of records that were in the tables into their decoded rows."""
    if not typed_tables.has_any(tables, "revised_by = :run", run=run_id):
        return
    for table, wanted in outputs():
        names = [name for name in LEARNED if name in table.schema.names]
        schema = pa.schema([table.schema.field(name) for name in (*table.key, *names)])
        text = f"SELECT {', '.join(schema.names)} FROM $log_records WHERE revised_by = :run AND {wanted}"
        changes = tables.engine().made(text, schema, run=run_id)
        tables.merge(table, changes, {name: f"s.{name}" for name in names})
