"""Commits in the order in which they hold: one of a transaction holds from the first marker behind it."""

from pathlib import Path

from pyspark.sql import SparkSession

from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.control import COMMIT, control_name
from jobs.relations.commits import COMMITTED, KEY, OF_GROUP, in_order
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import OFFSET_COMMITS
from tests.jobs.relations.engines import of_both, write

ORDER = f"{in_order(KEY, OF_GROUP)} SELECT log_offset, effective, held_ms FROM kept"
LOG = {"cluster": "c", "log_topic": GROUP_LOG, "log_partition": 0}
MARKER = {"producer_id": 7, "is_transactional": True, "control_type": control_name(COMMIT)}


def test_a_commit_holds_from_the_time_of_its_own_marker(spark: SparkSession, tmp_path: Path) -> None:
    """Where the log got another leader, a later marker may have an earlier time."""
    commit = {**LOG, "group_id": "g", "topic": "t", "partition": 0, "is_tombstone": False}
    markers = {11: 2_000, 20: 1_500}
    write(
        tmp_path,
        {
            OFFSET_COMMITS: [
                {**commit, "log_offset": offset, "timestamp_ms": 1_000, "outcome": COMMITTED, "producer_id": 7}
                for offset in (10, 15)
            ],
            LOG_RECORDS: [
                {**LOG, **MARKER, "log_offset": at, "timestamp_ms": time_ms} for at, time_ms in markers.items()
            ],
        },
    )
    found = of_both(spark, tmp_path, ORDER, cluster="c", group_id="g")
    assert found == [(10, 11, 2_000), (15, 20, 1_500)]
