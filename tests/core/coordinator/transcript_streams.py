"""Streams groups in transcripts: clients that are threads of Streams applications, and how their records are shown.

    topology NAME epoch=N ID=SOURCES ID.changelog=TOPICS ID.sinks=TOPICS ID.repartition=TOPICS ID.regex=REGEX
             ID.copartition=INDEXES...
    streams NAME join|beat|leave|pause topology=NAME process=ID instance=ID rack=RACK active|standby|warmup=TASKS
            offsets=TASK:N,... ends=TASK:N,... shutdown epoch=N

Tasks are written as KIP-1071 writes them, 0_1 for partition 1 of subtopology 0. A thread runs what it was last given
and reports that; once it is fenced it has nothing.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from coordinator_core.coordinator.protocol import ErrorCode, RequestOutcome
from coordinator_core.records import Fields, RecordType

ROLES = {"active": "activeTasks", "standby": "standbyTasks", "warmup": "warmupTasks"}
NAMES = {"active": "active", "standby": "standby", "warmup": "warm-up"}
STATUS = (
    "STALE_TOPOLOGY",
    "MISSING_SOURCE_TOPICS",
    "INCORRECTLY_PARTITIONED_TOPICS",
    "MISSING_INTERNAL_TOPICS",
    "SHUTDOWN_APPLICATION",
    "ASSIGNMENT_DELAYED",
)
KINDS = {
    RecordType.STREAMS_GROUP_METADATA: "group epoch",
    RecordType.STREAMS_GROUP_MEMBER_METADATA: "member",
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: "target epoch",
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: "target",
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: "current",
    RecordType.STREAMS_GROUP_TOPOLOGY: "topology",
}


def topology(given: dict[str, str]) -> Fields:
    """The topology of a ``topology`` command."""
    subtopologies: dict[str, Fields] = {}
    fields = {
        "": "sourceTopics",
        "changelog": "stateChangelogTopics",
        "sinks": "repartitionSinkTopics",
        "repartition": "repartitionSourceTopics",
        "regex": "sourceTopicRegex",
    }
    for name, text in given.items():
        if name == "epoch":
            continue
        subtopology_id, _, what = name.partition(".")
        each = subtopologies.setdefault(subtopology_id, {"subtopologyId": subtopology_id})
        listed: list[Any] = text.split(",")
        if what in ("changelog", "repartition"):
            listed = [{"name": topic} for topic in listed]
        if what == "copartition":
            each["copartitionGroups"] = [{"sourceTopics": [int(index) for index in listed]}]
            continue
        each[fields[what]] = listed
    return {"epoch": int(given.get("epoch", 0)), "subtopologies": list(subtopologies.values())}


def heartbeat(client: Any, action: str, given: dict[str, str], topologies: dict[str, Fields]) -> Fields:
    """The data of the heartbeat that a ``streams`` command asks for."""
    joins = action == "join"
    if joins:
        client.epoch, client.tasks, client.options = 0, dict.fromkeys(ROLES, ()), client.options | given
    options = client.options if joins else {}
    leaves = action in ("leave", "pause")
    tasks = {
        field: None if leaves else task_ids(given[role].split(",") if role in given else client.tasks.get(role, ()))
        for role, field in ROLES.items()
    }
    return {
        "memberId": client.member_id,
        "memberEpoch": int(given.get("epoch", {"leave": -1, "pause": -2}.get(action, client.epoch))),
        "instanceId": client.options.get("instance"),
        "rackId": options.get("rack"),
        "rebalanceTimeoutMs": int(float(options.get("timeout", 60)) * 1000) if joins else -1,
        "topology": topologies[options["topology"]] if joins else None,
        "processId": options.get("process", client.name) if joins else None,
        "taskOffsets": _offsets(given.get("offsets")),
        "taskEndOffsets": _offsets(given.get("ends")),
        "shutdownApplication": "shutdown" in given,
        **tasks,
    }


def answered(client: Any, outcome: RequestOutcome) -> None:
    """What the thread does with its answer."""
    response = outcome.response
    code = response["errorCode"] if response is not None else outcome.error.code if outcome.error else 0
    if code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
        client.epoch, client.tasks = 0, dict.fromkeys(ROLES, ())
    if response is None or response["errorCode"]:
        return
    client.epoch = response["memberEpoch"]
    if response["activeTasks"] is not None:
        client.tasks = {role: names(response[field]) for role, field in ROLES.items()}


def shown_response(client: Any, response: Fields) -> str:
    """The answer to a heartbeat."""
    if response["memberEpoch"] < 0:
        return "left" if response["memberEpoch"] == -1 else "left for a while"
    text = f"epoch {response['memberEpoch']}, "
    text += "no news" if response["activeTasks"] is None else f"has {_roles(client.tasks)}"
    for status in response["status"]:
        text += f"; {STATUS[status['statusCode']]}: {status['statusDetail']}"
    return text


def shown_record(kind: RecordType, member: str, value: Fields) -> str:
    """What a record says."""
    if kind is RecordType.STREAMS_GROUP_METADATA:
        validated = value.get("validatedTopologyEpoch", -1)
        return f"{value['epoch']}, {'not ready' if validated == -1 else f'topology {validated} is valid'}"
    if kind is RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA:
        return str(value["assignmentEpoch"])
    if kind is RecordType.STREAMS_GROUP_TOPOLOGY:
        ids = ", ".join(each["subtopologyId"] for each in value["subtopologies"])
        return f"epoch {value['epoch']}, subtopologies {ids}"
    if kind is RecordType.STREAMS_GROUP_MEMBER_METADATA:
        instance = f" as {value['instanceId']}" if value["instanceId"] else ""
        return f"{member}{instance}: process {value['processId']}, topology {value['topologyEpoch']}"
    if kind is RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER:
        return f"{member}: {_roles(_tasks(value))}"
    state = ("", "stable", "unrevoked", "unreleased")[value["state"]]
    text = f"{member}: epoch {value['memberEpoch']}, {state}, has {_roles(_tasks(value))}"
    gives_up = _tasks(value, "PendingRevocation")
    return f"{text}, gives up {_roles(gives_up)}" if any(gives_up.values()) else text


def described(group: Fields) -> Iterator[str]:
    """A group as StreamsGroupDescribe gives it."""
    if group["errorCode"]:
        return
    yield f"epoch {group['groupEpoch']}, target of epoch {group['assignmentEpoch']}"
    topology = group["topology"] or {}
    if topology and topology["subtopologies"] is None:
        yield f"topology {topology['epoch']}, no subtopologies"
    for each in topology.get("subtopologies") or ():
        internal = [*each["repartitionSourceTopics"], *each["stateChangelogTopics"]]
        topics = ", ".join([*each["sourceTopics"], *(f"{topic['name']} ({topic['partitions']})" for topic in internal)])
        yield f"topology {group['topology']['epoch']}, subtopology {each['subtopologyId']}: {topics}"
    for member in sorted(group["members"], key=lambda each: str(each["memberId"])):
        has, wants = (_roles(_tasks(member[which])) for which in ("assignment", "targetAssignment"))
        kind = "classic member" if member["isClassic"] else "member"
        text = f"{kind} {member['memberId']} at epoch {member['memberEpoch']}: has {has}, is to have {wants}"
        yield text + "".join(
            f"; {label} {', '.join(_task(each) for each in member[field])}"
            for label, field in (("offsets", "taskOffsets"), ("ends", "taskEndOffsets"))
            if member[field]
        )


def _task(offset: Fields) -> str:
    return f"{offset['subtopologyId']}_{offset['partition']} {offset['offset']}"


def task_ids(tasks: Iterable[str]) -> list[Fields]:
    """Tasks as requests have them."""
    found: dict[str, list[int]] = {}
    for task in tasks:
        if task:
            subtopology_id, _, partition = task.rpartition("_")
            found.setdefault(subtopology_id, []).append(int(partition))
    return [{"subtopologyId": key, "partitions": numbers} for key, numbers in found.items()]


def names(tasks: list[Fields]) -> list[str]:
    """Tasks as the document writes them."""
    return sorted(f"{each['subtopologyId']}_{number}" for each in tasks for number in each["partitions"])


def _tasks(value: Fields, suffix: str = "") -> dict[str, list[str]]:
    return {role: names(value[field + suffix]) for role, field in ROLES.items()}


def _roles(tasks: dict[str, list[str]]) -> str:
    return ", ".join(f"{NAMES[role]} {' '.join(some)}" for role, some in tasks.items() if some) or "nothing"


def _offsets(text: str | None) -> list[Fields] | None:
    if text is None:
        return None
    pairs = (each.split(":") for each in text.split(",") if each)
    return [
        {"subtopologyId": task.rpartition("_")[0], "partition": int(task.rpartition("_")[2]), "offset": int(offset)}
        for task, offset in pairs
    ]
