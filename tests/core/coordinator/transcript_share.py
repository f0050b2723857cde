"""Share groups in transcripts (KIP-932); share coordinators initialise what they are asked for at once.

    share NAME join|beat|leave topics=NAMES epoch=N lost

``lost``: the request to initialise share partitions gets no answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from coordinator_core.coordinator.protocol import RequestOutcome
from coordinator_core.coordinator.share.partitions import INITIALIZE_EFFECT
from coordinator_core.records import Fields, RecordType

KINDS = {
    RecordType.SHARE_GROUP_METADATA: "group epoch",
    RecordType.SHARE_GROUP_MEMBER_METADATA: "member",
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: "target epoch",
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: "target",
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: "current",
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: "share partitions",
}
Partitions = Callable[[Iterable[Fields]], str]
"""Topic ids with partitions as a text."""


def heartbeat(client: Any, action: str, given: Mapping[str, str]) -> Fields:
    """The data of the heartbeat that a ``share`` command asks for."""
    if action == "join":
        client.epoch, client.owned = 0, []
    topics = [each for each in given["topics"].split(",") if each] if "topics" in given else None
    epoch = int(given.get("epoch", -1 if action == "leave" else client.epoch))
    return {"memberId": client.member_id, "memberEpoch": epoch, "subscribedTopicNames": topics}


def asked(outcome: RequestOutcome) -> dict[str, list[int]]:
    """The partitions of which a share coordinator is asked to initialise the state."""
    return {
        each["topic_id"]: [state["partition"] for state in each["partitions"]]
        for each in outcome.effects.get(INITIALIZE_EFFECT, ())
    }


def shown_response(client: Any, response: Fields, partitions: Partitions) -> str:
    """The answer to a heartbeat."""
    if response["memberEpoch"] < 0:
        return "left"
    owned = "no news" if response["assignment"] is None else f"shares in {partitions(client.owned)}"
    return f"epoch {response['memberEpoch']}, {owned}"


def shown_record(kind: RecordType, member: str, value: Fields, partitions: Partitions) -> str:
    """What a record says."""
    if kind is RecordType.SHARE_GROUP_METADATA:
        return str(value["epoch"])
    if kind is RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA:
        return str(value["assignmentEpoch"])
    if kind is RecordType.SHARE_GROUP_MEMBER_METADATA:
        return f"{member}: {', '.join(value['subscribedTopicNames']) or 'no topics'}"
    if kind is RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER:
        return f"{member}: {partitions(value['topicPartitions'])}"
    if kind is RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        return f"{member}: epoch {value['memberEpoch']}, shares in {partitions(value['assignedPartitions'])}"
    parts = [
        f"{name} {partitions(value[field])}"
        for name, field in (("initialising", "initializingTopics"), ("initialised", "initializedTopics"))
        if value[field]
    ]
    parts += [f"deleting {', '.join(each['topicName'] for each in value['deletingTopics'])}"] * bool(
        value["deletingTopics"]
    )
    return "; ".join(parts) or "none"


def described(group: Fields, partitions: Callable[[Iterable[tuple[str, Iterable[int]]]], str]) -> Iterator[str]:
    """A group as ShareGroupDescribe gives it."""
    if group["errorCode"]:
        return
    yield f"epoch {group['groupEpoch']}, target of epoch {group['assignmentEpoch']} by {group['assignorName']}"
    for member in sorted(group["members"], key=lambda each: str(each["memberId"])):
        shares = partitions((each["topicName"], each["partitions"]) for each in member["assignment"]["topicPartitions"])
        yield f"member {member['memberId']} at epoch {member['memberEpoch']}: shares in {shares}"
