"""Why a group rebalanced: the change that one record makes, as ``Cause``."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum

from coordinator_core.cluster.topic_changes import TopicChange
from coordinator_core.groups.classic.state import ClassicMember
from coordinator_core.groups.connect.state import ConnectMember
from coordinator_core.groups.consumer.state import ConsumerMember
from coordinator_core.groups.epochs import EpochMember
from coordinator_core.groups.share.state import ShareMember
from coordinator_core.groups.streams.state import StreamsMember
from coordinator_core.groups.subscribed_topics import SubscribedTopic
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.rows import Cause
from coordinator_core.records import LogPosition


class CauseKind(StrEnum):
    """The causes of rebalances that a log can show."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT_OR_EXPIRED = "member_left_or_expired"
    """Leave and expiry write the same records; the hint says what the commits suggest."""
    STATIC_MEMBER_LEFT = "static_member_left"
    """A static member is gone for good: its session expired, or it was removed."""
    MEMBER_LEFT = "member_left"
    """A member left, or was removed by a request: a broker's application log says so."""
    MEMBER_EXPIRED = "member_expired"
    """The session of a member expired: a broker's application log says so."""
    MEMBER_TIMED_OUT = "member_timed_out"
    """A member took longer than its rebalance timeout: a broker's application log says so."""
    STATIC_MEMBER_RETURNED = "static_member_returned"
    """A static member is back, as it was, under a new member id."""
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    """Another client took over the instance id while its member was there."""
    SUBSCRIPTION_CHANGED = "subscription_changed"
    ASSIGNMENT_MISMATCH = "assignment_mismatch"
    """A member of a classic group was assigned topics that it does not subscribe to: a Java client joins again."""
    ASSIGNMENT_NOT_TAKEN = "assignment_not_taken"
    """A member of a classic group did not read all that it was given, and joined again with what it read."""
    ASSIGNOR_CHANGED = "assignor_changed"
    ASSIGNOR_TIED = "assignor_tied"
    """As many members ask for one assignor as for another. Brokers since 4.4 compare the group's choice at each
    heartbeat, and which of them it is depends on the member that asks: no record says so.
    """
    PROTOCOL_CHANGED = "protocol_changed"
    TOPIC_CREATED = "topic_created"
    TOPIC_DELETED = "topic_deleted"
    TOPIC_GROWN = "topic_grown"
    TOPIC_METADATA_CHANGED = "topic_metadata_changed"
    """The metadata hash changed, and no topic history says how; or a leader came to know topics that were there, or
    stopped watching topics that no member subscribes to any more.
    """
    RACK_CHANGED = "rack_changed"
    REGEX_RESOLVED = "regex_resolved"
    TOPOLOGY_CHANGED = "topology_changed"
    MEMBER_CHANGED = "member_changed"
    """Another part of a member's metadata changed (streams groups: any does)."""
    LEADER_REJOINED = "leader_rejoined"
    """The leader of a classic group joined again with the same subscription: a broker's application log says so. A
    client does so that sees other partitions or racks than it assigned by, or when its application asks for it.
    """
    GROUP_CONFIG_CHANGED = "group_config_changed"
    WARMUP_CAUGHT_UP = "warmup_caught_up"
    """A member reported that a warm-up task had caught up (KIP-1071). No record says so: nothing else opens an epoch
    without a record, and its target turns the task into something else.
    """
    SHARE_STATE_INITIALIZED = "share_state_initialized"
    """Share partitions became assignable, or were in no target since the member left that had them."""
    PARTITIONS_REVOKED = "partitions_revoked"
    """Second half of an incremental rebalance: what the first half took away is given out."""
    CONNECTORS_CHANGED = "connectors_changed"
    CONFIGS_DIFFER = "configs_differ"
    """A Connect worker does not find in its config topic what it was assigned, or the leader not what another worker
    has read: they read two topics, or one of them cannot read it.
    """
    DELAY_ELAPSED = "delay_elapsed"
    """The scheduled rebalance delay of Connect is over, or the time at which Kafka Streams wanted to go on."""
    GROUP_UPGRADED = "group_upgraded"
    GROUP_DOWNGRADED = "group_downgraded"
    UNKNOWN = "unknown"
    """The log shows no cause, or begins too late to show it."""


READS_ANOTHER = "reads another config topic than others (two Connect clusters with one group.id), or cannot read it"
"""What is said of a worker for which the configurations differ."""

MOVED_FROM: dict[str, str] = {CauseKind.GROUP_UPGRADED: "generation", CauseKind.GROUP_DOWNGRADED: "epoch"}
"""What a conversion goes on from."""
DEPARTED = frozenset((CauseKind.MEMBER_LEFT_OR_EXPIRED, CauseKind.STATIC_MEMBER_LEFT))
"""Causes that leave open how a member went."""

GROUP_SOURCE = "group log"
"""Where the evidence of a cause lies, unless it says otherwise."""
_KIND_OF_FACT = {
    "regex": CauseKind.SUBSCRIPTION_CHANGED,
    "assignor": CauseKind.ASSIGNOR_CHANGED,
    "rack": CauseKind.RACK_CHANGED,
    "topology epoch": CauseKind.TOPOLOGY_CHANGED,
}

NEEDS_BUMP_AT_ONCE = frozenset(
    (
        CauseKind.ASSIGNOR_CHANGED,
        CauseKind.RACK_CHANGED,
        CauseKind.MEMBER_CHANGED,
        CauseKind.STATIC_MEMBER_RETURNED,
        CauseKind.STATIC_MEMBER_REPLACED,
    )
)
"""Causes only of an epoch that opens in the same operation; without one they made no rebalance."""

UNPROVEN_BEHIND_A_HOLE = frozenset(
    (
        CauseKind.MEMBER_JOINED,
        CauseKind.STATIC_MEMBER_REPLACED,
        CauseKind.REGEX_RESOLVED,
        CauseKind.SHARE_STATE_INITIALIZED,
    )
)
"""Causes that say what was not there before, in groups with epochs."""

_TOPIC_KINDS = {
    "created": CauseKind.TOPIC_CREATED,
    "deleted": CauseKind.TOPIC_DELETED,
    "grown": CauseKind.TOPIC_GROWN,
    "replaced": CauseKind.TOPIC_CREATED,
    "moved": CauseKind.RACK_CHANGED,
}
UNPROVEN_BEHIND_LOST_EPOCHS = UNPROVEN_BEHIND_A_HOLE.union(
    _TOPIC_KINDS.values(), (CauseKind.TOPIC_METADATA_CHANGED, CauseKind.GROUP_CONFIG_CHANGED)
)
"""With those that are found by comparing with the epoch before: one that is lost may have had them."""


def cause(
    kind: CauseKind,
    at: LogPosition,
    *,
    member: str | None = None,
    instance: str | None = None,
    topics: Iterable[str] = (),
    detail: str | None = None,
    hint: str | None = None,
    source: str = GROUP_SOURCE,
) -> Cause:
    """Return one cause, proven by the record at ``at``."""
    return Cause(str(kind), member, instance, tuple(sorted(topics)), detail, hint, source, at)


def member_changes(before: Mapping[str, object], member: EpochMember, at: LogPosition) -> list[Cause]:
    """Return what a new member metadata record changes; ``before`` is what ``member_facts`` returned before it."""
    causes: list[Cause] = []
    other: list[str] = []
    for name, new in member_facts(member).items():
        old = before[name]
        if old == new:
            continue
        if name == "topics":
            topics = _names(old) ^ _names(new)
            if topics:
                detail = difference(_names(old), _names(new))
                causes.append(about(member, CauseKind.SUBSCRIPTION_CHANGED, at, detail, topics))
        elif name in _KIND_OF_FACT:
            causes.append(about(member, _KIND_OF_FACT[name], at, f"{name} {_said(old)} to {_said(new)}"))
        else:
            other.append(name)
    if other:
        causes.append(about(member, CauseKind.MEMBER_CHANGED, at, ", ".join(other)))
    return causes


def _said(value: object) -> str:
    """Return a fact in words; the first topology epoch is 0."""
    return "none" if value is None or value == "" else str(value)


def about(
    member: EpochMember | ClassicMember | ConnectMember | OpenMembership,
    kind: CauseKind,
    at: LogPosition,
    detail: str | None = None,
    topics: Iterable[str] = (),
    hint: str | None = None,
) -> Cause:
    """Return a cause about one member."""
    return Cause(str(kind), member.member_id, member.instance_id, tuple(sorted(topics)), detail, hint, GROUP_SOURCE, at)


def member_facts(member: EpochMember) -> dict[str, object]:
    """Return the parts of a member's metadata whose change can make a group rebalance.

    Values are not shared with it.
    """
    facts: dict[str, object] = {"rack": member.rack_id}
    if isinstance(member, ConsumerMember):
        facts["topics"] = member.subscribed_topic_names
        facts["regex"] = member.subscribed_topic_regex or None
        facts["assignor"] = member.server_assignor
    elif isinstance(member, ShareMember):
        facts["topics"] = member.subscribed_topic_names
    elif isinstance(member, StreamsMember):
        facts["topology epoch"] = member.topology_epoch
        facts["client tags"] = member.client_tags
        facts["endpoint"] = member.user_endpoint
        facts["process"] = member.process_id
        facts["client"] = (member.client_id, member.client_host)
        facts["rebalance timeout"] = member.rebalance_timeout_ms
    return facts


def _names(value: object) -> set[str]:
    assert isinstance(value, list)
    return set(value)


def difference(before: AbstractSet[str], after: AbstractSet[str]) -> str:
    """Return what was added and what was removed, as ``+a -b``."""
    parts = [f"+{name}" for name in sorted(after - before)] + [f"-{name}" for name in sorted(before - after)]
    return " ".join(parts)


def topic_causes(changes: Iterable[TopicChange]) -> list[Cause]:
    """Return changes of topics as causes."""
    return [
        cause(
            _TOPIC_KINDS[change.kind],
            change.at,
            topics=(change.name,),
            detail=_topic_detail(change),
            source="cluster metadata" if change.at.partition >= 0 else "topic snapshot",
        )
        for change in changes
    ]


def _topic_detail(change: TopicChange) -> str:
    before, after = change.before, change.after
    if change.kind == "grown" and before and after:
        return f"{before.partitions} to {after.partitions} partitions"
    if change.kind == "replaced":
        return "deleted and created again"
    if change.kind == "moved":
        return "its replicas are on other racks"
    there = after or before
    count = there.partitions if there else 0
    return f"{count} partition{'' if count == 1 else 's'}"


def config_causes(before: Mapping[str, str], after: Mapping[str, str], at: LogPosition) -> list[Cause]:
    """Return the changes of the configs that a streams group's last assignment was made with."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if not changed:
        return []
    detail = ", ".join(f"{name} {before.get(name)} to {after.get(name)}" for name in changed)
    return [cause(CauseKind.GROUP_CONFIG_CHANGED, at, detail=detail)]


def recorded_topic_causes(
    before: Mapping[str, SubscribedTopic], after: Mapping[str, SubscribedTopic], names: set[str], at: LogPosition
) -> list[Cause]:
    """Return the changes of the topics ``names`` between two partition metadata records of brokers before 4.1."""
    causes = []
    for name in sorted(names & (before.keys() | after.keys())):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            kind = CauseKind.TOPIC_CREATED if old is None else CauseKind.TOPIC_DELETED
            causes.append(cause(kind, at, topics=(name,)))
        elif old.topic_id != new.topic_id:
            causes.append(cause(CauseKind.TOPIC_CREATED, at, topics=(name,), detail="deleted and created again"))
        elif old.partitions != new.partitions:
            detail = f"{old.partitions} to {new.partitions} partitions"
            causes.append(cause(CauseKind.TOPIC_GROWN, at, topics=(name,), detail=detail))
        elif old.racks != new.racks:
            causes.append(cause(CauseKind.RACK_CHANGED, at, topics=(name,), detail="its replicas are on other racks"))
    return causes
