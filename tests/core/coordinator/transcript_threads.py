"""Threads of Streams on the classic protocol in transcripts (KIP-1071, online migration).

    loads GENERATION NAME=ACTIVE/STANDBY...   the coordinator loads a classic group of Streams
    thread NAME join|sync|beat|leave          as a thread does it; what it runs is what its last sync said; NAME=VALUE
                                              (instance, generation, protocol) is sent with it
    assigns NAME=ACTIVE/STANDBY/WARMUP...     what highly_available assigns next, to show what the document shows

Tasks are written as in ``transcript_streams``; all of them read the topic ``in``.
"""

from collections.abc import Callable
from typing import Any

from coordinator_core.assignors.inputs import Assignment, Tasks
from coordinator_core.groups import consumer_protocol
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition, RecordType
from coordinator_core.wire.embedded import decode_assignment, encode_blob
from tests.core.coordinator.transcript_streams import task_ids

TOPIC = "in"
INFO_VERSION = 11


def metadata(client: Any) -> bytes:
    """The thread's subscription."""
    active = [int(task.split("_")[1]) for task in client.tasks.get("active", ())]
    info = {
        "latestSupportedVersion": INFO_VERSION,
        "processId": f"process-{client.name}".ljust(22, "A"),
        "userEndPoint": b"",
        "taskOffsetSums": [],
        "uniqueField": 0,
        "errorCode": 0,
        "clientTags": [],
    }
    subscription = {
        "topics": [TOPIC],
        "userData": encode_blob("StreamsSubscriptionInfo", INFO_VERSION, info),
        "ownedPartitions": [{"topic": TOPIC, "partitions": active}] if active else [],
        "generationId": client.epoch,
        "rackId": None,
    }
    return encode_blob(consumer_protocol.SUBSCRIPTION, 3, subscription)


def assignment(text: str) -> bytes:
    """What a leader gives a thread, from ``ACTIVE/STANDBY``."""
    active, standby = (_numbers(part) for part in (text + "/").split("/")[:2])
    info = {
        "commonlySupportedVersion": INFO_VERSION,
        "activeTasks": [_task(number) for number in active],
        "standbyTasks": [
            {**_task(number), "partitions": [{"topic": TOPIC, "partition": number}]} for number in standby
        ],
        "topicNames": [],
        "activePartitionsByHost": [],
        "standbyPartitionsByHost": [],
        "errCode": 0,
        "nextRebalanceMs": 2**63 - 1,
    }
    partitions = [{"topic": TOPIC, "partitions": active}] if active else []
    user_data = encode_blob("StreamsAssignmentInfo", INFO_VERSION, info)
    return encode_blob(consumer_protocol.ASSIGNMENT, 3, {"assignedPartitions": partitions, "userData": user_data})


def tasks_of(blob: bytes) -> dict[str, list[str]]:
    """The tasks in an assignment."""
    decoded = decode_assignment("consumer", "stream", blob) if blob else None
    if decoded is None or decoded.nested is None:
        return {"active": [], "standby": []}
    return {
        role: sorted({f"{task['topicGroupId']}_{task['partition']}" for task in decoded.nested.fields[field]})
        for role, field in (("active", "activeTasks"), ("standby", "standbyTasks"))
    }


def classic_group(
    group_id: str, generation: int, members: dict[str, str], clients: Callable[[str], Any]
) -> CoordinatorRecord:
    """The record of a classic group of Streams."""
    listed = []
    for name, tasks in members.items():
        client = clients(name)
        client.epoch, client.protocol, client.tasks = generation, "stream", tasks_of(assignment(tasks))
        listed.append(
            {
                "memberId": client.member_id,
                "groupInstanceId": None,
                "clientId": name,
                "clientHost": "/127.0.0.1",
                "rebalanceTimeout": 60_000,
                "sessionTimeout": 45_000,
                "subscription": metadata(client),
                "assignment": assignment(tasks),
            }
        )
    value: Fields = {
        "protocolType": "consumer",
        "generation": generation,
        "protocol": "stream",
        "leader": listed[0]["memberId"],
        "currentStateTimestamp": 0,
        "members": listed,
    }
    return CoordinatorRecord(LogPosition(0, 0, 0), RecordType.GROUP_METADATA, {"group": group_id}, value, 3)


def fixed_assignor(given: dict[str, str]) -> Callable[..., Assignment[Tasks]]:
    """An assignor that always gives this."""
    targets = {}
    for name, text in given.items():
        roles = [task_ids(part.split(",")) for part in (text + "//").split("/")[:3]]
        targets[name] = Tasks(*({each["subtopologyId"]: each["partitions"] for each in role} for role in roles))
    return lambda spec, image, profile: Assignment({name: targets.get(name, Tasks()) for name in spec.members})


def data(client: Any, action: str, group_id: str, given: dict[str, str]) -> tuple[str, int, Fields]:
    """API, version and data of what a thread sends."""
    api, version, fields = _data(client, action, group_id)
    if "instance" in given:
        client.options["instance"] = given["instance"]
    if "instance" in client.options and action != "leave":
        fields["groupInstanceId"] = client.options["instance"]
    if "generation" in given:
        fields["generationId"] = int(given["generation"])
    if "protocol" in given:
        fields["protocolName"] = given["protocol"]
    return api, version, fields


def _data(client: Any, action: str, group_id: str) -> tuple[str, int, Fields]:
    if action == "join":
        protocols = [{"name": "stream", "metadata": metadata(client)}]
        timeouts = {"sessionTimeoutMs": 45_000, "rebalanceTimeoutMs": 60_000}
        who = {"groupId": group_id, "memberId": client.member_id, "protocolType": "consumer"}
        return "JoinGroup", 9, {**who, **timeouts, "protocols": protocols}
    member = {"groupId": group_id, "memberId": client.member_id, "generationId": client.epoch}
    if action == "sync":
        return "SyncGroup", 5, {**member, "protocolType": "consumer", "protocolName": "stream", "assignments": []}
    if action == "beat":
        return "Heartbeat", 4, member
    return "LeaveGroup", 5, {"groupId": group_id, "members": [{"memberId": client.member_id}]}


def synced(client: Any, blob: bytes) -> str:
    """What a sync gave, which the thread runs from now on."""
    client.tasks = tasks_of(blob)
    shown = [f"{role} {' '.join(tasks)}" for role, tasks in client.tasks.items() if tasks]
    return f"synced, has {', '.join(shown) or 'nothing'}"


def _numbers(text: str) -> list[int]:
    return [number for each in task_ids(text.split(",")) for number in each["partitions"]]


def _task(number: int) -> Fields:
    return {"topicGroupId": 0, "partition": number, "namedTopology": None}
