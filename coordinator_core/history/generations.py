"""The history of classic groups, generation by generation (JoinGroup and SyncGroup).

One record holds the whole group and is written when a rebalance completes. When the rebalance began is not logged, only
bounded. Generations that never completed leave only a gap in the numbers.
"""

from typing import NamedTuple

from coordinator_core.assignors.client.leader_view import ASSIGNS_ALL
from coordinator_core.clients.evidence import Writers, assignment_writers, classic_writers, decide, narrowed
from coordinator_core.clients.known_clients import ClientCertainty
from coordinator_core.groups.classic.protocols import (
    CONNECT_EAGER,
    CONNECT_PROTOCOL_TYPE,
    CONSUMER_PROTOCOL_TYPE,
    STREAMS_PROTOCOL,
)
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import CauseKind, cause
from coordinator_core.history.classic_causes import (
    Transition,
    are_workers_of_kip_848,
    config_causes,
    connect_causes,
    follow_up_causes,
    has_static_members,
    is_downgrade,
    leave_out_topics_known,
    matched_topic_causes,
    note_highest,
    subscription,
    subscription_causes,
    topic_changes_seen,
    units_of_work,
)
from coordinator_core.history.coverage import numbers
from coordinator_core.history.grounds import (
    NEVER_COMPLETED,
    NOT_SHOWN_BEFORE_GENERATION,
    TAKEN_AWAY,
    UNREAD_ASSIGNMENT,
    UNREAD_ASSIGNMENT_BEFORE,
)
from coordinator_core.history.held_units import given_to, without_units
from coordinator_core.history.history_writer import CURRENT, HistoryWriter
from coordinator_core.history.holdings import Changed, WorkUnit
from coordinator_core.history.memberships import depart, departure_hint, join
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenEpoch, OpenMembership, OpenRebalance
from coordinator_core.history.rejoins import (
    created_meanwhile,
    dropped_topics,
    growth_causes,
    rack_causes,
    refresh_cause,
    rejoin_causes,
    resubscribed,
    unread_units,
    untaken_causes,
    unwanted_topics,
)
from coordinator_core.history.rows import Revocation
from coordinator_core.history.testimony import lack
from coordinator_core.history.topics_of_epochs import topics_used
from coordinator_core.records import CoordinatorRecord, LogPosition, elapsed_ms

NEVER_WRITTEN = "members that joined, and were gone before a generation with them was complete"
"""A group without members has a new generation only if some joined: it ends in an empty one when the last is gone."""

FIRST_GENERATION = 1
"""A group's first record has generation 0, and no members; older brokers began with 1."""


def group_before(state: GroupState | None, record: CoordinatorRecord) -> ClassicGroup:
    """Return the group before a record, which changes it in place; empty if there was none."""
    if not isinstance(state, ClassicGroup):
        return ClassicGroup()
    return ClassicGroup(state.generation, state.protocol_type, state.protocol, state.leader, None, state.members)


def on_generation(writer: HistoryWriter, record: CoordinatorRecord, before: ClassicGroup) -> None:
    """Apply group metadata: a generation is complete, the same one is written again, or the group ends.

    The order matters. Members leave and join, then their new assignments replace the old ones. Owners are still those
    of the generation before when the causes are found, and change after that. Then the rows are written.
    """
    open_history, at, last = writer.open_history, record.at, writer.open_history.epoch
    old = before if last is not None else ClassicGroup()  # else it was of another life
    new = writer.group.state
    if not isinstance(new, ClassicGroup) or new.generation is None:
        if open_history.type == GroupType.CLASSIC:
            open_history.ended = at
        return
    # Before the assignments: they end what the workers ran until now.
    work = units_of_work(open_history)
    epoch = _opened(writer, new, new.generation, at)
    skipped = _read_before(writer, epoch, old, new)
    _members(writer, old, new, at)
    is_torn = open_history.past.doubt is not None or (skipped > 0 and writer.coverage is None)
    if epoch.missing is not None and (last is None or is_torn):
        is_next = last is not None and new.generation == last.epoch + 1 and not has_static_members(new)
        _doubt_changes(writer, epoch, is_next=is_next)
    if last is None or last.epoch != new.generation:
        writer.take_part(epoch)
    assigned = _assign(writer, old, new, at)
    if last is not None and last.epoch == new.generation:
        open_history.past.know_state()
        _same_generation(writer, last, old, new, assigned, at)
        return
    completed = _Completed(old, new, epoch, assigned, skipped, _unread(last, new))
    _find_causes(writer, completed, work)
    _change_owners(writer, completed)
    _complete(writer, completed)
    reads_all = completed.unread != UNREAD_ASSIGNMENT
    open_history.past.know_state(gives_all=_gives_all(writer, completed), reads_all=reads_all)


def _gives_all(writer: HistoryWriter, completed: "_Completed") -> bool:
    """Whether a generation leaves nothing without an owner. A cooperative leader that takes nothing away gives out what
    was taken before, unless it does not know of it.
    """
    new, assigned = completed.new, completed.assigned
    if assigned.revocations or assigned.delay_ms:
        return False
    topics = completed.epoch.topics
    is_sure = not topics or new.protocol in ASSIGNS_ALL or writer.topics is None
    return is_sure or writer.knows_owners(topics, completed.epoch.opened)


def _unread(last: OpenEpoch | None, new: ClassicGroup) -> str | None:
    """Return that it cannot be read what members have, or had in the generation before."""
    if not all(given_to(new, member).is_whole for member in new.members.values()):
        return UNREAD_ASSIGNMENT
    return UNREAD_ASSIGNMENT_BEFORE if last is not None and last.missing == UNREAD_ASSIGNMENT else None


def _opened(writer: HistoryWriter, new: ClassicGroup, generation: int, at: LogPosition) -> OpenEpoch:
    topics = set().union(*{subscription(new, member).topics for member in new.members.values()})
    used = topics_used(writer.topics, None, topics, at)
    return OpenEpoch(
        generation,
        at,
        tuple(new.members),
        "STABLE" if new.members else "EMPTY",
        protocol_type=new.protocol_type or None,
        assignor=new.protocol,
        leader=new.leader,
        target=at if new.members else None,
        topics_at=used.at,
        topics_version=used.version,
        topics=tuple(sorted(topics)),
        dropped_topics=dropped_topics(writer.open_history.epoch, new, topics),
    )


def _same_generation(
    writer: HistoryWriter, last: OpenEpoch, old: ClassicGroup, new: ClassicGroup, assigned: "_Assigned", at: LogPosition
) -> None:
    """The generation is written again, by a static member that came back under another id: that is not a rebalance."""
    open_history = writer.open_history
    open_history.ownership.change(assigned.changes, at)
    open_history.changes.clear()
    open_history.joined.clear()
    writer.take_part(last)
    last.leader, last.rewritten = new.leader, at
    open_history.resubscribed.update(resubscribed(old, new, at))


class _Completed(NamedTuple):
    """A generation that is complete, and the group before it.

    ``skipped`` are the generations since the last that never completed, ``unread`` what cannot be read of assignments.
    """

    old: ClassicGroup
    new: ClassicGroup
    epoch: OpenEpoch
    assigned: "_Assigned"
    skipped: int
    unread: str | None


def _find_causes(writer: HistoryWriter, completed: _Completed, work: set[WorkUnit]) -> None:
    """Add to the group's changes what made it rebalance; ``work`` is what a Connect group had to run before."""
    old, new, epoch, assigned, _, unread = completed
    open_history, last, at, missing = writer.open_history, writer.open_history.epoch, epoch.opened, epoch.missing
    taken = [unit for changed in assigned.changes for unit in changed.taken]
    open_history.changes += [*subscription_causes(old, new, at), *config_causes(old, new, at)]
    if last is None and missing is None and are_workers_of_kip_848(new):
        open_history.changes = [cause(CauseKind.GROUP_DOWNGRADED, at)]
    elif last is not None and last.members:
        step = Transition(last, old, new, {*epoch.topics}, taken, at, writer.metadata_age_ms)
        open_history.changes += [*follow_up_causes(open_history, step), *rejoin_causes(open_history, step)]
        open_history.changes += untaken_causes(open_history, step)
        open_history.changes += [] if unread else connect_causes(open_history, step, work)
        matched = matched_topic_causes(writer, step)
        if missing is not None and is_downgrade(last):
            open_history.unseen.clear()
        acted = [] if unread else topic_changes_seen(writer, step)
        open_history.changes += [each for each in matched if each._replace(hint=None) not in acted] + acted
        if not open_history.changes and not step.may_be_rewritten:
            open_history.changes += refresh_cause(writer.topics, step)
            open_history.changes += created_meanwhile(writer.group.group_id, writer.topics, step)
            open_history.changes += rack_causes(writer.topics, step)
            open_history.changes = open_history.changes or growth_causes(writer.topics, open_history, step)
    elif last is not None and missing is None and not new.members:
        open_history.changes.append(cause(CauseKind.MEMBER_LEFT_OR_EXPIRED, at, detail=NEVER_WRITTEN))
    open_history.resubscribed.clear()
    note_highest(open_history, taken, None if unread else new)


def _change_owners(writer: HistoryWriter, completed: _Completed) -> None:
    """Give the units to their new owners, and forget those that went with their topic or connector.

    Members whose group uses an eager assignor, and Connect workers with the eager protocol, give up all that they have
    before they join: from when all had joined until the assignment was there, no member read or ran anything.
    """
    old, new, epoch, assigned, *_ = completed
    ownership, last, at = writer.open_history.ownership, writer.open_history.epoch, epoch.opened
    # A copy, as the change that follows alters the owners in place.
    stopped = {unit: set(owners) for unit, owners in ownership.owners.items()} if _is_eager(old) else {}
    ownership.change(_counted(new, assigned.changes), at, by_name=True)
    if stopped:
        ownership.were_stopped(stopped, _lasted_ms(_began_before_ms(new, at), at))
    if new.protocol_type == CONNECT_PROTOCOL_TYPE and new.members and not (assigned.delay_ms or assigned.revocations):
        # The leader gives out everything unless it waits: what no member has was deleted.
        ownership.forget_idle()
    ownership.forget(writer.resources.wanted_by_name(at, (epoch if new.members or last is None else last).topics))
    ownership.end(at)


def _is_eager(group: ClassicGroup) -> bool:
    """Whether members of the group give up all that they have before they join again."""
    if group.protocol_type == CONNECT_PROTOCOL_TYPE:
        return group.protocol == CONNECT_EAGER
    return group.protocol in ASSIGNS_ALL


# --- members ---------------------------------------------------------------------------------------------------------


def _members(writer: HistoryWriter, old: ClassicGroup, new: ClassicGroup, at: LogPosition) -> None:
    """Who went, who came, and what members say of themselves."""
    open_history = writer.open_history
    since_ms = None if open_history.epoch is None else open_history.epoch.opened.timestamp_ms
    for member_id, gone in old.members.items():
        membership = open_history.memberships.get(member_id)
        if member_id not in new.members and membership is not None:
            joins_within_ms = gone.rebalance_timeout_ms or gone.session_timeout_ms
            is_late = since_ms is None or at.timestamp_ms - since_ms >= joins_within_ms
            membership.hint = departure_hint(writer, member_id, at, gone.session_timeout_ms, may_be_late=is_late)
            depart(writer, member_id, at)
    for member_id, member in new.members.items():
        membership = open_history.memberships.get(member_id)
        known = old.members.get(member_id)
        if membership is None:
            membership = OpenMembership(member_id, at, "join", instance_id=member.instance_id)
            _describe(membership, new, member)
            join(writer, membership)
        elif known is None or known.subscription != member.subscription:
            _describe(membership, new, member)
        # Who has not joined is in no new generation, unless it is static.
        if member.instance_id is None and new.generation != old.generation:
            open_history.note_heard(member_id, at)
    _describe_leader(writer, new)


def _doubt_changes(writer: HistoryWriter, epoch: OpenEpoch, *, is_next: bool) -> None:
    """Members that are gone or replaced may be so since a record that is lost: of another generation, or of the same
    one, which is written again when a static member comes back. ``is_next``: it can be neither for other members.
    """
    open_history = writer.open_history
    for membership in open_history.departed.values():
        if not is_next or membership.instance_id is not None:
            lack(membership, epoch.missing)
            membership.last_epoch = None
    for membership in open_history.memberships.values():
        if membership.joined != epoch.opened:
            if not is_next:
                open_history.past.stay(membership, epoch.missing)
        elif membership.replaces is not None:
            open_history.doubt_join(membership)


def _describe(membership: OpenMembership, group: ClassicGroup, member: ClassicMember) -> None:
    asked = subscription(group, member)
    membership.client_id, membership.client_host = member.client_id, member.client_host
    membership.rack_id, membership.subscribed_topics = asked.rack_id, tuple(sorted(asked.topics))
    membership.url = asked.url
    membership.rebalance_timeout_ms = member.rebalance_timeout_ms
    wrote = classic_writers(group.protocol_type, group.protocol, member.subscription)
    _narrow(membership, member, wrote)


def _describe_leader(writer: HistoryWriter, group: ClassicGroup) -> None:
    """Tell the client of the leader by what it assigned, too, unless its own blobs have told it."""
    leader = writer.open_history.memberships.get(group.leader or "")
    if leader is None or leader.told.certainty is ClientCertainty.CERTAIN:
        return
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE:
        # The leader assigns for all members: its client has written each assignment of the generation.
        blobs = ((member.subscription, member.assignment) for member in group.members.values())
        _narrow(leader, group.members[leader.member_id], assignment_writers(group.protocol or "", blobs))


def _narrow(membership: OpenMembership, member: ClassicMember, wrote: Writers) -> None:
    """Take in which clients write a blob of this member."""
    writers = narrowed(frozenset(membership.writers), wrote) if membership.writers else wrote
    membership.writers = tuple(sorted(writers))
    membership.told = decide(writers, member.client_id, member.session_timeout_ms, member.rebalance_timeout_ms)


# --- assignments -----------------------------------------------------------------------------------------------------


class _Assigned(NamedTuple):
    """What a generation ends and begins, Connect's delay, and when the group wants to rebalance again (ms)."""

    changes: list[Changed]
    delay_ms: int | None
    due_ms: int | None
    revocations: list[Revocation]


def _assign(writer: HistoryWriter, old: ClassicGroup, new: ClassicGroup, at: LogPosition) -> _Assigned:
    """Lay the members' assignments over what they had; owners stay as they were for now."""
    changes: list[Changed] = []
    delays: list[int] = []
    due: list[int] = []
    revocations: list[Revocation] = []
    same_protocol = (old.protocol_type, old.protocol) == (new.protocol_type, new.protocol)
    for member_id in old.members:
        if member_id not in new.members:
            changes.append(writer.put(CURRENT, member_id, {}, at, None))
    for member_id, member in new.members.items():
        known = old.members.get(member_id)
        same = same_protocol and known is not None and known.assignment == member.assignment
        if same and known is not None and known.subscription == member.subscription and not writer.open_history.due_ms:
            continue
        given = given_to(new, member)
        if given.delay_ms:
            delays.append(given.delay_ms)
        if given.next_rebalance_ms is not None:
            due.append(given.next_rebalance_ms)
        unread = unread_units(writer.open_history, new, member)
        held = without_units(given.held, unread) if unread else given.held
        changed = writer.put(CURRENT, member_id, held, at, new.generation)
        if given.revoked:
            revocations.append(Revocation(member_id, given.revoked, at, None, None))
        changes.append(changed)
    due += [at.timestamp_ms + delay for delay in delays]
    return _Assigned(changes, max(delays, default=None), min(due, default=None), revocations)


def _counted(group: ClassicGroup, changes: list[Changed]) -> list[Changed]:
    """The units that count when a rebalance is judged: of Kafka Streams its tasks, not their partitions once more."""
    if group.protocol != STREAMS_PROTOCOL:
        return changes
    return [
        Changed(
            changed.member_id,
            [ended for ended in changed.ended if ended[0][0] != "partition"],
            [taken for taken in changed.taken if taken[0][0] != "partition"],
        )
        for changed in changes
    ]


# --- rows ------------------------------------------------------------------------------------------------------------


def _complete(writer: HistoryWriter, completed: _Completed) -> None:
    """A generation is complete: one row for the rebalance that led to it, and a new open epoch."""
    _, new, epoch, assigned, _, unread = completed
    open_history, last = writer.open_history, writer.open_history.epoch
    born_empty = open_history.last_epoch is None and not new.members
    if not born_empty or epoch.missing is not None:
        epoch.causes = writer.take_causes(epoch)
    epoch.missing = unread or epoch.missing  # last, as it says nothing against the causes that are known
    if not born_empty:
        # Before the new epoch begins: the row begins where the one before ends, of which nothing is left then.
        _add_rebalance(writer, completed)
    writer.begin_epoch(epoch)
    open_history.ownership.settle(epoch.opened, new.members)
    if not new.members:
        open_history.ownership.idle.clear()
    open_history.due_ms = assigned.due_ms
    if last is not None and not new.members:
        open_history.unseen.clear()
    if last is None:
        leave_out_topics_known(open_history, new)


def _read_before(writer: HistoryWriter, epoch: OpenEpoch, old: ClassicGroup, new: ClassicGroup) -> int:
    """Read the history before a generation that is complete; return how many are skipped since the last.

    Skipped ones are known never to have completed only if the log has no gap since the last. A first generation with
    static members may be written again, for one that came back, where the log does not show what was before.
    """
    open_history, past, generation = writer.open_history, writer.open_history.past, epoch.epoch
    last, told = open_history.last_epoch, open_history.epoch
    if last is None:
        if not writer.begins(epoch.opened, is_first=generation <= FIRST_GENERATION and not has_static_members(new)):
            lack(epoch, NOT_SHOWN_BEFORE_GENERATION.format(generation))
        return 0
    skipped = max(generation - last - 1, 0)
    if skipped and (writer.coverage is None or past.doubt is not None):
        lack(epoch, NEVER_COMPLETED.format(numbers("generation", last + 1, generation - 1)))
    elif told is not None and told.missing is not None and _may_be_told_by(told, open_history, old):
        lack(epoch, told.missing)
    elif past.doubt is not None:
        past.rest(epoch)
    elif past.is_unsettled and told is not None and old.members and not _knows_owners(writer, told, old):
        lack(epoch, TAKEN_AWAY.format(last))
    return skipped


def _knows_owners(writer: HistoryWriter, told: OpenEpoch, old: ClassicGroup) -> bool:
    return old.protocol in ASSIGNS_ALL and writer.knows_owners(told.topics, told.opened)


def _may_be_told_by(lacking: OpenEpoch, open_history: OpenHistory, old: ClassicGroup) -> bool:
    """Whether a lost epoch before one that lacks it may have seen these changes of topics, or the same generation was
    written before, and tells what a static member asked for then.
    """
    static = (member for member in old.members.values() if member.instance_id is not None)
    return (bool(open_history.unseen) and is_downgrade(lacking)) or any(unwanted_topics(old, each) for each in static)


def _began_before_ms(group: ClassicGroup, at: LogPosition) -> int:
    """Return when all members had joined the generation; the rebalance began before."""
    return group.current_state_timestamp or at.timestamp_ms


def _lasted_ms(began_ms: int, at: LogPosition) -> int | None:
    """Return the time (ms) from then to the record; None: one of them has no time."""
    lasted_ms = elapsed_ms(began_ms, at.timestamp_ms)
    return None if lasted_ms is None else max(lasted_ms, 0)


def _add_rebalance(writer: HistoryWriter, completed: _Completed) -> None:
    _, new, epoch, assigned, skipped, _ = completed
    open_history, last, at = writer.open_history, writer.open_history.epoch, epoch.opened
    # A generation is written again only while the group is stable, so a rebalance that follows began after that.
    began_after = (last.rewritten or last.opened).timestamp_ms if last is not None else -1
    began_before = _began_before_ms(new, at)
    # Written again for a static member that came back, the record is of long after: the state began with the first one.
    may_be_again = epoch.missing is not None and has_static_members(new)
    # A group that becomes classic begins with the number of its last epoch (KIP-848), and with 0 if it has no members.
    # That of workers is in the other log.
    is_converted = any(each.kind == CauseKind.GROUP_DOWNGRADED and each.at == at for each in epoch.causes)
    is_elsewhere = is_converted and new.protocol_type == CONNECT_PROTOCOL_TYPE
    is_converted &= not is_elsewhere
    rebalance = OpenRebalance(
        epoch.epoch if is_converted and new.members else open_history.epoch_before(epoch.epoch),
        None if is_elsewhere else writer.members_before(epoch),
        behind={},
        target=at,
        revocations=assigned.revocations,
    )
    outcome, tally = "converged" if new.members else "emptied", open_history.ownership.tally()
    row = rebalance.row(writer.group.group_id, str(GroupType.CLASSIC), epoch, outcome, tally, at, is_seen=True)
    writer.rows.append(
        row._replace(
            began_after_ms=began_after if began_after >= 0 else None,
            began_before_ms=began_before,
            time_to_target_ms=None,
            time_to_converge_ms=None,
            duration_min_ms=None if may_be_again else _lasted_ms(began_before, at),
            duration_max_ms=_lasted_ms(began_after, at),
            skipped_generations=skipped,
            delay_ms=assigned.delay_ms,
        )
    )
