"""Rows of history for tests, with what does not matter filled in.

A row is open exactly where it has no end, as in history: a test cannot begin with a row that no log leads to.
"""

from typing import Any

from coordinator_core.history.rows import AssignmentRow, Cause, GroupEpochRow, MembershipRow, RebalanceRow
from coordinator_core.records import LogPosition


def at(offset: int, time_ms: int | None = None) -> LogPosition:
    """A position; a second lies between two offsets unless a time is given."""
    return LogPosition(0, offset, 1_000 * offset if time_ms is None else time_ms)


def all_shown(since_ms: int) -> bool:
    """The logs of a cluster lack nothing."""
    return True


def cause(kind: str, member_id: str | None, position: LogPosition) -> Cause:
    return Cause(kind, member_id, None, (), None, None, "group log", position)


def rebalance(epoch: int, position: LogPosition, **more: Any) -> RebalanceRow:
    values: dict[str, Any] = {
        "group_id": "g",
        "group_type": "CONSUMER",
        "at": position,
        "from_epoch": epoch - 1,
        "to_epoch": epoch,
        "causes": (),
        "outcome": "converged",
        "is_open": False,
        "began_after_ms": position.timestamp_ms,
        "began_before_ms": position.timestamp_ms,
        "target": position,
        "finished": position,
        "time_to_target_ms": 0,
        "time_to_converge_ms": 0,
        "duration_min_ms": 0,
        "duration_max_ms": 0,
        "members_before": 1,
        "members_after": 1,
        "units_moved": 0,
        "units_moved_back": 0,
        "units_lost": 0,
        "idle_ms": 0,
        "idle_max_ms": 0,
        "revocations": (),
        "delayed_by": None,
        "members_behind": 0,
        "behind": (),
        "broker_away": None,
        "skipped_generations": 0,
        "delay_ms": None,
        "history_complete": True,
        "missing": None,
    }
    return RebalanceRow(**(values | more))


def as_history_has_it(values: dict[str, Any], end: str, more: dict[str, Any]) -> dict[str, Any]:
    """The values of a row; ``end`` names the column of its end."""
    row = values | more
    is_open = row[end] is None
    assert row.setdefault("is_open", is_open) == is_open, f"is_open is {row['is_open']}, and {end} is {row[end]}"
    return row


def member(member_id: str, joined: LogPosition, left: LogPosition | None = None, **more: Any) -> MembershipRow:
    values: dict[str, Any] = {
        "group_id": "g",
        "group_type": "CONSUMER",
        "member_id": member_id,
        "instance_id": None,
        "client_id": f"client-{member_id}",
        "client_host": "/10.0.0.1",
        "rack_id": None,
        "url": None,
        "subscribed_topics": ("t",),
        "process_id": None,
        "user_endpoint": None,
        "client_tags": (),
        "topology_epoch": None,
        "subscribed_regex": None,
        "joined": joined,
        "came_by": "join",
        "replaces": None,
        "first_epoch": 2,
        "left": left,
        "went_by": None if left is None else "leave or expiry",
        "hint": None,
        "away_since": None,
        "last_epoch": None,
        "history_complete": True,
        "missing": None,
        "client": "java",
        "client_certainty": "likely",
        "client_release": None,
    }
    return MembershipRow(**as_history_has_it(values, "left", more))


def assignment(
    member_id: str, partition: int, since: LogPosition, until: LogPosition | None = None, **more: Any
) -> AssignmentRow:
    values: dict[str, Any] = {
        "group_id": "g",
        "group_type": "CONSUMER",
        "member_id": member_id,
        "kind": "current",
        "role": "partition",
        "resource": "t-id",
        "topic": "t",
        "topic_id": "t-id",
        "subtopology": None,
        "connector": None,
        "partition": partition,
        "epoch": 2,
        "since": since,
        "until": until,
        "history_complete": True,
    }
    return AssignmentRow(**as_history_has_it(values, "until", more))


def epoch(number: int, opened: LogPosition, **more: Any) -> GroupEpochRow:
    values: dict[str, Any] = {
        "group_id": "g",
        "group_type": "CONSUMER",
        "epoch": number,
        "opened": opened,
        "ended": None,
        "ended_by": None,
        "state": "STABLE",
        "protocol_type": None,
        "assignor": "uniform",
        "leader": None,
        "members": (),
        "target": opened,
        "metadata_hash": None,
        "topics_proven": None,
        "topics_at": None,
        "unassigned": None,
        "assignment_error": None,
        "causes": (),
        "history_complete": True,
        "missing": None,
        "topology": None,
    }
    return GroupEpochRow(**as_history_has_it(values, "ended", more))
