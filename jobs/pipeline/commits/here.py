"""The pass over the commits of new runs in this process: a night with few new records takes no Spark job for it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from jobs.pipeline.commits.fold import (
    INPUT,
    NEW,
    OF_PARTITION,
    PLACE,
    STATE,
    STATES,
    PassOver,
    What,
    summarizer,
)
from jobs.pipeline.commits.state import SCHEMA
from jobs.relations.commits import MARKER
from jobs.tables.columns import COMMIT
from jobs.tables.folder_reader import FolderReader

COLUMNS: Final = tuple(name for name in INPUT if name not in ("what", "run", "state"))
KNOWN: Final = {
    What.COMMIT: ("offset_commits", {"is_tombstone", *OF_PARTITION, *COMMIT}, "TRUE"),
    What.RECORD: ("group_records", {*PLACE, "group_id"}, "TRUE"),
    What.MARKER: ("log_records", {*PLACE, "producer_id"}, MARKER),
}
"""Table, columns and condition of each kind of row of the input."""


def _rows_of(what: What) -> str:
    table, known, which = KNOWN[what]
    columns = ", ".join(name if name in known else f"NULL AS {name}" for name in COLUMNS)
    return f"SELECT {what.value} AS what, run_id, {columns} FROM ${table} WHERE {NEW} AND {which}"


ROWS: Final = f"{' UNION ALL '.join(map(_rows_of, KNOWN))} ORDER BY log_partition, log_offset"

TOUCHED: Final = f"""
SELECT {", ".join(f"s.{name} AS {name}" for name in (*OF_PARTITION, *STATE))}
FROM $commit_summaries AS s JOIN (SELECT DISTINCT {", ".join(OF_PARTITION)} FROM $offset_commits WHERE {NEW}) AS n
ON {" AND ".join(f"s.{name} = n.{name}" for name in OF_PARTITION)}
WHERE s.cluster = :cluster AND s.log_topic = :topic AND s.hour_ms IS NULL
"""


def summarized_here(tables: FolderReader, place: PassOver, done: str) -> pa.Table:
    """Return the rows of ``commit_summaries`` that the runs after ``done`` add or change."""
    given = {"cluster": place.cluster, "topic": place.log_topic, "done": done, "upto": place.runs[-1]}
    rows = _table(tables, ROWS, given)
    if not rows.num_rows:
        return SCHEMA.empty_table()
    run = pc.index_in(rows["run_id"], pa.array(place.runs, pa.string()))
    rows = rows.append_column("run", run).append_column("state", pa.nulls(rows.num_rows, pa.string()))
    states = _table(tables, TOUCHED, given) if done else None
    passed = summarizer(place, states)
    return pa.Table.from_batches(passed(rows.select(list(INPUT)).to_batches()), SCHEMA)


def _table(tables: FolderReader, sql: str, given: dict[str, str]) -> pa.Table:
    """Return the rows of a query with the types of ``commit_summaries``, and texts as plain strings."""
    rows = pa.Table.from_batches(tables.batches(sql, **given))
    return rows.cast(pa.schema([_plain(field) for field in rows.schema]))


def _plain(field: pa.Field) -> pa.Field:
    if field.name in STATE:
        return STATES.field(field.name)
    return pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type)
