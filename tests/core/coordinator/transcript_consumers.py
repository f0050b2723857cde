"""How transcripts show the records of classic and consumer groups, and committed offsets."""

from collections.abc import Callable, Iterable

from coordinator_core.groups import consumer_protocol
from coordinator_core.records import Fields, RecordType

KINDS = {
    RecordType.OFFSET_COMMIT: "offset",
    RecordType.GROUP_METADATA: "classic group",
    RecordType.CONSUMER_GROUP_METADATA: "group epoch",
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: "partition metadata",
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: "member",
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: "target epoch",
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: "target",
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: "current",
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: "regex",
}


def shown_record(
    kind: RecordType, member: str, value: Fields, by_id: Callable[[Iterable[Fields]], str], named: Callable[[str], str]
) -> str:
    """What a record says; ``by_id`` shows partitions by topic id, ``named`` puts names in the place of member ids."""
    if kind is RecordType.OFFSET_COMMIT:
        return f": {value['offset']}"
    if kind is RecordType.GROUP_METADATA:
        return _classic_group(value, named)
    if kind is RecordType.CONSUMER_GROUP_METADATA:
        return str(value["epoch"])
    if kind is RecordType.CONSUMER_GROUP_MEMBER_METADATA:
        return _member(member, value)
    if kind is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
        return str(value["assignmentEpoch"])
    if kind is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
        return f"{member}: {by_id(value['topicPartitions'])}"
    if kind is RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION:
        return ", ".join(value["topics"]) or "no topics"
    state = ("stable", "unrevoked", "unreleased")[value["state"]]
    text = f"{member}: epoch {value['memberEpoch']}, {state}, has {by_id(value['assignedPartitions'])}"
    if value["partitionsPendingRevocation"]:
        text += f", gives up {by_id(value['partitionsPendingRevocation'])}"
    return text


def _classic_group(value: Fields, named: Callable[[str], str]) -> str:
    members = sorted(f"{named(each['memberId'])} {assigned(each['assignment'])}" for each in value["members"])
    text = f"generation {value['generation']}"
    if value["leader"] is not None:
        text += f" by {value['protocol']}, leader {named(value['leader'])}"
    return f"{text}: {', '.join(members) or 'empty'}"


def _member(member: str, value: Fields) -> str:
    topics = value["subscribedTopicNames"]
    wants = [*topics, *([f"regex {value['subscribedTopicRegex']}"] if value["subscribedTopicRegex"] else [])]
    instance = f" as {value['instanceId']}" if value["instanceId"] else ""
    classic = " (classic)" if value["classicMemberMetadata"] else ""
    return f"{member}{classic}{instance}: {', '.join(wants) or 'no topics'}"


def assigned(assignment: bytes) -> str:
    """The partitions of a classic member's assignment."""
    return partitions(consumer_protocol.assigned_partitions(assignment)[0]) if assignment else "nothing"


def partitions(named: Iterable[tuple[str, Iterable[int]]]) -> str:
    """Partitions by topic name."""
    shown = [f"{topic} {','.join(map(str, sorted(numbers)))}" for topic, numbers in sorted(named)]
    return "; ".join(shown) or "nothing"


def parsed(text: str) -> list[tuple[str, list[int]]]:
    """``orders:0,1;audit:2`` as topics with partitions; ``-`` is nothing."""
    if text == "-":
        return []
    parts = (part.split(":") for part in text.split(";"))
    return [(topic, [int(number) for number in numbers.split(",")]) for topic, numbers in parts]
