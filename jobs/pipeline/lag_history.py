"""Fill ``lag_history``: the lag of every group at each snapshot of the end offsets that the tables have.

``jobs.relations.lag`` computes it. Rows at times before anything new are kept.
"""

from typing import Final

from coordinator_core.records import GROUP_LOG
from jobs.pipeline.runs import decoded_runs, newest_runs
from jobs.relations.lag import KEY, LAG_SINCE, lag_rows
from jobs.relations.logs import log_reaches
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RANGES
from jobs.tables.reader import TableReader
from jobs.tables.snapshots import END_OFFSETS, LAG_HISTORY

ROWS: Final = (
    "SELECT count(*) AS number FROM (SELECT topic FROM $offset_commits WHERE cluster = :cluster "
    "UNION ALL SELECT topic FROM $end_offsets WHERE cluster = :cluster) AS both_kinds"
)
"""Rows that are put in order: commits and end offsets."""


def run(tables: Tables) -> int:
    """Bring the lag up to date; return the number of rows that were written."""
    if not tables.exists(END_OFFSETS) or not tables.exists(LOG_RANGES):
        return 0
    tables.create(LAG_HISTORY)
    done = newest_runs(tables, LAG_HISTORY)
    snapshots = newest_runs(tables, END_OFFSETS)
    logs = decoded_runs(tables)
    written = 0
    for cluster in sorted(snapshots.keys() & logs.keys()):
        newest = max(snapshots[cluster], logs[cluster][-1])
        if newest > done.get(cluster, ""):
            written += _update(tables, cluster, done.get(cluster, ""), newest)
    return written


def _update(tables: Tables, cluster: str, done: str, newest: str) -> int:
    reader = tables.engine()
    since_ms = _since(reader, cluster, done)
    if since_ms is None:
        return 0
    judged = lag_rows(log_reaches(reader, cluster), LAG_HISTORY.schema, cluster=cluster, run_id=newest)
    engine = reader.up_to(tables.limits.rows, ROWS, cluster=cluster)
    rows = engine.fold(
        *(LAG_SINCE, KEY, ("time_ms",), judged, LAG_HISTORY.schema), cluster=cluster, log=GROUP_LOG, since=since_ms
    )
    tables.replace_where(
        LAG_HISTORY, rows, "cluster = :cluster AND timestamp_ms >= :since", cluster=cluster, since=since_ms
    )
    (count,) = tables.engine().rows(
        "SELECT count(*) AS number FROM $lag_history WHERE cluster = :cluster AND run_id = :run",
        cluster=cluster,
        run=newest,
    )
    return int(count["number"])


def _since(tables: TableReader, cluster: str, done: str) -> int | None:
    """Return the time from which on the rows are made again; None: nothing is new.

    Something is new about times from the first new record or snapshot on, and about those after which a log partition
    had no record before.
    """
    of = {"cluster": cluster, "done": done, "topic": GROUP_LOG}
    (snapshots,) = tables.rows(
        "SELECT min(timestamp_ms) AS first FROM $end_offsets WHERE cluster = :cluster AND run_id > :done", **of
    )
    spans = list(
        tables.rows(
            "SELECT log_partition, min(CASE WHEN run_id > :done THEN coalesce(first_ms, -1) END) AS new_ms, "
            "max(CASE WHEN run_id <= :done THEN last_ms END) AS known_ms FROM $log_ranges "
            "WHERE cluster = :cluster AND log_topic = :topic GROUP BY log_partition",
            **of,
        )
    )
    new = [row for row in spans if row["new_ms"] is not None]
    # Behind the last known record nothing was certain: a snapshot from then on is judged again with what followed.
    times = [row["new_ms"] if row["known_ms"] is None else min(row["new_ms"], row["known_ms"]) for row in new]
    if snapshots["first"] is not None:
        times.append(snapshots["first"])
    return min(times, default=None)
