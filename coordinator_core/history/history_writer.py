"""Writes the history of one group: opens and closes epochs, rebalances, memberships and intervals, and makes rows.

An operation is what the coordinator wrote together: the records of one batch and time. Some things are known only at
its end: a member that is removed may be added again under a new id, a group that ends may go on as another type.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, NamedTuple

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group, GroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history import grounds
from coordinator_core.history.broker_evidence import may_be_first, restart_hint, without_blame
from coordinator_core.history.causes import (
    NEEDS_BUMP_AT_ONCE,
    UNPROVEN_BEHIND_A_HOLE,
    UNPROVEN_BEHIND_LOST_EPOCHS,
    CauseKind,
    cause,
)
from coordinator_core.history.coverage import Coverage, numbers
from coordinator_core.history.holdings import Changed, Held, Interval
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenEpoch, OpenMembership, OpenRebalance
from coordinator_core.history.rows import (
    DOWNGRADED,
    NEXT_EPOCH,
    REACHED_NOT_READY,
    UPGRADED,
    AssignmentRow,
    Cause,
    HistoryRow,
    RebalanceRow,
)
from coordinator_core.history.testimony import lack, lack_members
from coordinator_core.history.topics_of_epochs import CLASSIC, NO_TOPICS, ProvenTopics, Resources, changes_not_seen
from coordinator_core.records import AnyRecord, CoordinatorRecord, LogPosition

SHARE = GroupType.SHARE.value
CURRENT = "current"
TARGET = "target"
END_NOT_SEEN = "end not seen"
"""How an epoch or a membership ended that only later records show to have ended."""

_JOIN = frozenset((CauseKind.MEMBER_JOINED,))


class HistoryWriter:
    """The history of one group in progress: its state, its open history, and the rows that are final (``rows``).

    ``topics`` and ``coverage`` are None if they are not known; then what depends on them is unknown. ``resources``
    names what members have in rows.
    """

    __slots__ = ("coverage", "group", "metadata_age_ms", "open_history", "resources", "rows", "topics")

    def __init__(
        self,
        group: Group,
        open_history: OpenHistory,
        topics: TopicHistory | None,
        coverage: Coverage | None,
        metadata_age_ms: int,
    ) -> None:
        self.group = group
        self.open_history = open_history
        self.topics = topics
        self.coverage = coverage
        self.metadata_age_ms = metadata_age_ms
        self.rows: list[HistoryRow] = []
        self.resources = Resources(open_history, topics)

    # --- operations --------------------------------------------------------------------------------------------------

    def follow(self, record: CoordinatorRecord) -> None:
        """Note which records of the group may be missing before the next one."""
        open_history = self.open_history
        if self.coverage is None:
            return
        has_ended = open_history.ended is not None
        if open_history.past.follow(record, self.coverage, from_start=self.group.from_start, has_ended=has_ended):
            self._doubt_lasting()

    def lose(self, at: LogPosition, missing: str) -> None:
        """Note a record of the group that says something unknown; ``missing`` names it.

        The record of a group that is converted comes at once behind the end of the one before: where that may be the
        one, it is not known how the life ended.
        """
        open_history, ended = self.open_history, self.open_history.ended
        may_go_on = ended is not None and ended.timestamp_ms == at.timestamp_ms
        if ended is not None and not may_go_on:
            self._end_operation()
            open_history.operation = None
        open_history.past.lose_at(at, missing)
        if ended is not None and may_go_on:
            self.end_unseen_life(ended)
        self._doubt_lasting()

    def _doubt_lasting(self) -> None:
        open_history = self.open_history
        open_history.ownership.forget_released()
        if open_history.epoch is not None:
            open_history.past.rest(open_history.epoch)
        if open_history.awaits_epoch and open_history.type != SHARE:
            for gone in open_history.departed.values():  # it may go on: the group may have been converted
                gone.last_epoch = open_history.past.read_epoch(gone, gone.last_epoch)

    def begin_operation(self, operation: tuple[int, int], *, may_go_on: bool = False) -> None:
        """Begin another operation; the one before, if any, is over.

        ``may_go_on``: this may be the same one, and what it changed may still open an epoch.
        """
        if self.open_history.operation is not None:
            self._end_operation(may_go_on=may_go_on)
        self.open_history.operation = operation

    def _end_operation(self, *, may_go_on: bool = False) -> None:
        open_history = self.open_history
        had_members = bool(open_history.departed) and open_history.type != SHARE
        # A member whose instance id was taken over has left the departed by now: those that are left will not return.
        if open_history.departed:
            self.close(open_history.departed)
        if open_history.crossing:
            self.close(open_history.crossing)
        if open_history.ended is not None and had_members and open_history.past.doubt is not None:
            self.end_unseen_life(open_history.ended)  # only a group without members can be deleted
        elif open_history.ended is not None:
            self._end_life("group deleted", open_history.ended)
            open_history.type = open_history.ended = None
        if open_history.joined:
            self._doubt_joins()
        if open_history.changes and not may_go_on:
            open_history.changes = [change for change in open_history.changes if change.kind not in NEEDS_BUMP_AT_ONCE]

    def close(self, memberships: dict[str, OpenMembership]) -> None:
        """End these memberships: the members will not return."""
        of_type = self._type
        self.rows += [each.row(self.group.group_id, of_type, final=True) for each in memberships.values()]
        memberships.clear()

    def _doubt_joins(self) -> None:
        """A member that is new here, yet opened no epoch, was there before, unless it names no topics."""
        open_history = self.open_history
        for member_id in open_history.joined:
            membership = open_history.memberships.get(member_id)
            if membership is None:
                continue
            has_joined = membership.may_have_joined(open_history.past.doubt)
            if not has_joined:
                open_history.doubt_join(membership)
            if not (has_joined and membership.subscribed_regex):
                open_history.withdraw(member_id, _JOIN)
        open_history.joined.clear()

    # --- lives -------------------------------------------------------------------------------------------------------

    @property
    def _type(self) -> str:
        return self.open_history.type or CLASSIC

    def live_as(self, group_type: str, at: LogPosition) -> None:
        """Begin a life of the group as this type; a life as another type, or one that ended just now, is over."""
        open_history = self.open_history
        types = {open_history.type, group_type} - {None}
        may_convert = len(types) > 1 and CLASSIC in types and SHARE not in types
        if len(types) > 1 and open_history.ended is None and (open_history.past.doubt is not None or not may_convert):
            open_history.past.end_unseen()
            self.end_unseen_life(at)
        elif may_convert:
            up = open_history.type == CLASSIC
            self.close(open_history.take_replaced())
            open_history.convert("upgrade" if up else "downgrade", at, getattr(self.group.state, "members", ()))
            # Before the life ends: the epoch that says which topics were seen ends with it.
            unseen = changes_not_seen(self.topics, open_history.epoch, at)
            self._end_life(UPGRADED if up else DOWNGRADED, open_history.ended or at)
            open_history.unseen = unseen
            kind = CauseKind.GROUP_UPGRADED if up else CauseKind.GROUP_DOWNGRADED
            open_history.changes.append(cause(kind, at, detail=f"{open_history.type} to {group_type}"))
        elif open_history.ended is not None:
            self._end_life("group deleted", open_history.ended)
        open_history.type = group_type
        open_history.ended = None
        self.resources.forget()

    def end_unseen_life(self, at: LogPosition) -> None:
        """End a life of which the log shows that it ended before this record, and not when and how: the group may have
        been converted, or deleted and created again.
        """
        open_history = self.open_history
        if open_history.epoch is not None:
            open_history.past.rest(open_history.epoch)
        self._end_life(END_NOT_SEEN, at)
        open_history.last_epoch = open_history.last_members = None
        open_history.changes.clear()
        open_history.type = open_history.ended = None

    def _end_life(self, how: str, at: LogPosition) -> None:
        open_history = self.open_history
        # Before the epoch ends: the row of a rebalance has the causes and the members of its epoch.
        self.end_rebalance("unknown" if how == END_NOT_SEEN else how, at)
        self.end_epoch(how, at)
        for membership in open_history.memberships.values():
            membership.left, membership.went_by = at, how
            membership.last_epoch = None if how == END_NOT_SEEN else open_history.last_epoch
            open_history.past.rest(membership)  # only an empty group is deleted: it left in what may be missing
        self.close(open_history.memberships)
        for kind, holdings in ((CURRENT, open_history.current), (TARGET, open_history.target)):
            for changed in holdings.clear(at):
                self._ended(changed, kind, at)
        open_history.ownership.clear()
        open_history.highest.clear()
        open_history.resubscribed.clear()
        open_history.unseen.clear()
        open_history.due_ms = None
        if how == "group deleted":
            open_history.past.begin_life(at)
            open_history.last_epoch = open_history.last_members = None
            open_history.changes.clear()

    # --- units -------------------------------------------------------------------------------------------------------

    def put(self, kind: str, member_id: str, held: Held, at: LogPosition, epoch: int | None) -> Changed:
        """Set what a member has (``CURRENT``) or is to have (``TARGET``); return what ends and what begins by that.

        Owners are not changed: that is for the caller.
        """
        holdings = self.open_history.current if kind == CURRENT else self.open_history.target
        has_more, member = member_id in holdings.members, self.open_history.memberships.get(member_id)
        past = self.open_history.past
        changed = holdings.put(member_id, held, at, epoch, seen=past.saw_take(member, has_more=has_more))
        if changed.ended:
            self._ended(changed, kind, at)
        return changed

    def own(self, member_id: str, held: Held, at: LogPosition, epoch: int | None) -> None:
        """Set exactly these units as what a member has: it owns what is new, and gave up what is not among them."""
        changed = self.put(CURRENT, member_id, held, at, epoch)
        if self._has_owners and (changed.ended or changed.taken):
            self.open_history.ownership.change((changed,), at)

    def _ended(self, changed: Changed, kind: str, at: LogPosition) -> None:
        member_id = changed.member_id
        for resource, intervals in changed.ended:
            self.rows += [
                self._assignment(kind, Interval(member_id, resource, partition, *interval), at)
                for partition, interval in intervals.items()
            ]

    def _assignment(self, kind: str, interval: Interval, until: LogPosition | None) -> AssignmentRow:
        """Return the row of an interval that ended with a record (None: that lasts)."""
        member_id, resource, partition, since, epoch, seen = interval
        return AssignmentRow(
            self.group.group_id,
            self._type,
            member_id,
            kind,
            *self.resources.columns(resource),
            partition,
            epoch if seen else None,
            since,
            until,
            until is None,
            seen and self.open_history.past.saw_since(since, lasts=until is None),
        )

    # --- epochs and rebalances ---------------------------------------------------------------------------------------

    def bump(
        self, number: int, members: tuple[str, ...], state: str, at: LogPosition, proven: ProvenTopics = NO_TOPICS
    ) -> OpenEpoch:
        """Open a new epoch, whose hash has ``proven`` these topics; return it. The last rebalance is superseded."""
        open_history, last = self.open_history, self.open_history.epoch
        if open_history.past.is_unsettled and last is not None and self.knows_owners(last.topics, at):
            open_history.past.settle()
        # The group is empty now: no member has what was subscribed until now.
        epoch = OpenEpoch(number, at, members, state, topics=last.topics if last is not None else ())
        self.read_before(epoch)
        self.take_part(epoch)
        before, from_epoch = self.members_before(epoch), open_history.epoch_before(number)
        open_history.leave_uncertain_causes(epoch)
        unproven = UNPROVEN_BEHIND_A_HOLE if last is None or from_epoch is not None else UNPROVEN_BEHIND_LOST_EPOCHS
        epoch.causes = self.take_causes(epoch, unproven)
        open_history.leave_joined_out(at)
        # After the causes, and before the epoch: the row of the old rebalance is of the owners and the epoch until
        # now.
        self.end_rebalance("superseded", at, proven)
        self.begin_epoch(epoch)
        open_history.past.open_epoch()
        if number == 0 and not members and epoch.missing is None:
            return epoch  # The group begins to exist, as connectors are configured: there are no members to rebalance.
        open_history.rebalance = OpenRebalance(from_epoch, before, dict.fromkeys(members, True))
        if open_history.past.is_unsettled and self._has_owners:
            lack(open_history.rebalance, epoch.missing or grounds.GIVEN_UP.format(from_epoch))
        # What nobody has yet goes over to the new rebalance: its time without an owner began in the old one.
        open_history.ownership.begin()
        if not members:
            self.end_rebalance("emptied", at)
        return epoch

    def knows_owners(self, subscribed: tuple[str, ...], at: LogPosition) -> bool:
        """Whether each partition of these topics has an owner, or its last one was seen to give it up.

        Partitions of a classic group go by the names of their topics.
        """
        if self.topics is None or not self._has_owners:
            return False
        there = [topic for topic in (self.topics.topic_at(name, at.timestamp_ms) for name in subscribed) if topic]
        seen, by_name = self.open_history.ownership.seen, self._type == CLASSIC
        of_topic = {("partition", topic.name if by_name else topic.id): topic.partitions for topic in there}
        return bool(there) and all(seen(resource) >= partitions for resource, partitions in of_topic.items())

    def members_before(self, epoch: OpenEpoch) -> int | None:
        """Return the number of members in the epoch before one that opens; None if it is not known."""
        known, last, doubt = self.open_history.last_members, self.open_history.epoch, self.open_history.past.doubt
        is_known = doubt is None and epoch.missing != grounds.CONVERTED_ELSEWHERE
        if not is_known or (last is not None and not last.knows_members):
            return None
        return 0 if known is None and epoch.missing is None else known

    def begin_epoch(self, epoch: OpenEpoch) -> None:
        """Begin a new epoch: the one before ends."""
        open_history = self.open_history
        self.end_epoch(NEXT_EPOCH, epoch.opened)
        open_history.epoch = epoch
        open_history.last_epoch, open_history.last_members = epoch.epoch, len(epoch.members)
        open_history.changes = []
        open_history.joined.clear()

    def take_part(self, epoch: OpenEpoch) -> None:
        """Let members that joined since the last epoch take part from this one on.

        They were seen to join, too, if no record can be missing that shows a member that comes now.
        """
        is_whole = self.coverage is not None and self.open_history.past.doubt is None
        for membership in self.open_history.memberships.values():
            if membership.first_epoch is None and membership.missing is None:
                membership.first_epoch = epoch.epoch
                if epoch.missing is not None and not is_whole:
                    self.open_history.doubt_join(membership)

    def end_epoch(self, ended_by: str, at: LogPosition) -> None:
        """End the open epoch, if there is one."""
        epoch = self.open_history.epoch
        if epoch is not None:
            self.rows.append(epoch.row(self.group.group_id, self._type, at, ended_by))
            self.open_history.epoch = None

    def converge(self, at: LogPosition) -> None:
        """End the open rebalance if its target is installed and every member has reached it."""
        rebalance, epoch = self.open_history.rebalance, self.open_history.epoch
        if rebalance is not None and rebalance.target is not None and not rebalance.behind:
            is_ready = epoch is None or epoch.state != "NOT_READY"
            if epoch is not None and is_ready:
                epoch.state = "STABLE"
            # A group that was converted runs the tasks of its classic members before it knows their topology.
            is_told = epoch is None or epoch.topology is None or epoch.topology.status is not None
            runs = is_ready or (not is_told and bool(self.open_history.target.members))
            self.end_rebalance("converged" if runs else REACHED_NOT_READY, at)

    def end_rebalance(self, outcome: str, at: LogPosition, proven: ProvenTopics = NO_TOPICS) -> None:
        """End the open rebalance, if there is one."""
        open_history = self.open_history
        if open_history.rebalance is None:
            return
        if self._has_owners:
            # Before the units are counted: those of a topic that is gone, or no longer subscribed, are not lost.
            open_history.ownership.forget(self.resources.wanted(at, open_history.epoch, proven))
            if outcome != "superseded":
                open_history.ownership.end(at)
        self.rows += self.rebalance(outcome, at)
        open_history.rebalance = None
        if outcome in ("converged", REACHED_NOT_READY, "emptied"):
            open_history.past.settle()
        if outcome != "superseded":
            open_history.ownership.before.clear()
        if outcome == "emptied":
            open_history.ownership.idle.clear()

    def take_causes(self, epoch: OpenEpoch, unproven: AbstractSet[str] = frozenset()) -> tuple[Cause, ...]:
        """Return the causes of the epoch that opens; if the log shows none, that is the cause.

        ``unproven`` are the kinds that say nothing where records are missing.
        """
        missing, at, causes, past = epoch.missing, epoch.opened, self.open_history.changes, self.open_history.past
        if missing is not None and (self.open_history.last_epoch is None or past.doubt is not None):
            causes = [known for known in causes if known.kind not in {*_JOIN, *unproven}]
        if causes:
            return tuple(causes)
        last = self.open_history.epoch
        hint = restart_hint(last.opened, at, self.topics) if missing is None and last is not None else None
        return (cause(CauseKind.UNKNOWN, at, detail=missing or "the log does not show a cause", hint=hint),)

    def read_before(self, epoch: OpenEpoch) -> None:
        """Read the history before an epoch that opens."""
        past, before, at, between = self.open_history.past, self.open_history.last_epoch, epoch.opened, None
        if before is None:
            metadata_hash = getattr(self.group.state, "metadata_hash", None)
            if not self.begins(at, is_first=may_be_first(epoch.epoch, metadata_hash, self.topics, at.timestamp_ms)):
                lack_members(epoch, grounds.NOT_SHOWN_BEFORE.format(epoch.epoch))
            return
        if epoch.epoch > before + 1:
            between = grounds.NOT_IN_THE_LOG.format(numbers("epoch", before + 1, epoch.epoch - 1))
            if self.open_history.was_converted_elsewhere(epoch.epoch):
                between = grounds.CONVERTED_ELSEWHERE
        past.open(epoch, between)

    def begins(self, at: LogPosition, *, is_first: bool) -> bool:
        """Whether nothing of the group was before this operation; ``is_first``: its epoch is a group's first."""
        _, batch = self.open_history.operation or (-1, -1)
        return self.open_history.past.begins(at, batch, self.coverage, is_first=is_first)

    # --- as of now ---------------------------------------------------------------------------------------------------

    def open_rows(self) -> Iterator[HistoryRow]:
        """Yield the rows of what is open, and of what ended in the present operation: a later run may replace them."""
        ended, settled = self.settled()
        return chain(ended, settled._lasting())

    def settled(self) -> "tuple[list[HistoryRow], HistoryWriter]":
        """Return the rows of what ended in the present operation, and the writer as if the operation were over."""
        open_history = self.open_history
        if not (open_history.ended or open_history.departed or open_history.crossing or open_history.joined):
            return [], self
        # A copy, as the operation may go on with the next record: nothing of it is over yet but for this answer.
        settled = HistoryWriter(self.group, open_history.copy(), self.topics, self.coverage, self.metadata_age_ms)
        settled._end_operation()
        return settled.rows, settled

    def take_rows(self) -> list[HistoryRow]:
        """Return the rows that were made since the last call."""
        rows = self.rows
        if rows:  # most records make none
            self.rows = []
        return rows

    def rebalance(self, outcome: str = "open", at: LogPosition | None = None) -> Iterator[RebalanceRow]:
        """Yield the rebalance that is not over, if there is one, as one that ends at a record (None: that lasts)."""
        open_history, epoch, rebalance = self.open_history, self.open_history.epoch, self.open_history.rebalance
        if epoch is not None and rebalance is not None:
            tally = open_history.ownership.tally() if self._has_owners else None
            # Where a target is installed later than its epoch opens, members may still reach the one before.
            past, is_delayed = open_history.past, getattr(self.group.state, "assignment_timestamp", True)
            is_reached = outcome in ("converged", REACHED_NOT_READY)
            is_seen = past.saw_since(epoch.opened, lasts=is_reached) or (is_reached and not is_delayed)
            if at is None:
                is_seen = is_seen and past.saw_members(known=epoch.knows_members)
            row = rebalance.row(self.group.group_id, self._type, epoch, outcome, tally, at, is_seen=is_seen)
            yield without_blame(row, at, self.topics, self.group.family, open_history.leader_epoch)

    def _lasting(self) -> Iterator[HistoryRow]:
        open_history, group_id = self.open_history, self.group.group_id
        if open_history.epoch is not None:
            row = open_history.epoch.row(group_id, self._type)
            # The last records of all keys are there, unless some were lost.
            yield row if open_history.past.is_lost else row._replace(state=open_history.epoch.state)
        yield from self.rebalance()
        for membership in open_history.memberships.values():
            yield membership.row(group_id, self._type, final=False)
        for topics in open_history.share_phases.values():
            for partitions in topics.values():
                yield from partitions.values()
        for kind, holdings in ((CURRENT, open_history.current), (TARGET, open_history.target)):
            for interval in holdings:
                yield self._assignment(kind, interval, None)

    @property
    def _has_owners(self) -> bool:
        """Whether a unit has one owner at most; in share groups many read one."""
        return self.open_history.type != SHARE


class RecordHandler(NamedTuple):
    """``after`` writes history once the record has changed the group, which is of type ``group_type``.

    It gets what ``before`` returned for the state that the record was about to change; None if nothing is needed.
    """

    group_type: str
    after: Callable[[HistoryWriter, AnyRecord, Any], None]
    before: Callable[[GroupState | None, AnyRecord], Any] | None = None
