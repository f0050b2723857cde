"""Records of groups that cannot be decoded, from the tables: of which group and key each is, if its key tells."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coordinator_core.audit.offsets.burrow import UnreadCommits, UnreadOfGroups, note_unread
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.coverage import ignored_in_words
from coordinator_core.history.lost_records import Offsets, Place, UnknownOffsets, Unreadable
from coordinator_core.records import GROUP_LOG, Family, LogPosition, RecordType
from coordinator_core.wire.record_codec import decode_key
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.reader import TableReader, Value, known_rows, known_tuples
from jobs.tables.table import PLACED

UNREADABLE: Final = f"$quarantine WHERE cluster = :cluster AND part IN ('key', 'value') AND stray IS NULL AND {PLACED}"
MOST_RUNS: Final = 50_000
"""So many runs of records whose keys cannot be decoded are kept; of more, the first and the last of each partition."""

OF_STATE: Final = f"record_type > {RecordType.OFFSET_COMMIT.value} AND group_id IS NOT NULL AND log_topic IN :groups"
"""A record that says something of a group, and not of a committed offset."""

IS_COMMIT: Final = f"log_topic = '{GROUP_LOG}' AND record_type <= {RecordType.OFFSET_COMMIT.value}"


class OfGroups(NamedTuple):
    """The first and the last record of each group, and of no known group, as ``LostRecords`` has them."""

    unreadable: Mapping[Place, Mapping[str, Unreadable]]
    unplaced: Mapping[Place, Offsets]


def unreadable_of_groups(
    tables: TableReader, cluster: str, before: str = "TRUE", topics: Sequence[str] = GROUP_TOPICS
) -> OfGroups:
    """Return the records of these logs that cannot be decoded, and match the SQL condition ``before``."""
    unreadable: dict[Place, dict[str, Unreadable]] = {}
    unplaced: dict[Place, Offsets] = {}
    for row in known_rows(
        tables,
        "SELECT log_topic, log_partition, group_id, min(log_offset) AS first, max(log_offset) AS last, "
        f"max(CASE WHEN {IS_COMMIT} THEN -1 ELSE log_offset END) AS last_of_state "
        f"FROM {UNREADABLE} AND log_topic IN :topics AND {before} GROUP BY log_topic, log_partition, group_id",
        cluster=cluster,
        topics=topics,
    ):
        place, offsets = (row["log_topic"], row["log_partition"]), (row["first"], row["last"])
        if row["group_id"] is None:
            unplaced[place] = offsets
        else:
            unreadable.setdefault(place, {})[row["group_id"]] = Unreadable(*offsets, row["last_of_state"])
    return OfGroups(unreadable, unplaced)


def unplaced_records(tables: TableReader, cluster: str, upto: str) -> list[tuple[Place, UnknownOffsets]]:
    """Return the records up to a run that may be about any group of their partition, for the replay of its groups.

    Of the share state log it is every record that cannot be decoded: its groups go on from the next snapshot.
    """
    given: dict[str, Value] = {"cluster": cluster, "upto": upto, "topics": REPLAYED_TOPICS, "shares": SHARE_TOPICS}
    some = f"{UNREADABLE} AND run_id <= :upto AND log_topic IN :topics AND (group_id IS NULL OR log_topic IN :shares)"
    runs = list(
        known_rows(
            tables,
            "SELECT log_topic, log_partition, min(log_offset) AS first, max(log_offset) AS last FROM ("
            # Offset and row number rise together in a run, so that their difference is the same for all of it.
            "SELECT log_topic, log_partition, log_offset, log_offset - row_number() OVER ("
            f"PARTITION BY log_topic, log_partition ORDER BY log_offset) AS run FROM {some}) AS placed "
            # One row above the limit shows that there are too many, without counting them first.
            f"GROUP BY log_topic, log_partition, run ORDER BY log_topic, log_partition, first LIMIT {MOST_RUNS + 1}",
            **given,
        )
    )
    if len(runs) > MOST_RUNS:
        runs = list(
            tables.rows(
                "SELECT log_topic, log_partition, min(log_offset) AS first, max(log_offset) AS last "
                f"FROM {some} GROUP BY log_topic, log_partition",
                **given,
            )
        )
    return [
        ((row["log_topic"], row["log_partition"]), UnknownOffsets(row["first"], row["last"], False)) for row in runs
    ]


def ignored_types(tables: TableReader, cluster: str) -> Iterator[str]:
    """Yield in words the types of records that no schema has; those of the metadata log are not in quarantine."""
    for row in known_rows(
        tables,
        "SELECT log_topic, log_partition, record_type, min(log_offset) AS first, count(*) AS records "
        f"FROM $quarantine WHERE cluster = :cluster AND part = 'type' AND stray IS NULL AND {PLACED} "
        "GROUP BY log_topic, log_partition, record_type ORDER BY log_topic, log_partition, record_type",
        cluster=cluster,
    ):
        place = f"{row['log_topic']}-{row['log_partition']}"
        yield ignored_in_words(place, row["record_type"], row["first"], row["records"])


def last_unplaced(tables: TableReader, cluster: str, topics: Sequence[str], before: str) -> dict[Place, int]:
    """Return by partition of these logs the last record that may be about any group, among those ``before`` selects."""
    rows = known_rows(
        tables,
        f"SELECT log_topic, log_partition, max(log_offset) AS last FROM {UNREADABLE} AND log_topic IN :topics "
        f"AND group_id IS NULL AND {before} GROUP BY log_topic, log_partition",
        cluster=cluster,
        topics=topics,
    )
    return {(row["log_topic"], row["log_partition"]): row["last"] for row in rows}


def places(tables: TableReader, cluster: str, topics: Sequence[str], before: str) -> Iterator[tuple[int, int]]:
    """Return log partition and offset of each record of these logs that ``before`` selects, in this order."""
    return known_tuples(
        tables,
        f"SELECT log_partition, log_offset FROM {UNREADABLE} AND log_topic IN :topics AND {before} "
        "ORDER BY log_partition, log_offset",
        cluster=cluster,
        topics=topics,
    )


def first_offsets(tables: TableReader, cluster: str, topics: Sequence[str], before: str) -> dict[int, int]:
    """Return by partition of these logs the offset of the first record that ``before`` selects."""
    first = (
        f"SELECT log_partition, min(log_offset) FROM {UNREADABLE} AND log_topic IN :topics AND {before} "
        "GROUP BY log_partition"
    )
    return dict(known_tuples(tables, first, cluster=cluster, topics=topics))


def unread_commits(tables: TableReader, cluster: str) -> dict[int, UnreadOfGroups]:
    """Return the commits that cannot be decoded, by log partition, and by group and partition."""
    unread: dict[int, dict[tuple[str, TopicPartition], list[UnreadCommits]]] = {}
    for log_partition, offset, time_ms, group_id, key in known_tuples(
        tables,
        "SELECT log_partition, log_offset, coalesce(timestamp_ms, -1), group_id, key "
        f"FROM {UNREADABLE} AND {IS_COMMIT} AND group_id IS NOT NULL ORDER BY log_partition, log_offset",
        cluster=cluster,
    ):
        # The key could be decoded when the record was taken in, as its group is known: it is the value that cannot.
        fields = decode_key(key, Family.GROUP)[1]
        partition, at = (
            TopicPartition(fields["topic"], fields["partition"]),
            LogPosition(log_partition, offset, time_ms),
        )
        note_unread(unread.setdefault(log_partition, {}), group_id, partition, at)
    return dict(unread)


class UnreadKey(NamedTuple):
    """The last record of a key whose value cannot be decoded."""

    place: Place
    group_id: str
    record_type: int
    key: bytes
    offset: int


def last_of_keys(tables: TableReader, cluster: str, before: str, group_id: str | None) -> Iterator[UnreadKey]:
    """Yield the last unreadable record of each key that matches the SQL condition ``before``, of one group or all."""
    wanted = "group_id IS NOT NULL" if group_id is None else "group_id = :group_id"
    for row in known_rows(
        tables,
        "SELECT log_topic, log_partition, group_id, record_type, key, max(log_offset) AS last "
        f"FROM {UNREADABLE} AND log_topic IN :topics AND {before} AND {wanted} "
        "GROUP BY log_topic, log_partition, group_id, record_type, key",
        cluster=cluster,
        topics=GROUP_TOPICS,
        group_id=group_id,
    ):
        place = (row["log_topic"], row["log_partition"])
        yield UnreadKey(place, row["group_id"], row["record_type"], row["key"], row["last"])
