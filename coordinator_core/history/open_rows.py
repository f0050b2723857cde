"""What is still open in a group's history: an epoch, a rebalance and memberships, and the rows that they become."""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from coordinator_core.clients.known_clients import UNKNOWN_CLIENT, Told
from coordinator_core.groups.streams.readiness import TopologyCheck
from coordinator_core.history.holdings import Tally, no_times
from coordinator_core.history.rows import REPLACED, Cause, GroupEpochRow, MembershipRow, RebalanceRow, Revocation
from coordinator_core.history.testimony import told_missing
from coordinator_core.records import LogPosition, elapsed_ms

NAMED_BEHIND = 10
"""How many of the members that are behind a rebalance row names."""


@dataclass(slots=True)
class OpenEpoch:
    """An epoch, or generation, that lasts.

    ``topics`` are the names subscribed, ``topics_version`` the version of the topic history that was used for it (-1:
    unknown). ``missing`` is None where its predecessor was seen; ``knows_members``: ``members`` are all there were.
    ``rewritten`` is the last record of the same generation after ``opened``; None: there is none. ``dropped_topics``
    are those of a generation that the one before had, and that its leader, which is still the leader, no longer has to
    watch; of an epoch those to which the group no longer subscribes, since all members last had their target.
    """

    epoch: int
    opened: LogPosition
    members: tuple[str, ...]
    state: str
    causes: tuple[Cause, ...] = ()
    protocol_type: str | None = None
    assignor: str | None = None
    leader: str | None = None
    target: LogPosition | None = None
    metadata_hash: int | None = None
    topics_proven: bool | None = None
    topics_at: LogPosition | None = None
    topics_version: int = -1
    topics: tuple[str, ...] = ()
    missing: str | None = None
    knows_members: bool = True
    rewritten: LogPosition | None = None
    dropped_topics: tuple[str, ...] = ()
    unassigned: int | None = None
    assignment_error: int | None = None
    topology: TopologyCheck | None = None

    def row(
        self, group_id: str, group_type: str, ended: LogPosition | None = None, ended_by: str | None = None
    ) -> GroupEpochRow:
        """Return the row of ``group_epochs``, final if the epoch has ``ended``.

        The metadata hash is over what all members subscribe to: where not all are known, only a match says something.
        """
        told: dict[str, Any] = {name: getattr(self, name) for name in _OF_EPOCH}
        told["members"] = tuple(sorted(self.members)) if self.knows_members else None
        if not self.knows_members:
            told["state"] = None
        if not (self.knows_members or self.topics_proven):
            told |= {"topics_proven": None, "topics_at": None}
        return GroupEpochRow(
            group_id=group_id,
            group_type=group_type,
            ended=ended,
            ended_by=ended_by,
            is_open=ended is None,
            **told | told_missing(self.missing or no_times(self.opened)),
        )


class RevocationRequest(NamedTuple):
    """A request to a member to give up units."""

    at: LogPosition
    units: int


@dataclass(slots=True)
class OpenRebalance:
    """A rebalance in progress of a group with epochs: what it has beside its epoch, on which it rests.

    ``behind`` has the members that are not yet at the target (a dict, as its order is the log's), ``revoking`` what
    members are asked to give up, ``waited`` the members that had to wait for others to do so. ``missing`` is what it
    lacks where its epoch lacks nothing; ``knows_members``: those of the epoch take part. ``is_led_anew``: another
    coordinator took over meanwhile. ``delay_ms``: how long what is in no target waits for a worker (Connect).
    """

    from_epoch: int | None
    members_before: int | None
    behind: dict[str, bool]
    target: LogPosition | None = None
    revoking: dict[str, RevocationRequest] = field(default_factory=dict)
    revocations: list[Revocation] = field(default_factory=list)
    waited: dict[str, bool] = field(default_factory=dict)
    last_member: str | None = None
    missing: str | None = None
    knows_members: bool = True
    is_led_anew: bool = False
    delay_ms: int | None = None

    def asked(self, member_id: str, units: int, at: LogPosition) -> None:
        """Note that a current assignment of the member asks it to give up ``units``; none: it has given them up."""
        asked = self.revoking.get(member_id)
        if asked is None:
            if units:
                self.revoking[member_id] = RevocationRequest(at, units)
        elif not units:
            del self.revoking[member_id]
            duration = elapsed_ms(asked.at.timestamp_ms, at.timestamp_ms)
            self.revocations.append(Revocation(member_id, asked.units, asked.at, at, duration))

    def _delayed_by(self) -> str | None:
        """The last to acknowledge: who still has to, or, if the last member waited for others, the last of those.

        None where several still have to, and while another coordinator took over: it served no member meanwhile.
        """
        if self.is_led_anew:
            return None
        if self.revoking:
            return next(iter(self.revoking)) if len(self.revoking) == 1 else None
        if len(self.behind) > 1:
            return None
        last = next(iter(self.behind), self.last_member)
        others = [revocation for revocation in self.revocations if revocation.member_id != last]
        return others[-1].member_id if others and last in self.waited else last

    def row(
        self,
        group_id: str,
        group_type: str,
        epoch: OpenEpoch,
        outcome: str,
        tally: Tally | None,
        finished: LogPosition | None,
        *,
        is_seen: bool,
    ) -> RebalanceRow:
        """Return the row of ``rebalances``; ``tally`` is None where units have no single owner (share groups).

        Where it is not seen (``is_seen``) what came after it began, it may have ended otherwise before.
        """
        at, is_open = epoch.opened, outcome == "open"
        began, knows_members = at.timestamp_ms, self.knows_members and epoch.knows_members
        # A member that has not reached the target may be one that has gone; without members it was emptied at once.
        rests_on_members = not is_open or self.target is not None
        if not is_seen or (rests_on_members and not knows_members):
            outcome = "unknown"
        if outcome == "unknown":
            finished = None
        lasted = None if finished is None else elapsed_ms(began, finished.timestamp_ms)
        missing = self.missing or epoch.missing
        if missing is not None:
            tally = None
        knows_behind = knows_members and outcome != "unknown"
        missing = missing or no_times(at)
        unanswered = [Revocation(member, units, at, None, None) for member, (at, units) in self.revoking.items()]
        return RebalanceRow(
            group_id,
            group_type,
            at,
            self.from_epoch,
            epoch.epoch,
            epoch.causes,
            outcome,
            is_open,
            began if began >= 0 else None,
            began,
            self.target,
            finished,
            elapsed_ms(began, self.target.timestamp_ms) if self.target else None,
            lasted if outcome == "converged" else None,
            lasted,
            lasted,
            self.members_before,
            len(epoch.members) if knows_members else None,
            *(tally or Tally(None, None, None, None, None)),
            (*self.revocations, *unanswered),
            self._delayed_by() if missing is None and lasted != 0 else None,
            len(self.behind) if knows_behind else None,
            tuple(sorted(self.behind)[:NAMED_BEHIND]) if knows_behind else (),
            self.is_led_anew or None,
            0,
            self.delay_ms,
            missing is None,
            missing or (tally and tally.missing),
        )


@dataclass(slots=True)
class OpenMembership:
    """A member of the group, or one that left within the present operation (``left``).

    ``writers`` are those that can have written all its blobs (``clients.writers``), and ``told`` is its client.
    ``heard_ms`` and ``heard_epoch`` are the time and the leader epoch of the last record that it made by a request.
    """

    member_id: str
    joined: LogPosition
    came_by: str
    instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rack_id: str | None = None
    url: str | None = None
    process_id: str | None = None
    user_endpoint: str | None = None
    client_tags: tuple[str, ...] = ()
    topology_epoch: int | None = None
    subscribed_topics: tuple[str, ...] = ()
    subscribed_regex: str | None = None
    speaks_classic: bool = False
    replaces: str | None = None
    first_epoch: int | None = None
    left: LogPosition | None = None
    went_by: str | None = None
    hint: str | None = None
    away_since: LogPosition | None = None
    last_epoch: int | None = None
    missing: str | None = None
    writers: tuple[str, ...] = ()
    told: Told = UNKNOWN_CLIENT
    rebalance_timeout_ms: int | None = None
    heard_ms: int = -1
    heard_epoch: int | None = None

    @property
    def is_replaced(self) -> bool:
        """Whether it left, and another member has its instance id."""
        return self.went_by == REPLACED

    @property
    def opens_no_epoch(self) -> bool:
        """Whether the member may join without a new epoch: it names no topics, and is neither a worker nor of Kafka
        Streams. The topics of its regex open one once they are known.
        """
        return not (self.subscribed_topics or self.url or self.process_id)

    def may_have_joined(self, doubt: str | None) -> bool:
        """Whether the member, whose record opened no epoch, joined with it. Where records are missing (``doubt``), a
        static one may instead have replaced a member that joined in them, and one that speaks the classic protocol
        writes its record again whenever it joins again.
        """
        is_sure = doubt is None or (self.instance_id is None and not self.speaks_classic)
        return self.opens_no_epoch and is_sure

    def row(self, group_id: str, group_type: str, *, final: bool) -> MembershipRow:
        """Return the row of ``memberships``."""
        told: dict[str, Any] = {name: getattr(self, name) for name in _OF_MEMBER}
        if self.came_by == "unknown":
            told["first_epoch"] = None
        return MembershipRow(
            group_id=group_id,
            group_type=group_type,
            is_open=not final,
            client=self.told.name,
            client_certainty=self.told.certainty.value,
            client_release=self.told.release,
            **told | told_missing(self.missing),
        )


_OF_EPOCH, _OF_MEMBER = (
    sorted({each.name for each in fields(of)}.intersection(names))
    for of, names in ((OpenEpoch, GroupEpochRow._fields), (OpenMembership, MembershipRow._fields))
)
"""What the rows have under the same names."""
