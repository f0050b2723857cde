"""Whether a metadata log is of the cluster of the groups: it has the topics that their records name, or lacks them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, assigned_partitions
from coordinator_core.records import AnyRecord, LogPosition, RecordType

Named = TypeVar("Named")
Unknown = dict[Named, LogPosition]
"""Topic ids, or partitions, each with the first record that names it."""
Assigned = tuple[str, int]
"""A partition of a topic by its name."""
ELSEWHERE: Final = "the metadata log is of another cluster, and not used"
MOST_NAMED: Final = 3
"""So many logs are named in an error."""
RANDOM: Final = frozenset("QRST")
"""The character of a topic id that has the version of a UUID, where it is 4: brokers give topics random ids."""
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


class Kinship(NamedTuple):
    """Whose a metadata log is. ``strange``: why it is of another cluster than the groups. ``is_proven``: it is of their
    cluster, as it has a topic id that their records name; False: it may be of one that has topics of the same names.
    """

    strange: str | None = None
    is_proven: bool = True


def named_topics(record: AnyRecord) -> tuple[set[str], set[Assigned]]:
    """Return the topic ids in a record of a group, and the partitions that classic members were assigned."""
    return set(_topic_ids(record.value)), set(_assigned(record))


def kinship(topics: TopicHistory | None, logs: Mapping[str, Iterable[AnyRecord]]) -> Kinship:
    """Return whether the metadata log of these topics is of the cluster of the groups.

    ``logs`` are records of groups by the name of their log. The first topic id of a log that the metadata log has ends
    the search in it. What members were assigned existed: ids decide, as every topic has its own. Without ids the
    partitions that classic members were assigned do, where the metadata log did not have one of them by then.

    Raises:
        InputError: the metadata log has topic ids of some of the logs, and none of others: they are of two clusters.
    """
    # Only a log that has every topic of its cluster up to its end shows what that does not have.
    if topics is None or topics.is_listed or not topics.complete or topics.gaps:
        return Kinship()
    known: list[str] = []
    strange: dict[str, Unknown[str]] = {}
    assigned: Unknown[Assigned] = {}
    for log, records in logs.items():
        ids = _unknown_ids(topics, records, assigned)
        if ids is None:
            known.append(log)
        elif ids:
            strange[log] = ids
    if known and strange:
        raise InputError(_of_two(known, strange))
    if strange:
        unknown = {topic_id: at for ids in strange.values() for topic_id, at in ids.items()}
        said = f"{ELSEWHERE}: it has none of the {len(unknown)} topic ids that records of groups name, such as "
        return Kinship(said + _first(unknown), is_proven=False)
    since_ms, until_ms, _ = topics.reach
    lacking = {
        f"{name}-{number}": at
        for (name, number), at in assigned.items()
        # Of what was before the log begins, it shows at some time what it has at all.
        if not topics.had_partition(name, number, at.timestamp_ms if at.timestamp_ms >= since_ms else until_ms)
    }
    if lacking and not known:
        said = f"{ELSEWHERE}: it lacks partitions that members of groups were assigned, such as "
        return Kinship(said + _first(lacking), is_proven=False)
    return Kinship(is_proven=bool(known))


def _unknown_ids(
    topics: TopicHistory, records: Iterable[AnyRecord], assigned: Unknown[Assigned]
) -> Unknown[str] | None:
    """Return the topic ids in these records, of which the metadata log has none; None: it has one of them.

    The partitions that classic members were assigned are added to ``assigned``.
    """
    ids: Unknown[str] = {}
    for record in records:
        if not 0 <= record.at.timestamp_ms <= topics.reach.until_ms:
            continue  # a topic that was created behind its end
        its_ids, its_partitions = named_topics(record)
        # One is enough: ids are random, and no two clusters share one by chance.
        if any(topics.topic_name(topic_id) is not None for topic_id in its_ids):
            return None
        ids |= dict.fromkeys(its_ids - ids.keys(), record.at)
        assigned |= dict.fromkeys(its_partitions - assigned.keys(), record.at)
    return ids


def _of_two(known: Sequence[str], strange: Mapping[str, Unknown[str]]) -> str:
    others = "; ".join(f"{log} names {_first(ids)}" for log, ids in sorted(strange.items())[:MOST_NAMED])
    return (
        f"these logs are of two clusters: the metadata log has topics of {', '.join(sorted(known)[:MOST_NAMED])}, and "
        f"none of the topic ids in {len(strange)} others: {others}; give the logs of one cluster at a time"
    )


def _first(unknown: Unknown[str]) -> str:
    name, at = min(unknown.items(), key=lambda entry: (entry[1], entry[0]))
    return f"{name!r} (partition {at.partition}, offset {at.offset})"


def _topic_ids(value: object) -> Iterator[str]:
    """Yield every topic id in the fields of a record that a broker may have given to a topic."""
    if isinstance(value, Mapping):
        topic_id = value.get("topicId")
        if isinstance(topic_id, str) and topic_id[8:9] in RANDOM:
            yield topic_id
        for inner in value.values():
            yield from _topic_ids(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _topic_ids(inner)


def _assigned(record: AnyRecord) -> Iterator[Assigned]:
    """Yield the partitions that the members of a generation were assigned."""
    if record.type != RecordType.GROUP_METADATA or record.value is None:
        return
    if record.value.get("protocolType") == CONSUMER_PROTOCOL_TYPE:
        for member in record.value["members"]:
            yield from (assigned[:2] for assigned in assigned_partitions(member["assignment"]) or ())
