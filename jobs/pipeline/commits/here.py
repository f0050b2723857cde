"""The pass over the commits of new runs in this process: a night with few new records takes no Spark job for it."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.records import COMMIT_TYPES
from jobs.pipeline.commits.fold import (
    INPUT,
    OF_LOG,
    OF_PARTITION,
    PLACE,
    STATE,
    STATES,
    CommitNews,
    PassOver,
    What,
    summarizer,
)
from jobs.pipeline.commits.state import SCHEMA
from jobs.relations.commits import MARKER
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from jobs.tables.table import COMMIT

COLUMNS: Final = tuple(name for name in INPUT if name not in ("what", "run", "state"))
KNOWN: Final = {
    What.COMMIT: ("offset_commits", {"is_tombstone", *OF_PARTITION, *COMMIT}, "TRUE"),
    What.RECORD: ("group_records", {*PLACE, "group_id"}, "TRUE"),
    What.MARKER: ("log_records", {*PLACE, "producer_id"}, MARKER),
}
"""Table, columns and condition of each kind of row of the input."""


IS_REVISED: Final = (
    f"{OF_LOG} AND run_id <= :done AND record_type IN ({', '.join(map(str, COMMIT_TYPES))}) "
    "AND revised_by > :done AND revised_by <= :upto"
)
REVISED_PLACES: Final = f"SELECT log_partition, log_offset FROM $log_records WHERE {IS_REVISED}"
"""The places of commits of earlier runs of which a new run has learned something."""

PENDING_PLACES: Final = """
SELECT log_partition, p.commit.log_offset AS log_offset FROM (
  SELECT log_partition, each_of(pending) AS commit FROM $commit_summaries
  WHERE cluster = :cluster AND log_topic = :topic AND hour_ms IS NULL AND cardinality(pending) > 0
) AS p
"""
"""The places of commits that wait for the end of their transaction."""

TAKEN_IN: Final = f"{OF_LOG} AND run_id <= :upto AND (run_id > :done OR log_partition IN :again)"
"""Rows of new runs, and all of the log partitions that begin again."""

SETTLED: Final = f"""
SELECT o.* FROM $offset_commits AS o
JOIN (SELECT DISTINCT * FROM ({REVISED_PLACES}) AS places) AS r
  ON o.log_partition = r.log_partition AND o.log_offset = r.log_offset
JOIN ({PENDING_PLACES}) AS w ON o.log_partition = w.log_partition AND o.log_offset = w.log_offset
WHERE o.cluster = :cluster AND o.log_topic = :topic AND o.run_id <= :done
AND NOT coalesce(o.log_partition IN :again, FALSE)
"""
"""Pending commits of earlier runs whose outcome has changed."""


def _rows_of(what: What) -> str:
    table, known, which = KNOWN[what]
    columns = ", ".join(name if name in known else f"NULL AS {name}" for name in COLUMNS)
    return f"SELECT {what.value} AS what, run_id, {columns} FROM ${table} WHERE {TAKEN_IN} AND {which}"


NEW_ROWS: Final = " UNION ALL ".join(map(_rows_of, KNOWN))
SETTLED_ROWS: Final = (
    f"SELECT {What.SETTLED.value} AS what, :upto AS run_id, {', '.join(COLUMNS)} FROM ({SETTLED}) AS s"
)
IN_ORDER: Final = "SELECT * FROM ({rows}) AS found ORDER BY log_partition, log_offset"

TOUCHED: Final = f"""
SELECT {", ".join(f"s.{name} AS {name}" for name in (*OF_PARTITION, *STATE))}
FROM $commit_summaries AS s JOIN (SELECT DISTINCT {", ".join(OF_PARTITION)} FROM ({{rows}}) AS n) AS n
ON {" AND ".join(f"s.{name} = n.{name}" for name in OF_PARTITION)}
WHERE s.cluster = :cluster AND s.log_topic = :topic AND s.hour_ms IS NULL
"""
"""The states of the groups and partitions that rows are about."""

ON: Final = f"""
SELECT {", ".join((*OF_PARTITION, *STATE))} FROM $commit_summaries
WHERE cluster = :cluster AND log_topic = :topic AND hour_ms IS NULL AND log_partition IN :changed
AND NOT log_partition IN :again
"""
"""The states of log partitions that go on, while others begin again."""


def texts(place: PassOver, done: str, news: CommitNews) -> tuple[str, str | None, dict[str, Value]]:
    """Return the text of the rows that the runs after ``done`` add or change, and that of the states from which the
    pass goes on (None: it begins), for each engine; and the values that they name.
    """
    given: dict[str, Value] = {"cluster": place.cluster, "topic": place.log_topic, "done": done}
    given |= {"upto": place.runs[-1], "changed": news.changed, "again": news.again}
    text = f"{NEW_ROWS} UNION ALL {SETTLED_ROWS}" if news.settles else NEW_ROWS
    about = f"SELECT * FROM ({text}) AS about WHERE what IN ({What.COMMIT.value}, {What.SETTLED.value})"
    of_states = ON if news.again else TOUCHED.format(rows=about)
    return text, of_states if done else None, given


def summarized_here(tables: FolderReader, place: PassOver, done: str, news: CommitNews) -> pa.Table:
    """Return the rows of ``commit_summaries`` that the runs after ``done`` add or change."""
    text, of_states, given = texts(place, done, news)
    rows = _table(tables, IN_ORDER.format(rows=text), given)
    if not rows.num_rows and not news.again:
        return SCHEMA.empty_table()
    run = pc.index_in(rows["run_id"], pa.array(place.runs, pa.string()))
    rows = rows.append_column("run", run).append_column("state", pa.nulls(rows.num_rows, pa.string()))
    passed = summarizer(place, None if of_states is None else _table(tables, of_states, given))
    return pa.Table.from_batches(passed(rows.select(list(INPUT)).to_batches()), SCHEMA)


def _table(tables: FolderReader, sql: str, given: dict[str, Value]) -> pa.Table:
    """Return the rows of a query with the types of ``commit_summaries``, and texts as plain strings."""
    rows = pa.Table.from_batches(tables.batches(sql, **given))
    return rows.cast(pa.schema([_plain(field) for field in rows.schema]))


def _plain(field: pa.Field) -> pa.Field:
    if field.name in STATE:
        return STATES.field(field.name)
    return pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type)
