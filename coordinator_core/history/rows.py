"""The rows of history: one tuple type per table, each column with its meaning. The tables' schemas derive from here.

A row that may still change is marked ``is_open``: a later run replaces it by its key. All other rows are final. Columns
of type ``LogPosition`` are the records that prove the row. All times are in milliseconds since the epoch, all durations
in milliseconds.
"""

from enum import StrEnum
from typing import Annotated, NamedTuple

from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.groups.streams.readiness import TopologyCheck
from coordinator_core.groups.violations import Violation
from coordinator_core.records import LogPosition

At = LogPosition
MaybeAt = LogPosition | None


class Cause(NamedTuple):
    """One thing that made a group rebalance, with what proves it."""

    kind: Annotated[str, "a CauseKind"]
    member_id: Annotated[str | None, "the member that it is about; null: it is about the group or its topics"]
    instance_id: Annotated[str | None, "that member's instance id, if static"]
    topics: Annotated[tuple[str, ...], "the topics (connectors) that it is about"]
    detail: Annotated[str | None, "what changed, from what to what"]
    hint: Annotated[
        str | None, "what the log suggests but does not prove, such as left or expired; file and line of a broker log"
    ]
    source: Annotated[
        str, "where the evidence lies: group log, cluster metadata, topic snapshot, or the topic of another log"
    ]
    at: Annotated[At, "the record, or snapshot, that proves it"]


class Revocation(NamedTuple):
    """What one member was asked to give up in a rebalance."""

    member_id: Annotated[str, "the member"]
    units: Annotated[int, "partitions or tasks to give up"]
    asked: Annotated[At, "the record that asks for them"]
    given: Annotated[MaybeAt, "the record that acknowledges it; null: it was not acknowledged within the rebalance"]
    duration_ms: Annotated[int | None, "from asked to given; null: not given, or unknown"]


REACHED_NOT_READY = "not ready"
"""The outcome of a rebalance of a streams group whose topology does not fit its topics: the target has no tasks."""
NEXT_EPOCH = "next epoch"
"""How an epoch ends that another one follows. All other ends are ends of the group in its log."""
UPGRADED, DOWNGRADED = "group upgraded", "group downgraded"
"""How an epoch ends from which the group goes on under the other protocol."""
LEFT_OR_EXPIRED, REPLACED = "leave or expiry", "static replacement"
"""How a membership ends in a group that goes on: by itself (the log has the same records for both), or because another
member takes over the instance id.
"""
AWAY_UNSEEN = "when it was away is not logged in the classic protocol"
AWAY_LOST = "whether it was away is not known: records are missing that may say so"
"""Hints of a static member that another one replaced: it may have gone before, or was in the group."""
NO_COMPUTING_WORKER = -1
"""The ``assignment_error`` of an epoch for which no worker could compute a target (FATAL in Connect on KIP-848)."""


class GroupEpochRow(NamedTuple):
    """One epoch (classic: generation) of one group."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT"]
    epoch: Annotated[int, "group epoch, or generation"]
    opened: Annotated[At, "the record that opened it (classic: the record of the completed generation)"]
    ended: Annotated[MaybeAt, "the record that ended it; null while it lasts"]
    ended_by: Annotated[str | None, "next epoch, group deleted, group upgraded, group downgraded, or end not seen"]
    is_open: Annotated[bool, "true while it lasts; a later run replaces this row"]
    state: Annotated[
        str | None, "state of the group at its end, or now: EMPTY, ASSIGNING, RECONCILING, STABLE, NOT_READY"
    ]
    protocol_type: Annotated[str | None, "classic groups: consumer, connect, or what the client named"]
    assignor: Annotated[str | None, "assignor (classic: protocol); null: the broker's default"]
    leader: Annotated[str | None, "classic groups: the member that assigned"]
    members: Annotated[tuple[str, ...] | None, "member ids when it opened, sorted; null: the log may lack some"]
    target: Annotated[MaybeAt, "the record that installed its target"]
    metadata_hash: Annotated[int | None, "hash of the subscribed topics, 0 where none is there; null: not known"]
    topics_proven: Annotated[bool | None, "true if a known version of the topics has that hash"]
    topics_at: Annotated[MaybeAt, "the version of the topics that was used"]
    unassigned: Annotated[int | None, "Connect groups on KIP-848: connectors and tasks in no worker's target"]
    assignment_error: Annotated[
        int | None,
        "Connect groups on KIP-848: error of the assignor; 0: none; -1: no worker can compute a target (FATAL)",
    ]
    causes: Annotated[tuple[Cause, ...], "what opened it"]
    history_complete: Annotated[bool, "true if the log contains everything before this row; otherwise see `missing`"]
    missing: Annotated[str | None, "what the log does not contain; null: nothing is missing"]
    topology: Annotated[TopologyCheck | None, "streams: what the topology is on these topics; null: other types"] = None


class RebalanceRow(NamedTuple):
    """One rebalance: from one epoch to the next, until every member has reached the target or the next one begins."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT"]
    at: Annotated[At, "the record that opens it (classic: the record of the completed generation)"]
    from_epoch: Annotated[int | None, "epoch or generation before; null: none, or unknown"]
    to_epoch: Annotated[int, "epoch or generation that it leads to"]
    causes: Annotated[tuple[Cause, ...], "why it happened; several causes may apply"]
    outcome: Annotated[
        str,
        "converged, not ready (streams: topology and topics do not fit), emptied, superseded, group deleted, "
        "group upgraded, group downgraded, open or unknown",
    ]
    is_open: Annotated[bool, "true while it lasts; a later run replaces this row"]
    began_after_ms: Annotated[int | None, "it began at or after this time; null: unknown"]
    began_before_ms: Annotated[int, "it began at or before this time; -1: the record has none"]
    target: Annotated[MaybeAt, "the record that installs the target; null: none (yet)"]
    finished: Annotated[MaybeAt, "the record with which all had reached the target, or it was superseded"]
    time_to_target_ms: Annotated[int | None, "from opened to target"]
    time_to_converge_ms: Annotated[int | None, "from opened to converged"]
    duration_min_ms: Annotated[int | None, "it lasted at least this long; null: unknown"]
    duration_max_ms: Annotated[int | None, "it lasted at most this long; null: not finished, or unknown"]
    members_before: Annotated[int | None, "members in the epoch before; null: unknown"]
    members_after: Annotated[int | None, "members when it opened (classic: completed); null: the log may lack some"]
    units_moved: Annotated[
        int | None, "partitions or tasks that went from one member to another; null: share groups, or unknown"
    ]
    units_moved_back: Annotated[int | None, "partitions or tasks given up and given back"]
    units_lost: Annotated[
        int | None, "partitions or tasks without an owner when it ended; null: unknown, or their topics may be deleted"
    ]
    idle_ms: Annotated[
        int | None, "time without an owner, summed over partitions or tasks (eager classic groups: at least)"
    ]
    idle_max_ms: Annotated[int | None, "the longest such time of one partition or task"]
    revocations: Annotated[tuple[Revocation, ...], "what members were asked to give up (classic: not logged)"]
    delayed_by: Annotated[
        str | None,
        "the member that delayed it: the last to revoke what another waited for, else the last to reach the "
        "target; null: several, none, or the coordinator was away or moved",
    ]
    members_behind: Annotated[int | None, "members that had not reached the target when it ended, or now"]
    behind: Annotated[tuple[str, ...], "the first ten of them, sorted"]
    broker_away: Annotated[
        bool | None, "true if a broker was down or the coordinator moved meanwhile (by the metadata log: within 10 s)"
    ]
    skipped_generations: Annotated[int, "classic: generations in between that never completed"]
    delay_ms: Annotated[int | None, "Connect: how long work of a worker that left waits for its return; null: none"]
    history_complete: Annotated[bool, "true if the log contains everything before this row; otherwise see `missing`"]
    missing: Annotated[str | None, "what the log does not contain; null: nothing is missing"]


class MembershipRow(NamedTuple):
    """One member, from when it joined until it left."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT"]
    member_id: Annotated[str, "the member"]
    instance_id: Annotated[str | None, "its instance id, if static"]
    client_id: Annotated[str | None, "its client id; null: not seen"]
    client_host: Annotated[str | None, "its host; null: not seen"]
    rack_id: Annotated[str | None, "its rack"]
    url: Annotated[str | None, "Connect: URL of the worker"]
    process_id: Annotated[str | None, "streams: the process that it is a thread of"]
    user_endpoint: Annotated[str | None, "streams: host and port for interactive queries"]
    client_tags: Annotated[tuple[str, ...], "streams: its client tags as `key=value`"]
    topology_epoch: Annotated[int | None, "streams: the epoch of its topology"]
    subscribed_topics: Annotated[tuple[str, ...], "topics that it subscribed to by name"]
    subscribed_regex: Annotated[str | None, "its regular expression"]
    joined: Annotated[At, "the record that first shows it"]
    came_by: Annotated[str, "join, static replacement or unknown"]
    replaces: Annotated[str | None, "the member whose instance id it took over"]
    first_epoch: Annotated[int | None, "epoch or generation in which it first took part; null: unknown"]
    left: Annotated[MaybeAt, "the record that removes it; null while it is in the group"]
    went_by: Annotated[
        str | None,
        "leave or expiry (with broker logs: leave, expiry or rebalance timeout), static replacement, group "
        "deleted, downgrade, upgrade, or end not seen",
    ]
    hint: Annotated[
        str | None,
        "what the log suggests about why: left, expired, silent for its session timeout, or how long a static "
        "member was away",
    ]
    away_since: Annotated[MaybeAt, "the record with which a static member left, perhaps to return"]
    last_epoch: Annotated[int | None, "last epoch or generation in which it took part"]
    is_open: Annotated[bool, "true while it lasts; a later run replaces this row"]
    history_complete: Annotated[bool, "true if the log shows when it joined, and when it left"]
    missing: Annotated[str | None, "what the log does not contain; null: nothing is missing"]
    client: Annotated[str, "its client library, such as java or franz-go; `a or b`; unknown"]
    client_certainty: Annotated[str, "how sure that is: certain, likely, one of several or unknown"]
    client_release: Annotated[str | None, "its release, as far as known"]
    rebalance_timeout_ms: Annotated[int | None, "its rebalance timeout: max.poll.interval.ms of consumers"] = None


class AssignmentRow(NamedTuple):
    """One partition, task or connector of one member over an interval."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT"]
    member_id: Annotated[str, "the member"]
    kind: Annotated[str, "target (was to own) or current (owned, as far as the coordinator knew)"]
    role: Annotated[str, "partition, active, standby, warmup, connector or task"]
    resource: Annotated[str, "what the log calls it: topic id (classic: topic name), subtopology or connector"]
    topic: Annotated[str | None, "topic name"]
    topic_id: Annotated[str | None, "topic id"]
    subtopology: Annotated[str | None, "streams: the subtopology of the task"]
    connector: Annotated[str | None, "Connect: the connector"]
    partition: Annotated[int, "partition, or number of the task; -1 for a connector"]
    epoch: Annotated[
        int | None, "member epoch (target: assignment epoch; classic: generation) in which it began; null: unknown"
    ]
    since: Annotated[At, "the record with which it began"]
    until: Annotated[MaybeAt, "the record with which it ended; null while it lasts"]
    is_open: Annotated[bool, "true while it lasts; a later run replaces this row"]
    history_complete: Annotated[bool, "true if the log shows all of it"]


class ShareInitializationRow(NamedTuple):
    """One share partition in one phase of its state, as the group's own log has it (KIP-932).

    While an initialization fails, the group's lists go empty now and then: the row goes on until the state is there.
    """

    group_id: Annotated[str, "the group"]
    topic: Annotated[str, "topic name, as the group's record has it"]
    topic_id: Annotated[str, "topic id"]
    partition: Annotated[int, "partition; -1: all partitions of the topic, whose state is being deleted"]
    phase: Annotated[str, "initializing (asked for), initialized (there) or deleting"]
    since: Annotated[At, "the record with which it began"]
    asked: Annotated[int, "initializing: how often it was asked for"]
    last_asked: Annotated[At, "initializing: the record with which it was last asked for; else that of since"]
    until: Annotated[MaybeAt, "the record with which it ended; null while it lasts"]
    outcome: Annotated[str, "initialized, topic deleted, state deleted, group deleted, open or unknown"]
    is_open: Annotated[bool, "true while it lasts; a later run replaces this row"]
    was_initialized: Annotated[bool, "initializing: it had state before, an administrator set its start offset"]
    history_complete: Annotated[bool, "what was before it was seen"] = True


class HistoryTable(NamedTuple):
    """A table of history: its name, the type of its rows, and its key columns (fields of positions after a dot)."""

    name: str
    row: type
    key: tuple[str, ...]


TABLES = (
    HistoryTable("group_epochs", GroupEpochRow, ("group_id", "opened.partition", "opened.offset")),
    HistoryTable("rebalances", RebalanceRow, ("group_id", "at.partition", "at.offset")),
    HistoryTable("memberships", MembershipRow, ("group_id", "member_id", "joined.partition", "joined.offset")),
    HistoryTable(
        "assignments",
        AssignmentRow,
        ("group_id", "member_id", "kind", "role", "resource", "partition", "since.partition", "since.offset"),
    ),
    HistoryTable(
        "share_initializations",
        ShareInitializationRow,
        ("group_id", "topic_id", "partition", "phase", "since.partition", "since.offset"),
    ),
    HistoryTable("violations", Violation, ("group_id", "rule", "member_id", "at.partition", "at.offset", "detail")),
    HistoryTable(
        "topic_history", TopicInterval, ("topic", "topic_id", "since.partition", "since.offset", "since.timestamp_ms")
    ),
)
"""All tables whose rows the core makes."""

HistoryRow = GroupEpochRow | RebalanceRow | MembershipRow | AssignmentRow | ShareInitializationRow
"""A row of the fold of one group."""


class ShareWrite(StrEnum):
    """What a record of the share state log does to its share partition."""

    INITIALIZED = "initialized"
    """The first snapshot of a share partition, or one that begins again without a start offset."""
    ALTERED = "altered"
    """A snapshot with another start offset, and nothing of what was known: an administrator set it."""
    DELIVERY = "delivery"
    """Records were acknowledged, given back or archived."""
    LEADER_CHANGED = "leader changed"
    """A new leader of the data partition read the state."""
    START_MOVED = "start moved"
    """Nothing but the start offset, or the count of complete deliveries."""
    FIRST_SEEN = "first seen"
    """The first record that the log shows of a share partition that was there before."""


class OffsetRange(NamedTuple):
    """Offsets of one delivery count."""

    first: Annotated[int, "first offset"]
    last: Annotated[int, "last offset"]
    delivery_count: Annotated[int, "how often they have been delivered"]


class StateCount(NamedTuple):
    """Records of one delivery state and count."""

    state: Annotated[str, "available, acknowledged, archiving or archived; a number: a newer release has the state"]
    delivery_count: Annotated[int, "how often they have been delivered"]
    records: Annotated[int, "how many there are"]


class SharePartitionRow(NamedTuple):
    """One share partition over an interval in which nothing of its state changed, as the share state log has it.

    Positions are those of ``__share_group_state``. A row begins with the record that changes something, so that a cold
    snapshot makes none. Counts, and not the batches of the whole window, describe what holds: a window may have
    thousands of batches, and each row would repeat them. What one record changed is there as ranges of offsets.
    """

    group_id: Annotated[str, "the group"]
    topic: Annotated[str | None, "topic name; null: no metadata log names the topic id"]
    topic_id: Annotated[str, "topic id"]
    partition: Annotated[int, "partition"]
    since: Annotated[At, "the record of the share state log with which it began"]
    until: Annotated[MaybeAt, "the record of the share state log that changed it; null while it lasts"]
    ended_by: Annotated[str | None, "next write, or state deleted; null while it lasts"]
    is_open: Annotated[bool, "true while it lasts; a later run replaces this row"]
    write: Annotated[str, "initialized, altered, delivery, leader changed, start moved or first seen"]
    snapshot_epoch: Annotated[int, "epoch of the snapshot, or of the one that the update follows"]
    state_epoch: Annotated[int | None, "group epoch in which it was initialized or altered; null: not seen"]
    leader_epoch: Annotated[int, "leader epoch of the data partition; -1: not seen"]
    start_offset: Annotated[int | None, "first offset that is kept track of; null: not set yet"]
    next_offset: Annotated[int | None, "first offset from there on that is not settled; null: not known"]
    end_offset: Annotated[
        int | None, "offset after the last with a delivery state; records in flight beyond it are not logged"
    ]
    complete: Annotated[int | None, "deliveryCompleteCount: offsets from the start on that need no delivery"]
    available: Annotated[int | None, "records given back, that wait for the next delivery; null: not known"]
    acknowledged: Annotated[int | None, "records accepted, from the start offset on; null: not known"]
    archiving: Annotated[
        int | None,
        "records given up that are on their way to the dead-letter queue, from the start offset on; null: not known",
    ]
    archived: Annotated[int | None, "records given up, from the start offset on; null: not known"]
    unknown: Annotated[
        int | None, "offsets between start and end without a state: in flight, or of an aborted transaction"
    ]
    counts: Annotated[tuple[StateCount, ...], "records by delivery state and delivery count"]
    delivery_limit: Annotated[int | None, "share.delivery.count.limit of the group; null: the metadata log has none"]
    accepted_now: Annotated[int, "records that this write acknowledges"]
    released_now: Annotated[tuple[OffsetRange, ...], "given back by this write: released, or the lock timed out"]
    archiving_now: Annotated[
        tuple[OffsetRange, ...],
        "sent to the dead-letter queue by this write: rejected, or at the delivery limit; archived after it",
    ]
    archived_now: Annotated[
        tuple[OffsetRange, ...],
        "archived by this write, not by way of a dead-letter queue: rejected, at the delivery limit, or no record is "
        "there",
    ]
    unqueued_now: Annotated[
        tuple[OffsetRange, ...], "archived by this write after the dead-letter queue could not take them"
    ]
    unqueued_why: Annotated[str | None, "why it could not, by the metadata log; null: it could, or it is not known"]
    redelivered_now: Annotated[int, "records in this write that had been delivered before"]
    passed_over: Annotated[int | None, "records given back that the start moved past; null: not known"]
    advanced: Annotated[
        MaybeAt, "the record with which next_offset last moved; null: it may have done so in records that are missing"
    ]
    next_offset_shown: Annotated[At, "the first record that shows next_offset as it is now"]
    history_complete: Annotated[bool, "what was before it was seen"] = True
    missing: Annotated[str | None, "what was not seen"] = None

    @property
    def given_up_now(self) -> tuple[OffsetRange, ...]:
        """Offsets that this write gives up: they are not delivered again."""
        return tuple(sorted((*self.archiving_now, *self.archived_now)))


SHARE_PARTITIONS = HistoryTable(
    "share_partitions", SharePartitionRow, ("group_id", "topic_id", "partition", "since.partition", "since.offset")
)
