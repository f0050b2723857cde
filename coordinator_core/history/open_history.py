"""The open history of one group, as plain data: what is open, and what the present operation has done so far."""

from collections.abc import Container
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Annotated

from coordinator_core.cluster.topic_changes import TopicChange
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.broker_evidence import FIRST_EPOCH
from coordinator_core.history.causes import NEEDS_BUMP_AT_ONCE, CauseKind, cause
from coordinator_core.history.grounds import CAUSES_NOT_TOLD, JOINS_NOT_TOLD, NOT_SEEN_TO_JOIN, NOT_SHOWN_BEFORE
from coordinator_core.history.holdings import Holdings, Interval, Ownership
from coordinator_core.history.open_rows import OpenEpoch, OpenMembership, OpenRebalance
from coordinator_core.history.rows import Cause, ShareInitializationRow
from coordinator_core.history.testimony import SeenPast, lack, lack_members
from coordinator_core.records import LogPosition
from coordinator_core.state_json import StoredAs

STORED_HOLDINGS = StoredAs(list[Interval], list, Holdings.of)


@dataclass(slots=True)
class OpenHistory:
    """All that the history of a group needs beyond the group's own state; it is kept from run to run.

    ``type`` is that of the group's present life, ``ended`` the tombstone that ended it within the present operation.
    ``last_epoch`` and ``last_members`` (how many) are those of the last epoch, of any type of the group.
    ``leader_epoch`` is that of the log partition, where known. ``departed`` has the members removed in this operation,
    ``crossing`` those that may continue under another type. ``changes`` are the causes of the next epoch, ``joined``
    the members that joined in this operation since an epoch was opened. ``commits`` has the time (ms) of the last
    commit by topic name and partition; ``commits_lost``: one could not be decoded.

    ``past`` says how much of the group's past was seen.

    Of classic groups: ``highest`` has the highest partition ever assigned of a topic, ``due_ms`` the time at which the
    group itself wants to rebalance again, ``unseen`` the changes of its topics that its leader has not yet acted on,
    ``growths_seen`` the last growth of a topic that is a cause because a member may not have seen it, once for each,
    ``resubscribed`` the static members, by instance id, that were replaced within the generation with another
    subscription, each as a cause.

    Of share groups: ``share_phases`` has, by phase, topic id and partition, what the group's log says of share state;
    ``share_listed`` is the offset of the last record that lists it.
    """

    group_id: str
    type: str | None = None
    operation: tuple[int, int] | None = None
    ended: LogPosition | None = None
    last_epoch: int | None = None
    last_members: int | None = None
    leader_epoch: int | None = None
    epoch: OpenEpoch | None = None
    rebalance: OpenRebalance | None = None
    memberships: dict[str, OpenMembership] = field(default_factory=dict)
    departed: dict[str, OpenMembership] = field(default_factory=dict)
    crossing: dict[str, OpenMembership] = field(default_factory=dict)
    joined: list[str] = field(default_factory=list)
    changes: list[Cause] = field(default_factory=list)
    current: Annotated[Holdings, STORED_HOLDINGS] = field(default_factory=Holdings)
    target: Annotated[Holdings, STORED_HOLDINGS] = field(default_factory=Holdings)
    ownership: Ownership = field(default_factory=Ownership)
    topic_names: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[int, int]] = field(default_factory=dict)
    commits_lost: bool = False
    highest: dict[str, int] = field(default_factory=dict)
    due_ms: int | None = None
    unseen: list[TopicChange] = field(default_factory=list)
    growths_seen: list[LogPosition] = field(default_factory=list)
    resubscribed: dict[str, Cause] = field(default_factory=dict)
    past: SeenPast = field(default_factory=SeenPast)
    share_phases: dict[str, dict[str, dict[int, ShareInitializationRow]]] = field(default_factory=dict)
    share_listed: int | None = None

    @property
    def awaits_epoch(self) -> bool:
        """Whether members came, went or go on as another type, and what comes with that in the same operation does not
        yet.

        In groups with epochs an operation that removes a member also adds the one that takes over its instance id,
        opens an epoch, or ends the group's life as this type. One that adds a member opens an epoch, unless the member
        replaces another one, or names no topics.
        """
        if self.type == GroupType.CLASSIC:
            return False
        if self.crossing and self.epoch is None:
            return True
        opened = -1 if self.epoch is None else self.epoch.opened.offset
        ends = (gone.left.offset for gone in self.departed.values() if gone.left is not None and not gone.is_replaced)
        new = (self.memberships[member_id] for member_id in self.joined if member_id in self.memberships)
        return any(end > opened for end in ends) or not all(each.opens_no_epoch for each in new)

    def shows_another_life(self, group_type: str) -> bool:
        """Whether a tombstone of this type shows that the group was of it, in records that are missing."""
        return self.type not in (None, group_type) and self.ended is None

    def note_heard(self, member_id: str, at: LogPosition) -> None:
        """Note that a request of the member made a record: it was there, and its coordinator too."""
        if (membership := self.memberships.get(member_id)) is not None:
            membership.heard_ms, membership.heard_epoch = at.timestamp_ms, self.leader_epoch

    def note_leader(self, leader_epoch: int | None) -> None:
        """Take in the leader epoch of a record: with another one, a coordinator has taken over before it."""
        if leader_epoch is None:
            return
        if self.rebalance is not None and self.leader_epoch not in (None, leader_epoch):
            # A coordinator that takes over begins session and rebalance timeouts again: delays up to then are not the
            # members'.
            self.rebalance.is_led_anew = True
        self.leader_epoch = leader_epoch

    def _opens_alone(self, at: LogPosition) -> bool:
        """Whether the record that opens an epoch counts as an operation: nothing tells of which one it is."""
        return at.timestamp_ms < 0 and self.operation == (at.offset, -1)

    def leave_joined_out(self, at: LogPosition) -> None:
        """Members that joined with the epoch that opens at ``at`` are not behind in the rebalance before it.

        Without times each record counts as an operation. A join opens an epoch, unless the member names no topics, or
        replaces a static member, which cannot be told then.
        """
        epoch, rebalance, joined = self.epoch, self.rebalance, self.joined
        if epoch is None or rebalance is None:
            return
        if self._opens_alone(at):
            new = [each for each in self.memberships.values() if each.joined.offset > epoch.opened.offset]
            joined = [each.member_id for each in new]
            if any(each.instance_id is not None or each.opens_no_epoch for each in new):
                lack_members(rebalance, epoch.missing or JOINS_NOT_TOLD)
        for member_id in joined:
            rebalance.behind.pop(member_id, None)

    def leave_uncertain_causes(self, epoch: OpenEpoch) -> None:
        """Drop what causes only the epoch of its own operation, where nothing tells operations apart."""
        if self._opens_alone(epoch.opened):
            sure = [change for change in self.changes if change.kind not in NEEDS_BUMP_AT_ONCE]
            if len(sure) < len(self.changes):
                lack(epoch, CAUSES_NOT_TOLD)
            self.changes = sure

    def doubt_join(self, membership: OpenMembership) -> None:
        """Note that a member may have been there before: nothing that it has here began with it."""
        lack(membership, NOT_SEEN_TO_JOIN)
        membership.came_by = "unknown"
        self.current.doubt(membership.member_id)
        self.target.doubt(membership.member_id)

    def note_target(self, member_id: str) -> None:
        """Take in that a member has a target. No record may have shown the member: then the group was there before.

        The second epoch of a converted group has the number of the first one of others: where the conversion is lost,
        the group seems to begin with it, until its target names the members from before.
        """
        epoch, past = self.epoch, self.past
        is_first = epoch is not None and epoch.epoch <= FIRST_EPOCH
        if epoch is None or not is_first or member_id in self.memberships or not past.begin_unseen():
            return
        lack_members(epoch, NOT_SHOWN_BEFORE.format(epoch.epoch))
        epoch.causes = (cause(CauseKind.UNKNOWN, epoch.opened, detail=epoch.missing),)
        if self.rebalance is not None:
            self.rebalance.members_before = None
        for membership in self.memberships.values():
            self.doubt_join(membership)

    def epoch_of(self, membership: OpenMembership) -> int | None:
        """Return the last epoch, with which a member comes or goes; None: it is not known, which the member notes.

        A generation says all about its group.
        """
        is_told = self.type == GroupType.CLASSIC
        return self.last_epoch if is_told else self.past.read_epoch(membership, self.last_epoch)

    def epoch_before(self, number: int) -> int | None:
        """Return the epoch or generation before this one; None: there is none, or it is not known.

        Behind records that may be missing, a higher one is of a life that ended among them, and behind a lower one
        others opened there. A group that was classic begins with the number of its last generation (KIP-848, KIP-1071),
        and workers may have moved to the other log and back.
        """
        last, past = self.last_epoch, self.past
        if self.was_converted_elsewhere(number):
            return number
        if last is None or past.doubt is None:
            return last
        upgraded = next((change.at for change in self.changes if change.kind == CauseKind.GROUP_UPGRADED), None)
        if upgraded is not None:
            # In the place of an empty classic group another one begins, with a first epoch.
            goes_on = any(each.joined.offset < upgraded.offset for each in self.memberships.values())
            return number if past.saw_before(upgraded) and (goes_on or number > FIRST_EPOCH) else None
        return last if last in (number - 1, number) and self.type != GroupType.CONNECT else None

    def was_converted_elsewhere(self, number: int) -> bool:
        """Whether this epoch of workers shows that their group was classic before: its number is that of a generation.

        The log of classic groups is another one.
        """
        is_next = self.last_epoch is None or number <= self.last_epoch + 1
        return self.type == GroupType.CONNECT and self.past.doubt is None and not is_next

    def withdraw(self, member_id: str, kinds: AbstractSet[str]) -> None:
        """Take back causes about a member."""
        self.changes = [change for change in self.changes if change.member_id != member_id or change.kind not in kinds]

    def take_replaced(self) -> dict[str, OpenMembership]:
        """Return, and forget, the members that left and in whose place others are: they do not go on."""
        gone = [membership for membership in self.departed.values() if membership.is_replaced]
        return {membership.member_id: self.departed.pop(membership.member_id) for membership in gone}

    def convert(self, how: str, at: LogPosition, going_on: Container[str]) -> None:
        """Keep the members, which may continue under another type; those that do not went by the conversion.

        Members that are ``going_on`` do so with what they have.
        """
        self.ownership.go_on(going_on, at)
        self.crossing.update(self.memberships)
        self.crossing.update(self.departed)
        self.memberships.clear()
        self.departed.clear()
        for membership in self.crossing.values():
            if membership.left is None:
                self.past.rest(membership)
            membership.left = membership.left or at
            membership.went_by = membership.went_by or how

    def copy(self) -> "OpenHistory":
        """Return a copy, on which the present operation can be ended."""
        return replace(
            self,
            epoch=copy(self.epoch),
            rebalance=copy(self.rebalance),
            memberships=_copies(self.memberships),
            departed=_copies(self.departed),
            crossing=_copies(self.crossing),
            joined=[*self.joined],
            changes=[*self.changes],
            # Holdings change in place, down to single units: made anew from intervals, the copy shares none of them.
            current=Holdings.of(self.current),
            target=Holdings.of(self.target),
            ownership=self.ownership.copy(),
            highest={**self.highest},
            unseen=[*self.unseen],
            resubscribed={**self.resubscribed},
            past=replace(self.past, written={**self.past.written}),
        )


def _copies(memberships: dict[str, OpenMembership]) -> dict[str, OpenMembership]:
    return {member_id: copy(membership) for member_id, membership in memberships.items()}
