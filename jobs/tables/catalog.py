"""Every table that the jobs fill, and which columns of one name rows of another."""

from typing import Final, NamedTuple

from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.damage import Companions
from jobs.tables.history import GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import DUMPED_FILES, LEASES, NIGHTLY_STEPS
from jobs.tables.records import ARRIVED, CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, GROUP_OFFSETS, GROUP_PAGES, KNOWN_FINDINGS, NIGHTS
from jobs.tables.snapshots import BROKER_EVENTS, END_OFFSETS, LAG_HISTORY, SNAPSHOT_SETTINGS
from jobs.tables.table import Table

CATALOG: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        *(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE, RUNS),
        *(LOG_RANGES, COMMIT_SUMMARIES),
        *(*HISTORY.values(), FINDINGS, KNOWN_FINDINGS, GROUP_PAGES, GROUP_OFFSETS, GROUP_STATES, REPLAYED),
        *(END_OFFSETS, SNAPSHOT_SETTINGS, LAG_HISTORY, BROKER_EVENTS),
        *(CHECK_RESULTS, NIGHTS, NIGHTLY_STEPS, LEASES, DUMPED_FILES, ARRIVED),
    )
}
"""The tables by name, in the order in which documents list them."""

INTERNAL: Final = frozenset(
    table.name for table in (GROUP_STATES, GROUP_PAGES, REPLAYED, LEASES, DUMPED_FILES, ARRIVED)
)
"""State of the jobs, which no question of a user is about."""

DECODED: Final = (OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE)
"""The tables that decoding fills."""

_LOG: Final = (LOG_RECORDS.name, RUNS.name)
_INGESTED: Final = (*_LOG, *(table.name for table in DECODED))

COMPANIONS: Final = {
    DUMPED_FILES.name: Companions(1, _LOG),
    LOG_RECORDS.name: Companions(1, _INGESTED),
    RUNS.name: Companions(1, _INGESTED),
    **dict.fromkeys((LOG_RANGES.name, COMMIT_SUMMARIES.name), Companions(0, _INGESTED)),
    GROUP_STATES.name: Companions(0, tuple(HISTORY)),
    REPLAYED.name: Companions(0, (*HISTORY, GROUP_STATES.name)),
}
"""By table, the tables that were created before it, or before its first rows."""


class Join(NamedTuple):
    """``columns`` of a row of ``table`` are those of rows of ``other``; several where ``to_one`` is false.

    ``columns``: pairs of a column of ``table`` and one of ``other``, or of fields of their structs.
    """

    table: str
    other: str
    columns: tuple[tuple[str, str], ...]
    meaning: str
    to_one: bool = True


def _same(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in ("cluster", *names))


JOINS: Final = (
    Join("rebalances", "group_epochs", (*_same("group_id"), ("at", "opened")), "the epoch it led to"),
    Join("target_audits", "group_epochs", (*_same("group_id"), ("at", "target")), "the epoch of the judged target"),
    Join("assignments", "memberships", _same("group_id", "member_id"), "the stays of the owner", False),
    Join("violations", "group_epochs", _same("group_id"), "the epochs of the group", False),
    Join("findings", "rebalances", _same("group_id"), "the rebalances of the group", False),
    Join(
        "group_offsets",
        "assignments",
        _same("group_id", "topic", "partition"),
        "who owned the committed partition (`kind = 'current'`)",
        False,
    ),
    Join("group_offsets", "topic_history", _same("topic"), "the topic through time", False),
    Join("commit_summaries", "group_offsets", _same("group_id", "topic", "partition"), "the committed offset", False),
    Join(
        "offset_commits",
        "log_records",
        _same("log_topic", "log_partition", "log_offset"),
        "the record as it was dumped",
    ),
    Join(
        "group_records", "log_records", _same("log_topic", "log_partition", "log_offset"), "the record as it was dumped"
    ),
    Join("log_records", "runs", _same("run_id", "log_topic", "log_partition"), "the run that took it in", False),
    Join("lag_history", "end_offsets", _same("topic", "partition", "timestamp_ms"), "the snapshot of its end offset"),
)
"""The joins that questions need. Epochs are joined by their records: a group that is deleted and created again has the
same numbers once more.
"""
