"""What a night has found in each cluster, as rows of ``nights``, and how long its steps will take, for whoever watches
it: small questions to the tables that are there.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.tables.delta import Tables
from jobs.tables.engine import Engine
from jobs.tables.night_rows import LAGGING, UNSTABLE
from jobs.tables.reader import TableReader
from jobs.tables.results import NIGHTS
from jobs.tables.table import few

NEWEST: Final = """(
  SELECT lag, status, row_number() OVER (PARTITION BY group_id, topic, partition ORDER BY timestamp_ms DESC) AS nth
  FROM $lag_history WHERE cluster = :cluster
) AS points WHERE nth = 1"""
"""The last point of each group and partition."""

COUNTS: Final = {
    "groups": "SELECT count(DISTINCT group_id) AS number FROM $group_epochs WHERE cluster = :cluster AND is_open",
    "rebalances": "SELECT count(*) AS number FROM $rebalances WHERE cluster = :cluster",
    "findings": "SELECT count(*) AS number FROM $findings WHERE cluster = :cluster AND NOT coalesce(covered, FALSE)",
    "violations": "SELECT count(*) AS number FROM $violations WHERE cluster = :cluster",
    "wrong_targets": "SELECT count(*) AS number FROM $target_audits WHERE cluster = :cluster "
    "AND verdict IN ('divergent', 'invalid')",
    "unstable": "SELECT count(DISTINCT group_id) AS number FROM $findings WHERE cluster = :cluster "
    "AND kind IN :unstable",
    "total_lag": f"SELECT sum(lag) AS number FROM {NEWEST}",
    "max_lag": f"SELECT max(lag) AS number FROM {NEWEST}",
    "lagging": f"SELECT sum(CASE WHEN status IN :lagging THEN 1 ELSE 0 END) AS number FROM {NEWEST}",
}
"""The question that gives each count."""

NEEDED: Final = {
    **dict.fromkeys(("findings", "unstable"), "findings"),
    **dict.fromkeys(("total_lag", "max_lag", "lagging"), "lag_history"),
}
"""The table without which a count is not known; the others are counted in the tables of history."""


def count(tables: Tables, night: str) -> int:
    """Store what a night has found, once for each cluster that was replayed. Return the number of clusters.

    What a night had found that was killed later is replaced: this night completes it.
    """
    engine = tables.engine()
    if not engine.exists("group_states"):
        return 0
    tables.create(NIGHTS)
    clusters = [row["cluster"] for row in engine.rows("SELECT DISTINCT cluster FROM $group_states")]
    rows = [_row(engine, cluster, night) for cluster in sorted(clusters)]
    if unfinished := _unfinished(engine):
        # A killed night would be counted beside the one that completes it, and a trend would show its half-made
        # numbers.
        kept = [row for row in engine.rows("SELECT * FROM $nights") if row["night"] not in unfinished]
        tables.replace(NIGHTS, few(NIGHTS, [*kept, *rows]))
    elif rows:
        tables.append(NIGHTS, few(NIGHTS, rows), night)
    return len(rows)


def _unfinished(tables: TableReader) -> set[str]:
    """Return the nights that were killed after they had counted: the steps of a night are written when it ends."""
    nights = {row["night"] for row in tables.rows("SELECT DISTINCT night FROM $nights")}
    last = None
    if tables.exists("nightly_steps"):
        (newest,) = tables.rows("SELECT max(night) AS night FROM $nightly_steps")
        last = newest["night"]
    if last is None:  # the first night was killed; or else the table of steps was made again, and says nothing
        return nights if len(nights) == 1 else set()
    return {night for night in nights if night > last}


def _row(tables: TableReader, cluster: str, night: str) -> dict[str, object]:
    counts = {name: _count(tables, name, cluster) for name in COUNTS}
    return {"cluster": cluster, "night": night, "ended_ms": time.time_ns() // 1_000_000, **counts}


def _count(tables: TableReader, name: str, cluster: str) -> int | None:
    if not tables.exists(NEEDED.get(name, "group_states")):
        return None
    (row,) = tables.rows(COUNTS[name], cluster=cluster, unstable=sorted(UNSTABLE), lagging=LAGGING)
    return None if row["number"] is None else int(row["number"])


LAST_NIGHT = """
SELECT s.step, s.seconds FROM $nightly_steps AS s
JOIN (SELECT max(night) AS night FROM $nightly_steps WHERE step = 'ingest' AND ended = 'done') AS last
  ON s.night = last.night
WHERE s.ended <> 'failed'
"""

RECORDS = """
SELECT sum(records) AS records FROM $runs AS r
JOIN (SELECT max(run_id) AS run_id FROM $runs WHERE job = 'ingest') AS newest ON r.run_id = newest.run_id
WHERE r.job = 'ingest'
"""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of each step of the last night that took records in, and how many it took; empty: there was none."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    records: int = 0

    def left(self, steps: Sequence[str], records: int | None = None) -> float | None:
        """Return the seconds that these steps will take; None: one of them was not in the last night.

        ``records``: how many this night has taken in, if it is known. More records than last time take longer in
        proportion; fewer do not save what a step costs anyway.
        """
        if not steps or not self.seconds.keys() >= set(steps):
            return None
        more = 1.0 if not records or not self.records else max(1.0, records / self.records)
        return round(more * sum(self.seconds[step] for step in steps), 1)


def last_night(engine: Engine) -> StepTimes:
    """Return what the last night took; empty if there was none."""
    if not engine.exists("nightly_steps") or not engine.exists("runs"):
        return StepTimes()
    seconds = {row["step"]: row["seconds"] for row in engine.rows(LAST_NIGHT)}
    (newest,) = engine.rows(RECORDS)
    return StepTimes(seconds, newest["records"] or 0)
