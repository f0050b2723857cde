"""The state that a step's records lead to, beside the one that the real coordinator had after it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.describe import group_state
from coordinator_core.groups.group import Group
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.records import CoordinatorRecord, LogPosition, RecordType
from coordinator_core.wire.record_codec import decode_record
from tests.differential.decoded import Line

IN_MEMORY_ONLY = ("endpoint_information_epoch", "pending_members", "awaiting_join")
REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE")
COMMITS = (0, 1)
EPOCHS = (RecordType.GROUP_METADATA, RecordType.CONSUMER_GROUP_METADATA)


def written(step: Line) -> Iterator[Line]:
    """All records of a step: its own, those of the timers that fired, those of the background tasks."""
    yield from step.get("records") or []
    for source in ("timers", "tasks"):
        for each in step.get(source) or []:
            yield from each.get("records") or []


def record_of(raw: Line, at: LogPosition) -> CoordinatorRecord:
    value = None if raw["value_hex"] is None else bytes.fromhex(raw["value_hex"])
    decoded = decode_record(bytes.fromhex(raw["key_hex"]), value)
    return CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version)


def told_by_coordinator(after: Line | None) -> Line | None:
    if after is None:
        return None
    told = {name: value for name, value in after.items() if name not in IN_MEMORY_ONLY}
    told["state"] = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", told["state"]).upper()
    if "protocol_type" in told:
        told["protocol_type"] = told["protocol_type"] or ""
    return told


def told_by_log(group: Group) -> Line | None:
    state = group.state
    if state is None or group.type is None:
        return None
    told = {"type": group.type.lower(), "state": group_state(group), "members": len(state.members)}
    if isinstance(state, ClassicGroup):
        names = ("generation", "protocol_type", "protocol", "leader")
    else:
        names = ("group_epoch", "assignment_epoch", "metadata_hash")
    if isinstance(state, StreamsGroup):
        names = (*names, "validated_topology_epoch")
    return told | {name: getattr(state, name) for name in names}


def compared(lines: Iterable[Line]) -> Counter[str]:
    """How many steps of traces lead to an equal state; fails where one does not that should.

    Rebalancing classic groups are in memory only (``rebalancing``). A coordinator drops an empty group from its memory,
    without a record, when it refuses a JoinGroup (``forgotten``, until its next epoch).
    """
    tally: Counter[str] = Counter()
    group, offset, forgot = Group("g1"), 0, False
    for step in lines:
        if step["kind"] == "header":
            group, offset, forgot = Group("g1", from_start=True), 0, False
        if step["kind"] != "step":
            continue
        for raw in written(step):
            record = record_of(raw, LogPosition(0, offset, step["t_ms"]))
            offset += 1
            if record.group_id != "g1":
                continue
            forgot = forgot and record.type not in EPOCHS
            if record.type not in COMMITS:
                group.apply(record)
            elif record.value is not None:
                group.commit()
        coordinator, log = told_by_coordinator(step["after"]), told_by_log(group)
        forgot = forgot or (coordinator is None and step.get("op") == "request" and _refused_join(step))
        if coordinator == log:
            tally["equal"] += 1
        elif coordinator is not None and coordinator["state"] in REBALANCING:
            assert log is None or log["type"] == "classic"
            assert log is None or log["generation"] <= coordinator["generation"]
            tally["rebalancing"] += 1
        else:
            assert forgot, (step["i"], coordinator, log)
            tally["forgotten"] += 1
    return tally


def _refused_join(step: Line) -> bool:
    return step["request"]["api"] == "JoinGroup" and (step.get("response") or {}).get("errorCode", 0) != 0
