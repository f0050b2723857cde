"""Whether a metadata log is of another cluster than the groups: it has none of the topics that their records name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, assigned_partitions
from coordinator_core.records import AnyRecord, RecordType

NO_TOPIC_ID: Final = "A" * 22
NAMING_TYPES: Final = (
    RecordType.GROUP_METADATA,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA,
)
"""The types of records that say which topics a group has: by their ids, or by the names in a classic assignment."""


def named_topics(record: AnyRecord) -> tuple[set[str], set[str]]:
    """Return the topic ids in a record of a group, and the names of topics that classic members were assigned."""
    return set(_topic_ids(record.value)), set(_assigned_names(record))


def of_another_cluster(topics: TopicHistory | None, records: Iterable[AnyRecord]) -> str | None:
    """Return in words that the metadata log of these topics is of another cluster; None: nothing says so.

    ``records`` are of groups, and the first topic id that the metadata log has ends the search. What members were
    assigned existed: ids decide, as every topic has its own. Without ids the names of topics that classic members were
    assigned do, where the metadata log never had any of them.
    """
    if topics is None or topics.is_listed or not topics.complete or topics.gaps:
        return None
    ids: dict[str, AnyRecord] = {}
    names: dict[str, AnyRecord] = {}
    for record in records:
        if not topics.shows_all(record.at.timestamp_ms):
            continue
        its_ids, its_names = named_topics(record)
        if any(topics.topic_name(topic_id) is not None for topic_id in its_ids):
            return None
        ids |= dict.fromkeys(its_ids - ids.keys(), record)
        names |= dict.fromkeys(its_names - names.keys(), record)
    if ids:
        return _said(ids, "topic ids")
    return _said(names, "topics") if names and not any(map(topics.had, names)) else None


def _said(unknown: Mapping[str, AnyRecord], what: str) -> str:
    name, record = min(unknown.items(), key=lambda each: (each[1].at, each[0]))
    return (
        f"the metadata log is of another cluster, and not used: it has none of the {len(unknown)} {what} that records "
        f"of groups name, such as {name!r} (partition {record.at.partition}, offset {record.at.offset})"
    )


def _topic_ids(value: Any) -> Iterator[str]:
    """Yield every topic id in the fields of a record."""
    if isinstance(value, Mapping):
        topic_id = value.get("topicId")
        if isinstance(topic_id, str) and topic_id != NO_TOPIC_ID:
            yield topic_id
        for inner in value.values():
            yield from _topic_ids(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _topic_ids(inner)


def _assigned_names(record: AnyRecord) -> Iterator[str]:
    """Yield the topics that the members of a generation were assigned."""
    if record.type != RecordType.GROUP_METADATA or record.value is None:
        return
    if record.value.get("protocolType") == CONSUMER_PROTOCOL_TYPE:
        for member in record.value["members"]:
            yield from (each.topic for each in assigned_partitions(member["assignment"]) or ())
