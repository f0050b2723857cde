"""The state of the target audit as JSON: what a later run needs to continue."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import asdict, astuple, fields, replace
from typing import Any

from coordinator_core.assignors.connect.incremental import AssignorMemory
from coordinator_core.assignors.connect.work import ConnectorsAndTasks
from coordinator_core.assignors.coordinator_view import Process, StreamsView, Subscriber
from coordinator_core.assignors.inputs import Tasks
from coordinator_core.assignors.java_hash import STRING
from coordinator_core.assignors.java_order import TimelineHashMap
from coordinator_core.audit.targets.audit_state import TargetAuditState
from coordinator_core.audit.targets.connect_groups import ConnectTargetState
from coordinator_core.audit.targets.group_view import GroupView
from coordinator_core.audit.targets.leader_views import LeaderMemory
from coordinator_core.audit.targets.map_orders import MemberOrders
from coordinator_core.audit.targets.worker_inputs import GroupInput, KeptMemory, WorkerTargetState
from coordinator_core.groups.connect.configured_work import ConfiguredWork
from coordinator_core.groups.connect.rebalance_delay import RebalanceDelay
from coordinator_core.groups.record_types import EPOCH_GROUP_RECORDS
from coordinator_core.groups.state_json import Json, coder, read_stored
from coordinator_core.records import CoordinatorRecord, LogPosition

VERSION = 5
"""The version of the form; raised with every change to it, so that older forms are refused."""
BYTES = "base64:"
"""The prefix of bytes among a record's values; a text with this prefix is itself written as bytes."""

_PLAIN = ("born", "fitted", "leader_epoch")
_KIND_OF = {kind.group.value: kind for kind in EPOCH_GROUP_RECORDS}
_INPUTS = coder(list[GroupInput])


def memory_to_json(memory: TargetAuditState) -> Json:
    """Return the state of the target audit in a form that ``json`` can write."""
    return {
        "version": VERSION,
        "operation": memory.operation,
        "pending": [_record(each) for each in memory.pending],
        "view": None if memory.view is None else _view(memory.view),
        "classic": coder(LeaderMemory).to_json(memory.classic),
        "connect": _connect(memory.connect),
        "workers": _workers(memory.workers),
        **{name: getattr(memory, name) for name in _PLAIN},
    }


def memory_from_json(stored: Json) -> TargetAuditState:
    """Return the state of ``memory_to_json``; raises StateFormatError if the form is not valid, or of another
    version.
    """
    return read_stored(stored, "target audit", VERSION, _memory_from)


def _memory_from(stored: Json) -> TargetAuditState:
    time_ms, batch = stored["operation"]
    return TargetAuditState(
        (time_ms, batch),
        [_record_from(each) for each in stored["pending"]],
        None if stored["view"] is None else _view_from(stored["view"]),
        classic=coder(LeaderMemory).from_json(stored["classic"]),
        connect=_connect_from(stored["connect"]),
        workers=_workers_from(stored["workers"]),
        **{name: stored[name] for name in _PLAIN},
    )


def _record(record: CoordinatorRecord) -> Json:
    return [*record.at, record.type, _text(record.key), _text(record.value), record.value_version, record.batch]


def _record_from(stored: Json) -> CoordinatorRecord:
    partition, offset, timestamp, number, key, value, version, batch = stored
    at = LogPosition(partition, offset, timestamp)
    return CoordinatorRecord(at, number, _untext(key), _untext(value), version, batch)


def _text(value: Any) -> Json:
    if isinstance(value, dict):
        return {str(name): _text(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_text(each) for each in value]
    if isinstance(value, str) and value.startswith(BYTES):
        return [BYTES, value]
    return BYTES + b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _untext(value: Json) -> Any:
    if isinstance(value, dict):
        return {name: _untext(each) for name, each in value.items()}
    if isinstance(value, list):
        return value[1] if value[:1] == [BYTES] else [_untext(each) for each in value]
    if isinstance(value, str) and value.startswith(BYTES):
        return b64decode(value.removeprefix(BYTES))
    return value


def _view(group_view: GroupView) -> Json:
    view = group_view.view
    stored: dict[str, Json] = {
        "kind": group_view.kind.group.value,
        "jdk": view.jdk,
        "capacity": view.members.capacity,
        "members": [[member, *astuple(each)] for member, each in view.members.items()],
        "static": view.static,
        "orders": coder(MemberOrders).to_json(group_view.orders),
        "asked": group_view.asked,
        "votes": [group_view.votes.counts.capacity, list(group_view.votes.counts.items())],
    }
    if isinstance(view, StreamsView):
        return {**stored, "targets": {member: asdict(tasks) for member, tasks in view.targets.items()}}
    return {
        **stored,
        "targets": view.targets,
        "assigned": view.assigned,
        "regexes": view.regexes,
        "homogeneous": view.homogeneous,
    }


def _view_from(stored: Json) -> GroupView:
    group_view = GroupView.of(_KIND_OF[stored["kind"]], stored["jdk"])
    group_view.orders = coder(MemberOrders).from_json(stored["orders"])
    group_view.asked = stored["asked"]
    capacity, votes = stored["votes"]
    group_view.votes.counts = TimelineHashMap.restored(STRING, capacity, ((name, count) for name, count in votes))
    view = group_view.view
    view.static = stored["static"]
    if isinstance(view, StreamsView):
        processes = ((member, Process(*rest)) for member, *rest in stored["members"])
        view.members = TimelineHashMap.restored(STRING, stored["capacity"], processes)
        view.targets = {member: Tasks(**tasks) for member, tasks in stored["targets"].items()}
        return group_view
    subscribers = ((member, Subscriber(tuple(names), *rest)) for member, names, *rest in stored["members"])
    view.restore(TimelineHashMap.restored(STRING, stored["capacity"], subscribers), stored["regexes"])
    view.targets = stored["targets"]
    view.assigned = {
        topic: {int(number): member for number, member in holders.items()}
        for topic, holders in stored["assigned"].items()
    }
    view.homogeneous = stored["homogeneous"]
    return group_view


def _connect(memory: ConnectTargetState) -> Json:
    plain = {each.name: getattr(memory, each.name) for each in fields(memory)}
    return {**plain, "assignor": _assignor(memory.assignor)}


def _connect_from(stored: Json) -> ConnectTargetState:
    memory = ConnectTargetState(**stored)
    memory.assignor = _assignor_from(stored["assignor"])
    return memory


def _workers(memory: WorkerTargetState) -> Json:
    return {
        "inputs": _INPUTS.to_json(memory.inputs),
        "memories": [[each.epoch, _assignor(each.memory), each.within_ms] for each in memory.memories],
        "is_complete": memory.is_complete,
        "delay": coder(RebalanceDelay).to_json(memory.delay),
        "work": coder(ConfiguredWork).to_json(memory.work),
    }


def _workers_from(stored: Json) -> WorkerTargetState:
    return WorkerTargetState(
        _INPUTS.from_json(stored["inputs"]),
        [KeptMemory(epoch, _known_assignor_from(kept), within_ms) for epoch, kept, within_ms in stored["memories"]],
        stored["is_complete"],
        coder(RebalanceDelay).from_json(stored["delay"]),
        coder(ConfiguredWork).from_json(stored["work"]),
    )


def _assignor(kept: AssignorMemory | None) -> Json:
    if kept is None:
        return None
    return {
        **{each.name: getattr(kept, each.name) for each in fields(kept)},
        "assigned": _work(kept.assigned),
        "revoked": _work(kept.revoked),
        "workers": sorted(kept.workers),
    }


def _assignor_from(stored: Json) -> AssignorMemory | None:
    return None if stored is None else _known_assignor_from(stored)


def _known_assignor_from(stored: Json) -> AssignorMemory:
    kept = AssignorMemory(**stored)
    return replace(
        kept,
        assigned=_work_from(stored["assigned"]),
        revoked=_work_from(stored["revoked"]),
        workers=frozenset(kept.workers),
        candidates=tuple(kept.candidates),
    )


def _work(work: ConnectorsAndTasks) -> Json:
    return [list(work.connectors), [list(task) for task in work.tasks]]


def _work_from(stored: Json) -> ConnectorsAndTasks:
    connectors, tasks = stored
    return ConnectorsAndTasks.of(connectors, ((connector, number) for connector, number in tasks))
