"""The history of groups with epochs: consumer (KIP-848), share (KIP-932) and streams (KIP-1071).

A new group epoch opens a rebalance, the epoch of the target assignment shows that the target is installed, and the last
member to reach it completes the rebalance; another group epoch supersedes it.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from coordinator_core.clients.evidence import EVERY_WRITER
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.snapshot_settings import int_setting
from coordinator_core.durations import duration
from coordinator_core.groups.consumer.describe import preferred_assignor, tied_assignors
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMember
from coordinator_core.groups.epoch_records import (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    MemberTargetRecord,
    TargetEpochRecord,
)
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH, EpochGroup, EpochMember
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.member_clients import client_of
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.readiness import NO_TOPOLOGY, READY, check_topology
from coordinator_core.groups.streams.sources import matched_topics, named_topics
from coordinator_core.groups.streams.state import StreamsGroup, StreamsMember
from coordinator_core.groups.subscribed_topics import image_of
from coordinator_core.history.causes import CauseKind, cause, config_causes, member_changes, member_facts
from coordinator_core.history.held_units import CONSUMER_KIND, SHARE_KIND, STREAMS_KIND, EpochKind
from coordinator_core.history.history_writer import TARGET, HistoryWriter, RecordHandler
from coordinator_core.history.memberships import (
    COORDINATOR_AWAY,
    EXPIRED,
    LEFT,
    NOT_SAID,
    REMOVED,
    away_hint,
    depart,
    departure_hint,
    join,
    left_behind,
)
from coordinator_core.history.open_rows import OpenEpoch, OpenMembership
from coordinator_core.history.rows import Cause
from coordinator_core.history.topics_of_epochs import (
    Used,
    changes_between,
    hash_of_topics,
    image_used,
    proven_topics,
    topics_used,
)
from coordinator_core.history.warmups import ended_warmups, explain_by_warmups, refined_warmups
from coordinator_core.record_fields.streams_group import StreamsGroupMetadataRecord
from coordinator_core.records import LogPosition

AnyEpochGroup = EpochGroup[Any, Any]


COUNTS_SUBSCRIBED = 30
"""The lowest ``metadata.version`` that no broker of 4.1 supports. Brokers since 4.2 look only at topics that members of
a share group subscribe to.
"""

COMPARES_ASSIGNORS = 32
"""The ``metadata.version`` of 4.4, the first release that opens an epoch when the group chooses another assignor."""


def facts_before(state: GroupState | None, record: MemberRecord) -> dict[str, object] | None:
    """Return what is known about a member before its metadata record."""
    if record.value is None or not isinstance(state, EpochGroup):
        return None
    known = state.members.get(record.key["memberId"])
    return member_facts(known) if known is not None and known.has_metadata else None


def on_member(kind: EpochKind, writer: HistoryWriter, record: MemberRecord, before: dict[str, object] | None) -> None:
    """Apply member metadata: a member joins, changes or leaves."""
    open_history, member_id, at = writer.open_history, record.key["memberId"], record.at
    if record.value is None:
        depart(writer, member_id, at)
        return
    member = _group(writer).members[member_id]
    membership = open_history.memberships.get(member_id)
    if membership is None or before is None:
        membership = OpenMembership(member_id, at, "join")
        _describe(membership, member)
        join(writer, membership)
    else:
        _describe(membership, member)
        open_history.changes += member_changes(before, member, at)


def _describe(membership: OpenMembership, member: EpochMember) -> None:
    membership.client_id, membership.client_host = member.client_id, member.client_host
    membership.rack_id = member.rack_id
    membership.instance_id = member.instance_id
    membership.subscribed_topics = tuple(member.subscribed_topic_names)
    membership.subscribed_regex = member.subscribed_topic_regex or None
    membership.rebalance_timeout_ms = member.rebalance_timeout_ms
    membership.speaks_classic = member.speaks_classic
    # Each record may rule out some clients: what is left of the earlier ones goes on, and none comes back.
    membership.told, writers = client_of(membership.member_id, member, frozenset(membership.writers) or EVERY_WRITER)
    membership.writers = tuple(sorted(writers)) if membership.speaks_classic else ()
    if isinstance(member, StreamsMember):
        endpoint = member.user_endpoint
        membership.process_id, membership.topology_epoch = member.process_id, member.topology_epoch
        membership.user_endpoint = None if endpoint is None else f"{endpoint.host}:{endpoint.port}"
        membership.client_tags = tuple(f"{key}={value}" for key, value in sorted(member.client_tags.items()))


def revoking_before(state: GroupState | None, record: CurrentRecord) -> int:
    """Return how many partitions or tasks a member still had to give up whose current assignment ends."""
    if record.value is not None or not isinstance(state, EpochGroup):
        return 0
    return _pending(state.members.get(record.key["memberId"]))


def on_current(kind: EpochKind, writer: HistoryWriter, record: CurrentRecord, before: int) -> None:
    """Apply a current assignment: what a member has, and how far it is."""
    open_history, member_id, at = writer.open_history, record.key["memberId"], record.at
    if record.value is None:
        # Before what the member has is taken from it: the hint looks at the commits of just that.
        _note_hint(writer, kind, member_id, at, is_revoking=before > 0)
        writer.own(member_id, {}, at, None)
        return
    state = _group(writer)
    member = state.members[member_id]
    open_history.note_heard(member_id, at)
    writer.own(member_id, kind.held(member), at, member.member_epoch)
    is_away = member.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH
    if is_away:
        membership = open_history.memberships.get(member_id)
        if membership is not None:
            membership.away_since = at
    rebalance = open_history.rebalance
    if rebalance is None:
        _take_state(kind, writer, member_id, is_away=is_away)
    else:
        pending = _pending(member)
        rebalance.asked(member_id, pending, at)
        # It waits for others: it has nothing to give up itself, and is not there yet.
        if member.state != kind.stable and not pending:
            rebalance.waited[member_id] = True
        if member.state == kind.stable and member.member_epoch == open_history.last_epoch:
            # The last member that comes here held the others up, unless it waited itself.
            if rebalance.behind.pop(member_id, False):
                rebalance.last_member = member_id
            writer.converge(at)
        elif is_away:  # it has reached the target once more when another member is there for it
            rebalance.behind[member_id] = True


def _take_state(kind: EpochKind, writer: HistoryWriter, member_id: str, *, is_away: bool) -> None:
    """Between rebalances a static member that goes away makes the group reconcile until another is there for it, and
    an emptied group is not empty while a member waits for its regular expression.
    """
    epoch, members = writer.open_history.epoch, _group(writer).members
    if epoch is None or kind is SHARE_KIND or epoch.state not in ("STABLE", "RECONCILING", "EMPTY"):
        return
    if epoch.state == "EMPTY" and epoch.target is None:
        epoch.state = "ASSIGNING"
    elif is_away:
        epoch.state = "RECONCILING"
    elif epoch.state == "EMPTY" or members[member_id].member_epoch == epoch.epoch:
        epoch.state = _state_with_target(kind, epoch, members.values())


def _state_with_target(kind: EpochKind, epoch: OpenEpoch, members: Iterable[EpochMember]) -> str:
    reached = (each.member_epoch == epoch.epoch and each.state == kind.stable for each in members)
    return "STABLE" if all(reached) else "RECONCILING"


def _note_hint(writer: HistoryWriter, kind: EpochKind, member_id: str, at: LogPosition, *, is_revoking: bool) -> None:
    """The tombstones of a member begin with its current assignment; afterwards the log no longer says what it had.

    One that ``is_revoking`` may have been removed as it took too long, also where a later epoch has opened since it was
    asked: the request goes on, and is not written again.
    """
    membership = writer.open_history.memberships.get(member_id)
    if membership is None:
        return
    rebalance = writer.open_history.rebalance
    asked = rebalance.revoking.get(member_id) if rebalance is not None else None
    state = writer.group.state
    member = state.members.get(member_id) if isinstance(state, EpochGroup) else None
    if membership.away_since is not None:
        membership.hint = away_hint(membership.away_since, at, _session_timeout(writer, kind, member, at))
        return
    timeout = None if member is None else member.rebalance_timeout_ms
    if asked is not None and timeout is not None and 0 <= timeout <= at.timestamp_ms - asked.at.timestamp_ms:
        membership.hint = f"expired: it did not revoke within its rebalance timeout of {duration(timeout)}"
    else:
        is_classic = member is not None and member.speaks_classic
        timeout_ms, is_late = _session_timeout(writer, kind, member, at), is_classic or is_revoking
        membership.hint = departure_hint(writer, member_id, at, timeout_ms, may_be_late=is_late)
        if membership.instance_id is not None and not is_classic:
            # It mostly says so before it leaves: else, before its session has ended, only a request removes it.
            hint = (membership.hint or "").replace(LEFT, REMOVED)
            is_told = hint.startswith((COORDINATOR_AWAY, EXPIRED, REMOVED, NOT_SAID))
            membership.hint = hint if is_told else "; ".join(part for part in (NOT_SAID, hint) if part)


def _session_timeout(writer: HistoryWriter, kind: EpochKind, member: object, at: LogPosition) -> int | None:
    """The member's session timeout in ms: its own (classic protocol) or that of the group, if it is known."""
    if isinstance(member, ConsumerMember) and member.classic is not None:
        return member.classic.session_timeout_ms
    if writer.topics is None:
        return None
    name = f"{kind.name.lower()}.session.timeout.ms"
    return int_setting(writer.topics.group_config(writer.group.group_id, name, at.timestamp_ms) or "")


def _pending(member: object) -> int:
    pending = getattr(member, "pending_revocation", None)
    if not pending:
        return 0
    roles = (pending,) if isinstance(pending, dict) else (pending.active, pending.standby, pending.warmup)
    return sum(len(partitions) for tasks in roles for partitions in tasks.values())


def on_target(kind: EpochKind, writer: HistoryWriter, record: MemberTargetRecord, before: None) -> None:
    """Apply the target assignment of one member."""
    member_id, at = record.key["memberId"], record.at
    if record.value is None:
        writer.put(TARGET, member_id, {}, at, None)
        return
    state = _group(writer)
    writer.open_history.note_target(member_id)
    writer.put(TARGET, member_id, kind.wanted(state.targets[member_id]), at, state.group_epoch)
    if isinstance(state, StreamsGroup):
        explain_by_warmups(writer.open_history, ended_warmups(state, member_id), member_id, at)


def on_target_epoch(kind: EpochKind, writer: HistoryWriter, record: TargetEpochRecord, before: None) -> None:
    """Apply target assignment metadata: the target of an epoch is installed."""
    epoch, rebalance = writer.open_history.epoch, writer.open_history.rebalance
    if record.value is None or epoch is None or record.value["assignmentEpoch"] != epoch.epoch:
        return
    if epoch.target is None:
        epoch.target = record.at
        state = writer.group.state
        epoch.assignor = preferred_assignor(state) if isinstance(state, ConsumerGroup) else None
        if epoch.state == "ASSIGNING" and rebalance is None:
            epoch.state = _state_with_target(kind, epoch, _group(writer).members.values())
        elif epoch.state == "ASSIGNING":
            epoch.state = "NOT_READY" if _has_no_tasks(writer) else "RECONCILING"
    if rebalance is not None and rebalance.target is None:
        state = writer.group.state
        if isinstance(state, StreamsGroup) and record.at.offset == epoch.opened.offset + 1:  # no target lies between
            for member_id, warmed in refined_warmups(state, rebalance.from_epoch):
                explain_by_warmups(writer.open_history, warmed, member_id, record.at)
        rebalance.target = record.at
        writer.converge(record.at)


def _has_no_tasks(writer: HistoryWriter) -> bool:
    """Whether the target of a streams group shows that its topology is not ready, where no record says so: one that is
    has tasks, which some member gets.
    """
    state = writer.group.state
    if not isinstance(state, StreamsGroup) or state.is_validated is not None or writer.open_history.past.doubt:
        return False
    return bool(state.members) and not any(target.active for target in state.targets.values())


class StreamsBefore(NamedTuple):
    """What group metadata of a streams group said besides the epoch, before a record."""

    configs: dict[str, str]
    descriptions: tuple[int, int]


def streams_before(state: GroupState | None, record: StreamsGroupMetadataRecord) -> StreamsBefore | None:
    """Return what is known about a streams group before its metadata record."""
    if not isinstance(state, StreamsGroup):
        return None
    return StreamsBefore(state.last_assignment_configs, state.description_epochs)


def on_streams_epoch(
    kind: EpochKind, writer: HistoryWriter, record: StreamsGroupMetadataRecord, before: StreamsBefore | None
) -> None:
    """Apply group metadata of a streams group, which also contains the group's configs."""
    state, last = writer.group.state, writer.open_history.epoch
    is_new = record.value is not None and last is not None and last.epoch != record.value["epoch"]
    descriptions = state.description_epochs if isinstance(state, StreamsGroup) else None
    if last is not None and not is_new and before is not None and descriptions not in (None, before.descriptions):
        return  # a plugin of the broker has stored, or refused, the description of the topology: that opens no epoch
    had_configs = before is not None and before.configs
    if last is not None and last.topology is not None and last.topology.detail == NO_TOPOLOGY and not had_configs:
        # A classic group that was converted just now had no configurations of this kind.
        is_new = False
    if before is not None and is_new and isinstance(state, StreamsGroup):
        writer.open_history.changes += config_causes(before.configs, state.last_assignment_configs, record.at)
    on_epoch(kind, writer, record, None)


def on_epoch(kind: EpochKind, writer: HistoryWriter, record: GroupEpochRecord, before: None) -> None:
    """Apply group metadata: a new epoch opens and with it a rebalance; a tombstone ends the group."""
    open_history, at, value = writer.open_history, record.at, record.value
    if value is None:
        if open_history.type == kind.name:
            open_history.ended = at
        return
    state = _group(writer)
    names = kind.subscribed(state, writer.topics)
    last = open_history.epoch
    metadata_hash = hash_of_topics(record, state, is_whole=open_history.past.doubt is None)
    used = topics_used(writer.topics, metadata_hash, names, at)
    if last is not None and last.epoch == value["epoch"]:
        _take_topics(writer, last, used, names)
        last.state = _opening_state(state)
        return
    if last is not None:
        open_history.changes += _topic_causes(writer, last, used, names, at)
        open_history.changes += [] if open_history.changes else _unassigned_share_causes(writer, state, names, at)
        # Only without a better reason: no record says that a tie, or a waiting share partition, was the cause.
        open_history.changes += [] if open_history.changes else _tie_causes(writer, state, at)
    if open_history.crossing:
        left_behind(writer, record)
    dropped = set[str]() if last is None else {*last.topics} - names
    if last is not None and open_history.rebalance is not None:
        dropped.update(last.dropped_topics)
    proven = proven_topics(writer.topics, used, names)
    epoch = writer.bump(value["epoch"], tuple(state.members), _opening_state(state), at, proven)
    _take_topics(writer, epoch, used, names)
    epoch.dropped_topics = tuple(sorted(dropped))


def _take_topics(writer: HistoryWriter, epoch: OpenEpoch, used: Used, names: set[str]) -> None:
    epoch.metadata_hash, epoch.topics_proven = used.hash, used.proven
    epoch.topics_at, epoch.topics_version = used.at, used.version
    state = writer.group.state
    if isinstance(state, StreamsGroup):
        image, is_whole = image_used(writer.topics, used)
        if state.subscription_metadata is not None:
            image, is_whole = image_of(state.subscription_metadata), True
        named = named_topics(state.topology)
        names = {name for name in names if name in named or (image is not None and name in image.by_name)}
        epoch.topology = check_topology(state, image, complete=is_whole)
        if state.members and state.is_validated is None and epoch.topology.status not in (None, READY):
            epoch.state = "NOT_READY"
    epoch.topics = tuple(sorted(names))


def _opening_state(state: AnyEpochGroup) -> str:
    if not state.members:
        return "EMPTY"
    if isinstance(state, StreamsGroup) and state.is_validated is False:
        return "NOT_READY"
    if isinstance(state, ShareGroup):
        return "STABLE"  # a share group with members has no other state (KIP-932)
    return "ASSIGNING"


def _topic_causes(writer: HistoryWriter, last: OpenEpoch, used: Used, names: set[str], at: LogPosition) -> list[Cause]:
    """Changes of the topics subscribed before and now, and new topics that a regular expression matches now.

    Without a hash, brokers wrote what they knew of the topics in records of their own (type 4).
    """
    changes = writer.open_history.changes
    # An equal hash proves that no topic of the group changed, whatever the metadata log has.
    if used.hash is None or used.hash == last.metadata_hash:
        return []
    matched = {name for change in changes if change.kind == CauseKind.REGEX_RESOLVED for name in change.topics}
    state = writer.group.state
    if isinstance(state, StreamsGroup):
        matched |= matched_topics(state.topology, writer.topics)
    known = names & {*last.topics}
    changed = [
        each
        for each in changes_between(writer.topics, known | names & matched, last.topics_version, used.version)
        if each.kind == CauseKind.TOPIC_CREATED or not known.isdisjoint(each.topics)
    ]
    if changes and (used.proven is None or last.topics_proven is None):
        # No hash tells the version of both epochs: what surely lies between them by the clocks alone. Nearer ones count
        # where nothing else explains the epoch: the hash, which is another one, may be that of other names.
        since_ms, until_ms = last.opened.timestamp_ms + CLOCK_TOLERANCE_MS, at.timestamp_ms - CLOCK_TOLERANCE_MS
        changed = [each for each in changed if since_ms < each.at.timestamp_ms < until_ms]
    if not changed and not changes:
        detail = "the metadata hash changed; it is not known which topic changed"
        if last.metadata_hash is None:
            detail = "the first metadata hash, as brokers since 4.1 write it"
        changed.append(cause(CauseKind.TOPIC_METADATA_CHANGED, at, topics=names, detail=detail))
    return changed


def _unassigned_share_causes(
    writer: HistoryWriter, state: AnyEpochGroup, names: set[str], at: LogPosition
) -> list[Cause]:
    """Return a cause if share partitions that have state are in no target: a member left that had them.

    The coordinator opens one more epoch for that. Since 4.3 it waits for the target of the epoch that is open. In 4.1
    it also counts topics that no member subscribes to any more, and opens an epoch for them at each heartbeat; and
    those in targets whose state went with the topic, which it does before it looks at the topics again.
    """
    if not isinstance(state, ShareGroup) or state.state_partitions is None or not state.members:
        return []
    given: dict[str, set[int]] = {}
    for target in state.targets.values():
        for topic_id, numbers in target.items():
            given.setdefault(topic_id, set()).update(numbers)
    unassigned = {
        topic.name
        for topic_id, topic in state.state_partitions.initialized.items()
        if not given.get(topic_id, set()).issuperset(topic.partitions)
    }
    names_left = unassigned & names
    if names_left:
        detail = "their share partitions have state, and no member had them in its target"
        return [cause(CauseKind.SHARE_STATE_INITIALIZED, at, topics=names_left, detail=detail)]
    if not _may_be_of(writer, at, before=COUNTS_SUBSCRIBED):
        return []
    if unassigned:
        detail = "their share partitions have state, and no member subscribes to them any more: brokers of 4.1 open an "
        detail += "epoch for that at each heartbeat"
        return [cause(CauseKind.SHARE_STATE_INITIALIZED, at, topics=unassigned, detail=detail)]
    gone = {writer.resources.topic_name(topic_id) for topic_id in given.keys() - state.state_partitions.initialized}
    detail = "its share partitions have no state any more, and members have them in their targets"
    return [cause(CauseKind.TOPIC_DELETED, at, topics=filter(None, gone), detail=detail)] if gone else []


def _tie_causes(writer: HistoryWriter, state: AnyEpochGroup, at: LogPosition) -> list[Cause]:
    """Return a cause if a broker of 4.4 or later may have taken equal votes for assignors for a change."""
    if not isinstance(state, ConsumerGroup) or writer.open_history.past.doubt is not None:
        return []
    tied = tied_assignors(state) if _may_be_of(writer, at, since=COMPARES_ASSIGNORS) else ()
    detail = f"{' and '.join(tied)} have equal votes: brokers since 4.4 may change the choice at each heartbeat"
    return [cause(CauseKind.ASSIGNOR_TIED, at, detail=detail)] if tied else []


def _may_be_of(writer: HistoryWriter, at: LogPosition, *, since: int = 0, before: int | None = None) -> bool:
    """Return whether a broker of that time may support a ``metadata.version`` from ``since`` to below ``before``."""
    levels = None if writer.topics is None else writer.topics.broker_levels(at.timestamp_ms)
    if levels is None:
        return True
    is_older = before is None or levels.oldest is None or levels.oldest < before
    return is_older and (levels.newest is None or levels.newest >= since)


def _group(writer: HistoryWriter) -> AnyEpochGroup:
    state = writer.group.state
    assert isinstance(state, EpochGroup)
    return state


def _handlers(kind: EpochKind) -> dict[int, RecordHandler]:
    """What the records that all these types of group have do to the history."""
    types = kind.types
    if kind is STREAMS_KIND:
        epoch = RecordHandler(kind.name, partial(on_streams_epoch, kind), streams_before)
    else:
        epoch = RecordHandler(kind.name, partial(on_epoch, kind))
    return {
        types.epoch: epoch,
        types.member: RecordHandler(kind.name, partial(on_member, kind), facts_before),
        types.target_epoch: RecordHandler(kind.name, partial(on_target_epoch, kind)),
        types.target: RecordHandler(kind.name, partial(on_target, kind)),
        types.current: RecordHandler(kind.name, partial(on_current, kind), revoking_before),
    }


HANDLERS: dict[int, RecordHandler] = {**_handlers(CONSUMER_KIND), **_handlers(SHARE_KIND), **_handlers(STREAMS_KIND)}
"""Record type to the function that changes the history."""
