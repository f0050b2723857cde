"""The table of commit summaries: what all steps after decoding need to know about offset commits."""

from typing import Final

import pyarrow as pa

from coordinator_core.records import LogPosition
from jobs.tables.history import CLUSTER
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.row_types import row_type
from jobs.tables.table import BOOLEAN, COMMIT, INT, LONG, STRING, Table, array, column

POSITION: Final = row_type(LogPosition)

REWIND: Final = pa.struct(
    [
        column("at", POSITION, "The commit that goes back"),
        column("before", LONG, "Offset committed before"),
        column("after", LONG, "Offset committed now"),
        column("log_offset_before", LONG, "Log offset of the commit before"),
        column("metadata", STRING, "The metadata of the commit that goes back; franz-go writes its member id"),
    ]
)
REMOVAL: Final = pa.struct(
    [
        column("at", POSITION, "The tombstone"),
        column("offset", LONG, "The offset that was committed"),
        column("past_expiry", BOOLEAN, "True: the expiry that the commit names had passed"),
        column("age_ms", LONG, "Time since the commit, ms; null: the commit has no time"),
        column("log_offset_before", LONG, "Log offset of the commit before"),
    ]
)
BESIDE: Final = pa.struct(
    [
        column("log_offset", LONG, "Log offset of the commit"),
        column("timestamp_ms", LONG, "Timestamp of the commit"),
        column("topic_id", STRING, "Topic id that the commit names"),
    ]
)
HELD_COMMIT: Final = pa.struct([field for name in COMMIT for field in OFFSET_COMMITS.columns if field.name == name])

COMMIT_SUMMARIES: Final = Table(
    "commit_summaries",
    "Commits of one group for one partition: all of them, or those of one hour. Hours are of what one run added, and "
    "several rows of one hour add up",
    [
        CLUSTER,
        column("run_id", STRING, "Run that added the commits; of a row of all commits: the last"),
        column("log_topic", STRING, "Topic of the log"),
        column("log_partition", INT, "Partition of the log"),
        column("group_id", STRING, "Id of the group"),
        column("topic", STRING, "Topic for which offsets are committed"),
        column("partition", INT, "Partition for which offsets are committed"),
        column("hour_ms", LONG, "Begin of the hour, ms since the epoch; -1: no time; null: all commits"),
        column("commits", LONG, "Commits that hold: outside transactions, or of committed ones, in their order"),
        column("written", LONG, "Commit records in the log, of any outcome"),
        column("tombstones", LONG, "Tombstones in the log"),
        column("log_end", LONG, "Highest offset of the log partition then; null in an hour"),
        column("first", POSITION, "The first commit that holds"),
        column("first_offset", LONG, "The offset that it commits"),
        column("last", POSITION, "The last commit that holds"),
        column("last_offset", LONG, "The offset that it commits"),
        column("rewind_count", LONG, "Number of commits that went back"),
        column("removal_count", LONG, "Number of committed offsets that were removed"),
        column("rewinds", array(REWIND), "The first commits that went back, at most 1000"),
        column("removals", array(REMOVAL), "The first removals, at most 1000"),
        column("committed", HELD_COMMIT, "The commit that holds now; null: none, or removed; null in an hour"),
        column("ended", LONG, "Log offset of the newest tombstone; null: none; null in an hour"),
        column("pending", array(HELD_COMMIT), "Commits of transactions without a known end; null in an hour"),
        column("beside", array(BESIDE), "Commits next to a record of the group; null in a row of all commits"),
    ],
    key=("cluster", "run_id", "log_topic", "log_partition", "group_id", "topic", "partition", "hour_ms"),
)
