"""Fill ``log_ranges``, the offsets that were read of each log partition.

A range has no gap. So the table is small where the log is whole, and steps that ask what was read need not look at the
log again.
"""

from collections.abc import Mapping
from typing import Final

from jobs.pipeline.runs import decoded_runs, newest_runs
from jobs.relations.logs import BLOCK, RANGES
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.engine import Engine
from jobs.tables.log import LOG_RANGES, LOG_RECORDS
from jobs.tables.table import PLACED

BARE: Final = (
    "SELECT DISTINCT log_topic, log_partition FROM $log_ranges WHERE cluster = :cluster AND leader_epoch IS NULL"
)
"""Log partitions with ranges of which no leader epoch is known."""

REVISED: Final = (
    "SELECT DISTINCT log_topic, log_partition FROM $log_records "
    f"WHERE cluster = :cluster AND run_id <= :done AND revised_by > :done AND {PLACED}"
)
"""Log partitions in which a new run has told facts about known rows."""

NEW: Final = "cluster = :cluster AND run_id > :done AND run_id <= :upto"
TO_ORDER: Final = (
    "SELECT sum(CASE WHEN records = last_offset - first_offset + 1 THEN 0 ELSE records END) AS records FROM $runs "
    f"WHERE job = 'ingest' AND {NEW}"
)
"""The number of records that have to be put in order: those of a log partition without a gap are only counted, which
this process does in a twentieth of Spark's time, however many they are.
"""
AGAIN: Final = "concat(log_topic, '-', CAST(log_partition AS STRING)) IN :again"
NEW_OR_AGAIN: Final = f"cluster = :cluster AND run_id <= :upto AND (run_id > :done OR {AGAIN})"


def update(tables: Tables) -> None:
    """Take in the runs that were decoded since the last time."""
    if not tables.exists(LOG_RECORDS):
        return
    tables.create(LOG_RANGES)
    known = newest_runs(tables, LOG_RANGES)
    for cluster, runs in sorted(decoded_runs(tables).items()):
        done = known.get(cluster, "")
        if runs[-1] > done:
            _add(tables, cluster, done, runs[-1])


def _add(tables: Tables, cluster: str, done: str, upto: str) -> None:
    engine, given = tables.engine(), {"cluster": cluster, "done": done, "upto": upto}
    again = _learned(engine, given) if done else []
    if not again:
        few = engine.up_to(tables.limits.rows, TO_ORDER, **given)
        # A range is of one run: new runs add ranges, and never make an older one longer.
        rows = few.made(RANGES.format(which=NEW), LOG_RANGES.schema, block=BLOCK, **given)
        written_files.append(tables, LOG_RANGES, rows, f"{upto}/{cluster}")
        return
    names = [f"{topic}-{number}" for topic, number in again]
    whole = engine.in_spark()  # log partitions from their beginning may be of any size
    rows = whole.made(RANGES.format(which=NEW_OR_AGAIN), LOG_RANGES.schema, block=BLOCK, again=names, **given)
    tables.replace_where(LOG_RANGES, rows, f"cluster = :cluster AND (run_id > :done OR {AGAIN})", again=names, **given)


def _learned(engine: Engine, given: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return the log partitions without leader epochs in which a new run has told facts about known rows."""
    bare = set(engine.tuples(BARE, **given))
    return sorted(bare.intersection(engine.tuples(REVISED, **given))) if bare else []
