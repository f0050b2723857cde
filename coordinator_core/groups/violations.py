"""Contradictions between a log and its protocol, as data: nothing here is an exception."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple, TypeVar

from coordinator_core.records import AnyRecord, CoordinatorRecord, LogPosition


class Rule(StrEnum):
    """The rules that a group's records obey; ``coordinator_core.audit.rules.table`` describes each one.

    Replay checks the first ones, which one record and the state before it can break. A compacted or truncated log
    breaks the ``*_without_*`` rules without any fault: judging them needs the coverage of the log. The audit has it,
    and checks the other rules too.
    """

    EPOCH_WENT_BACK = "epoch_went_back"
    """A group epoch lower than the one before."""
    GENERATION_WENT_BACK = "generation_went_back"
    """A classic generation lower than the one before, of a group that was not deleted in between."""
    ASSIGNMENT_EPOCH_WENT_BACK = "assignment_epoch_went_back"
    """A target assignment epoch lower than the one before."""
    ASSIGNMENT_EPOCH_AHEAD = "assignment_epoch_ahead"
    """A target assignment epoch above the group epoch."""
    MEMBER_EPOCH_WENT_BACK = "member_epoch_went_back"
    """A member's epoch lower than the one before, neither a leave nor a rejoin."""
    MEMBER_EPOCH_AHEAD = "member_epoch_ahead"
    """A member's epoch above the group epoch."""
    UNKNOWN_MEMBER_STATE = "unknown_member_state"
    """A reconciliation state that the protocol does not define."""
    ASSIGNMENT_WITHOUT_MEMBER = "assignment_without_member"
    """A current assignment of a member without metadata."""
    TARGET_WITHOUT_MEMBER = "target_without_member"
    """A target assignment of a member without metadata."""
    LEADER_WITHOUT_MEMBER = "leader_without_member"
    """A classic leader that is not a member."""
    TOMBSTONE_WITHOUT_VALUE = "tombstone_without_value"
    """A tombstone for what was not there."""
    MEMBER_REMOVED_WITH_ASSIGNMENT = "member_removed_with_assignment"
    """A member's metadata deleted while its target or current assignment still stood."""
    GROUP_REMOVED_WITH_MEMBERS = "group_removed_with_members"
    """A group deleted while it had members."""
    TYPE_CHANGED_WITHOUT_TOMBSTONE = "type_changed_without_tombstone"
    """A record of another group type while the group of the old type still stood."""
    UNKNOWN_RECORD_TYPE = "unknown_record_type"
    """A record type that this version does not know; it was left out of the state."""

    # Judged by the audit of a group's whole log.
    GROUP_OF_TWO_LOGS = "group_of_two_logs"
    EPOCH_SKIPPED = "epoch_skipped"
    EPOCH_REPEATED = "epoch_repeated"
    ASSIGNMENT_EPOCH_NOT_THE_GROUPS = "assignment_epoch_not_the_groups"
    ASSIGNMENT_OVERDUE = "assignment_overdue"
    MEMBER_EPOCH_AHEAD_OF_TARGET = "member_epoch_ahead_of_target"
    MEMBER_EPOCH_NOT_THE_TARGETS = "member_epoch_not_the_targets"
    MEMBER_EPOCH_NOT_POSITIVE = "member_epoch_not_positive"
    PREVIOUS_EPOCH_WRONG = "previous_epoch_wrong"
    PARTITION_EPOCH_WRONG = "partition_epoch_wrong"
    STATE_AGAINST_ASSIGNMENT = "state_against_assignment"
    ASSIGNED_OUTSIDE_TARGET = "assigned_outside_target"
    ASSIGNED_NOT_THE_TARGET = "assigned_not_the_target"
    ASSIGNED_WHILE_REVOKING = "assigned_while_revoking"
    DROPPED_WITHOUT_REVOCATION = "dropped_without_revocation"
    REVOKING_NOT_OWNED = "revoking_not_owned"
    UNIT_TWICE_IN_RECORD = "unit_twice_in_record"
    ASSIGNED_TO_TWO = "assigned_to_two"
    ASSIGNED_BEFORE_REVOKED = "assigned_before_revoked"
    TARGET_INCOMPLETE = "target_incomplete"
    REPLACEMENT_NOT_A_COPY = "replacement_not_a_copy"
    TARGET_OF_TWO = "target_of_two"
    TASK_TWICE_IN_PROCESS = "task_twice_in_process"
    INSTANCE_ID_OF_TWO = "instance_id_of_two"
    MEMBER_REMOVED_IN_PART = "member_removed_in_part"
    DEPARTURE_WITHOUT_EPOCH = "departure_without_epoch"
    JOIN_WITHOUT_EPOCH = "join_without_epoch"
    JOIN_WITHOUT_ASSIGNMENT = "join_without_assignment"
    TARGET_WITHOUT_EPOCH = "target_without_epoch"
    GROUP_REMOVED_IN_PART = "group_removed_in_part"
    TYPE_CHANGED_IN_PART = "type_changed_in_part"
    CONVERSION_EPOCH_WRONG = "conversion_epoch_wrong"
    SHARE_STATE_MISSING = "share_state_missing"
    SHARE_UPDATE_WITHOUT_SNAPSHOT = "share_update_without_snapshot"
    SHARE_SNAPSHOT_EPOCH_WRONG = "share_snapshot_epoch_wrong"
    SHARE_STATE_EPOCH_WENT_BACK = "share_state_epoch_went_back"
    SHARE_LEADER_EPOCH_WENT_BACK = "share_leader_epoch_went_back"
    SHARE_SETTLED_AGAIN = "share_settled_again"
    SHARE_BATCH_WRONG = "share_batch_wrong"
    SHARE_START_OFFSET_WENT_BACK = "share_start_offset_went_back"
    SHARE_TOMBSTONE_WITHOUT_STATE = "share_tombstone_without_state"
    SHARE_STATE_LOST = "share_state_lost"
    METADATA_HASH_WRONG = "metadata_hash_wrong"
    REGEX_TOPICS_WRONG = "regex_topics_wrong"
    REGEX_TOPIC_LOST = "regex_topic_lost"
    TOPOLOGY_EPOCH_WRONG = "topology_epoch_wrong"
    INTERNAL_TOPIC_CONFIG_DIFFERS = "internal_topic_config_differs"
    TASK_OUTSIDE_TOPOLOGY = "task_outside_topology"
    GENERATION_CHANGED_IN_PLACE = "generation_changed_in_place"
    MEMBER_LISTED_TWICE = "member_listed_twice"
    OWNED_NOT_ASSIGNED = "owned_not_assigned"
    PROTOCOL_AGAINST_MEMBERS = "protocol_against_members"
    WORK_OUTSIDE_GROUP = "work_outside_group"
    WORK_UNASSIGNED = "work_unassigned"
    COUNT_IMPLAUSIBLE = "count_implausible"
    COMMIT_IN_SHARE_GROUP = "commit_in_share_group"
    COMMIT_BY_NO_OWNER = "commit_by_no_owner"


class Violation(NamedTuple):
    """One broken rule: which, where in the log, in which group, for which member (None: the group), and the figures.

    ``is_open``: the operation that breaks it is the last one seen; later records may complete it.
    """

    rule: Annotated[Rule, "the rule"]
    at: Annotated[LogPosition, "the record that breaks it"]
    group_id: Annotated[str, "the group"]
    member_id: Annotated[str | None, "the member; null: the group"]
    detail: Annotated[str, "the figures"]
    is_open: Annotated[bool, "the operation under way breaks it; a later run may take it back"] = False


Violations = Sequence[Violation]
State = TypeVar("State")

NO_VIOLATIONS: Violations = ()
"""The usual result of ``apply``; shared, so that the usual record allocates nothing."""


def violation(rule: Rule, record: CoordinatorRecord, detail: str) -> tuple[Violation]:
    """Return a sequence of one: the violation of ``rule`` by this record."""
    return (Violation(rule, record.at, record.group_id, record.member_id, detail),)


def dispatch(
    handlers: Mapping[int, Callable[[State, AnyRecord], Violations]],
    state: State,
    record: CoordinatorRecord,
) -> Violations:
    """Return the violations that the handler of the record's type finds; a record of another type changes nothing
    and is one.
    """
    handler = handlers.get(record.type)
    if handler is None:
        return violation(Rule.UNKNOWN_RECORD_TYPE, record, f"record type {record.type} in a group of another type")
    return handler(state, record)
