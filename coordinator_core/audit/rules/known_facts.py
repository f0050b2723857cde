"""What judging the rules needs beyond the group itself: what of the log was seen, and the operation under way.

A rule compares a record with earlier ones. That says something only if no record is missing in between: where the log
has a gap, what was known before it may have changed. So every fact is known from the offset of the record that wrote
it, and only as long as the log goes on unbroken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.records import LogPosition

EPOCH = "epoch"
ASSIGNMENT_EPOCH = "assignment epoch"
TOPOLOGY = "topology"
SHARE_STATE = "share state"
WHOLE = "all that there is"
"""Known only if nothing is missing: no record ever says so."""
DOUBTED = -1
"""In place of the offset of a record that wrote a fact: none that is known to hold any more."""
MEMBER, TARGET, CURRENT = "member", "target", "current"
"""What a group knows of one member: its metadata, its target, its current assignment."""


UNKNOWN = ""
"""The instance id of a member whose metadata was not seen; no real one is empty."""


class Departure(NamedTuple):
    """A member whose tombstones an operation writes: which of the three, the first of them, its instance id."""

    at: LogPosition
    kinds: tuple[str, ...]
    instance_id: str | None


class HeldUnit(NamedTuple):
    """A partition or task of a member."""

    role: str
    what: str
    partition: int
    member_id: str


@dataclass(slots=True)
class WriteGroup:
    """What the coordinator wrote at once: the records of one time and batch. It may be several operations in a row.

    ``empty``: the group had no members before. ``departed`` has the tombstones by member; ``leaving`` those members for
    which no epoch was opened yet, ``joining`` those that came, likewise; ``unassigned`` those that came and have no
    current assignment yet; ``replaced`` static members that came by whom they replace, ``given_up`` what members had
    whose current assignment ended. ``targets`` are targets of members that no target assignment metadata followed yet,
    ``clashes`` the units among them that another member's target has too. ``crossed`` is the end of a group that had
    members, if it goes on as no other type yet; ``crossed_epoch`` the generation,
    or assignment epoch (``reached``), that it had.
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
    given_up: list[HeldUnit] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    empty: bool = False


@dataclass(slots=True)
class KnownFacts:
    """How far a group's log is known.

    ``last`` is the offset of the group's last record that is no offset commit, and ``partition`` its partition; ``run``
    is where the stretch without a gap begins that holds it. ``whole`` says that what was not seen is not there: nothing
    is missing since the start of the log, or since the end of the group's previous life. ``facts`` are the offsets of
    the records that wrote what is known; ``of_members`` likewise, by what it is and by member. ``told`` are the
    partitions of whose commits since ``last`` a rule spoke.
    """

    last: int | None = None
    partition: int | None = None
    run: int = 0
    whole: bool = False
    facts: dict[str, int] = field(default_factory=dict)
    of_members: dict[str, dict[str, int]] = field(default_factory=lambda: {MEMBER: {}, TARGET: {}, CURRENT: {}})
    operation: WriteGroup | None = None
    told: list[str] = field(default_factory=list)

    def knows(self, fact: str) -> bool:
        """Whether the state holds the truth about this."""
        at = self.facts.get(fact)
        return self.whole if at is None else at >= self.run

    def knows_member(self, kind: str, member_id: str) -> bool:
        """Whether the state holds the truth about this part of a member."""
        at = self.of_members[kind].get(member_id)
        return self.whole if at is None else at >= self.run

    def note(self, fact: str, at: LogPosition) -> None:
        """A record says so."""
        self.facts[fact] = at.offset

    def note_member(self, kind: str, member_id: str, at: LogPosition) -> None:
        """A record says so of a member."""
        self.of_members[kind][member_id] = at.offset

    def doubt(self, fact: str) -> None:
        """What is known of this may be of a former life of the group, until a record says it again."""
        self.facts[fact] = DOUBTED

    def forget_member(self, member_id: str) -> None:
        """A member is gone: what is absent is known as far as the group is whole."""
        for known in self.of_members.values():
            known.pop(member_id, None)

    def end_life(self, at: LogPosition, *, gone: bool) -> None:
        """The group ended: nothing of it is left. If not ``gone``, it ended as another type than the log had of it:
        how it came to be that is missing, and nothing is known."""
        self.facts.clear()
        for known in self.of_members.values():
            known.clear()
        self.whole = gone
        self.run = at.offset

    def interrupt(self, at: LogPosition) -> None:
        """Records may be missing before this one."""
        self.run = at.offset
        self.whole = False
        self.operation = None
