"""What the rules need beyond the group's state: which facts the log has shown, and the operation under way.

A rule compares a record with earlier ones. The comparison is only valid if no record is missing in between: behind a
gap in the log, everything known before it may have changed. So each fact is stored with the offset of the record that
wrote it, and counts as known only while the log continues without a gap.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.groups.connect.rebalance_delay import ConfiguredWork, RebalanceDelay
from coordinator_core.groups.rules import CURRENT, MEMBER, TARGET
from coordinator_core.records import LogPosition

DOUBTED = -1
"""Stands for the offset of a fact that may no longer be true."""
REGEX = "regex "
"""Begins the name of the fact to what a regular expression is resolved."""
UNKNOWN = ""
"""The instance id of a member whose metadata the log does not show; a real instance id is never empty."""


class Departure(NamedTuple):
    """A member whose tombstones an operation writes: the first of them, which of the three, and its instance id.

    ``is_classic``: a member of a consumer group that uses the classic protocol.
    """

    at: LogPosition
    kinds: tuple[str, ...]
    instance_id: str | None
    is_classic: bool = False


class HeldUnit(NamedTuple):
    """A partition or task that a member has."""

    role: str
    what: str
    partition: int
    member_id: str


@dataclass(slots=True)
class WriteGroup:
    """What the coordinator wrote at once: the records with one time and batch, of one or several operations.

    ``is_whole``: no record of it is missing. ``empty``: the group had no members before. ``departed`` has the
    tombstones by member; ``leaving`` has those of them that no new epoch followed yet, ``joining`` the same for new
    members. ``unassigned`` has new members without a current assignment yet, ``replaced`` maps a new static member to
    the one that it replaces, and ``given_up`` has what members had whose current assignment ended. ``targets`` has the
    targets that no target assignment metadata followed yet, ``clashes`` their units that another member's target
    contains too. ``crossed`` is the end of a group that had members, until it continues as another type;
    ``crossed_epoch`` is its generation or, with ``reached``, its assignment epoch, and ``converting`` has its members
    that use the classic protocol, with their instance ids. ``converted``: the group has continued as another
    type, or may have, as the records before are missing.
    ``targetless`` is the end of the target assignment metadata, until the group ends too. ``left_targets`` are the
    targets of members that were removed, until the member that takes their place has a copy.
    """

    time_ms: int
    batch: int
    first: LogPosition
    departed: dict[str, Departure] = field(default_factory=dict)
    leaving: dict[str, LogPosition] = field(default_factory=dict)
    joining: dict[str, LogPosition] = field(default_factory=dict)
    unassigned: dict[str, LogPosition] = field(default_factory=dict)
    targets: dict[str, LogPosition] = field(default_factory=dict)
    clashes: list[HeldUnit] = field(default_factory=list)
    crossed: LogPosition | None = None
    crossed_epoch: int | None = None
    reached: int | None = None
    converted: bool = False
    given_up: list[HeldUnit] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    empty: bool = False
    converting: dict[str, str | None] = field(default_factory=dict)
    targetless: LogPosition | None = None
    left_targets: dict[str, list[HeldUnit]] = field(default_factory=dict)
    is_whole: bool = False


@dataclass(slots=True)
class ConnectFacts:
    """What the rules know of the past of a Connect group on KIP-848: its delay, and what it had to run."""

    delay: RebalanceDelay = field(default_factory=RebalanceDelay)
    work: ConfiguredWork = field(default_factory=ConfiguredWork)


@dataclass(slots=True)
class KnownFacts:
    """Which facts about a group its log has shown.

    ``last`` is the offset of the group's last record other than offset commits, and ``partition`` its partition;
    ``run`` is where the stretch without a gap begins that contains it. ``whole``: nothing is missing since the start of
    the log, or since the group's previous life ended, so what the log does not show does not exist. ``facts`` has the
    offset of the record that wrote each fact, ``of_members`` the same by kind of fact and member. ``told`` has the
    partitions for which a rule about commits was reported since ``last``. ``connect`` is for Connect groups on KIP-848.
    ``newest_ms`` is the latest time of the group's records, ``leader_epoch`` the highest leader epoch of their batches,
    -1 for none.
    """

    last: int | None = None
    partition: int | None = None
    run: int = 0
    whole: bool = False
    facts: dict[str, int] = field(default_factory=dict)
    of_members: dict[str, dict[str, int]] = field(default_factory=lambda: {MEMBER: {}, TARGET: {}, CURRENT: {}})
    operation: WriteGroup | None = None
    told: list[str] = field(default_factory=list)
    connect: ConnectFacts | None = None
    newest_ms: int = -1
    leader_epoch: int = -1

    def knows(self, fact: str) -> bool:
        """Whether the group's state is certain about this fact."""
        at = self.facts.get(fact)
        return self.whole if at is None else at >= self.run

    def knows_member(self, kind: str, member_id: str) -> bool:
        """Whether the group's state is certain about this fact of a member."""
        at = self.of_members[kind].get(member_id)
        # Without a record of it, only a whole log tells that there is none.
        return self.whole if at is None else at >= self.run

    def note(self, fact: str, at: LogPosition) -> None:
        """Take in that a record at this position states the fact."""
        self.facts[fact] = at.offset

    def note_member(self, kind: str, member_id: str, at: LogPosition) -> None:
        """Take in that a record at this position states this fact of a member."""
        self.of_members[kind][member_id] = at.offset

    def doubt(self, fact: str) -> None:
        """Treat the fact as unknown until a record states it again: it may belong to a former life of the group."""
        self.facts[fact] = DOUBTED

    def forget_member(self, member_id: str) -> None:
        """Remove the facts of a member that is no longer in the group."""
        for known in self.of_members.values():
            known.pop(member_id, None)

    def end_life(self, at: LogPosition, *, gone: bool) -> None:
        """Take in that the group ended. Unless ``gone``, it ended as another type than the log showed before: the
        records of its conversion are missing, so nothing about it is known.
        """
        self.facts.clear()
        for known in self.of_members.values():
            known.clear()
        self.whole = gone
        self.run = at.offset

    def interrupt(self, at: LogPosition) -> None:
        """Take in that records may be missing before this one."""
        self.run = at.offset
        self.whole = False
        self.operation = None
