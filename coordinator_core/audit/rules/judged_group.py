"""One group while its log is judged: its state, how much of it is known, and the holders of each unit."""

from typing import Any

from coordinator_core.assignors.profiles import KIP_1071
from coordinator_core.audit.rules.holders import Holders
from coordinator_core.audit.rules.known_facts import UNKNOWN, Departure, KnownFacts, WriteGroup
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.snapshot_settings import LEVEL_OF_4_4
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.epochs import INITIAL_EPOCH, EpochGroup, EpochMember
from coordinator_core.groups.group import Group, GroupState
from coordinator_core.groups.rules import CURRENT, MEMBER, TARGET, Rule
from coordinator_core.groups.violations import Violation, Violations
from coordinator_core.history.held_units import EPOCH_KINDS, given_to, work_held
from coordinator_core.history.holdings import Held
from coordinator_core.records import LogPosition

STARTS_ANEW = frozenset((Rule.EPOCH_WENT_BACK, Rule.ASSIGNMENT_EPOCH_WENT_BACK, Rule.TYPE_CHANGED_WITHOUT_TOMBSTONE))
"""Rules that do not apply to an empty group that starts again from nothing: Kafka 4.3 drops one from memory,
without a record, when it refuses a JoinGroup.
"""
MEMBER_FACTS = frozenset((MEMBER, TARGET, CURRENT))


class JudgedGroup:
    """What the rules look at, and the violations that they found (``rows``).

    ``current`` and ``target`` follow from the group's state: a restart rebuilds them from it.
    """

    __slots__ = (CURRENT, "group", "plausible", "profile", "rows", "target", "topics", "facts")

    def __init__(self, group: Group, facts: KnownFacts, topics: TopicHistory | None, settings: AuditSettings) -> None:
        self.group = group
        self.topics = topics
        self.facts = facts
        self.plausible, self.profile = settings.plausible, settings.profile
        self.rows: list[Violation] = []
        self.current = Holders(_current(group))
        self.target = Holders(_target(group))

    @property
    def operation(self) -> WriteGroup:
        """Return the operation under way."""
        operation = self.facts.operation
        assert operation is not None, "a record is judged within an operation"
        return operation

    def may_be_after_4_4(self, at: LogPosition) -> bool:
        """Whether a broker of a release after Kafka 4.4 may have written a record of a group with epochs: they do other
        things, of which only the levels that brokers support tell, that targets have times (since 4.3), and where no
        level is known, the setting that names the brokers' release.
        """
        state = self.group.state
        levels = None if self.topics is None else self.topics.broker_levels(at.timestamp_ms)
        newest = None if levels is None else levels.newest
        may_be_newer = self.profile in (None, KIP_1071) if newest is None else newest > LEVEL_OF_4_4
        return isinstance(state, EpochGroup) and bool(state.assignment_timestamp) and may_be_newer

    def broken(self, rule: Rule, at: LogPosition, member_id: str | None, detail: str) -> None:
        """Add the violation of a rule by the record at this position."""
        self.rows.append(Violation(rule, at, self.group.group_id, member_id, detail))

    def keep(self, violations: Violations) -> None:
        """Add those violations seen by replay that no gap in the log explains."""
        self.rows += [seen for seen in violations if self._certain(seen)]

    def _certain(self, seen: Violation) -> bool:
        facts, member_id = self.facts, seen.member_id or ""
        if seen.rule in STARTS_ANEW and self.operation.empty and _is_first(self.group.state, seen.rule):
            return False
        fact = seen.rule.compared_with
        if fact is None:
            return True
        return facts.knows_member(fact, member_id) if fact in MEMBER_FACTS else facts.knows(fact)

    def departing(self, member_id: str, kind: str, at: LogPosition, member: EpochMember | None) -> None:
        """Take in one of the three tombstones of a member; ``member`` is None if the group has no such member."""
        departed = self.operation.departed
        known = departed.get(member_id)
        if known is None:
            is_classic, knows = member is not None and member.speaks_classic, self.facts.knows_member(MEMBER, member_id)
            is_told = member is not None and member.has_metadata and knows
            instance_id = member.instance_id if member is not None and is_told else UNKNOWN
            departed[member_id] = Departure(at, (kind,), instance_id, is_classic)
        else:
            departed[member_id] = known._replace(kinds=(*known.kinds, kind))

    def arrived(self, epoch: int, at: LogPosition) -> None:
        """Take in that a group continues as another type with this epoch or generation, if a conversion is under
        way.
        """
        operation = self.operation
        if operation.crossed is not None and operation.crossed_epoch is not None and epoch < operation.crossed_epoch:
            detail = f"it continues at {epoch}; it was at {operation.crossed_epoch} before"
            self.broken(Rule.CONVERSION_EPOCH_WRONG, at, None, detail)
        operation.converted = operation.converted or operation.crossed is not None
        operation.crossed = operation.crossed_epoch = None

    def member(self, member_id: str) -> Any:
        """Return the member of a group with epochs; None if the group does not have it."""
        state = self.group.state
        return state.members.get(member_id) if isinstance(state, EpochGroup) else None


def _is_first(state: GroupState | None, rule: Rule) -> bool:
    """Whether the group is where a new one begins: generation 0, or the first epochs.

    What the log has of the one before, such as the epoch of its target, stands until it is written over.
    """
    if isinstance(state, ClassicGroup):
        return state.generation == 0
    if not isinstance(state, EpochGroup):
        return False
    return begins_anew(state.assignment_epoch if rule is Rule.ASSIGNMENT_EPOCH_WENT_BACK else state.group_epoch)


def begins_anew(epoch: int | None) -> bool:
    """Whether a new group, or its first target, may have this epoch."""
    return (epoch or 0) <= INITIAL_EPOCH + 1


def _current(group: Group) -> dict[str, Held]:
    state = group.state
    for kind in EPOCH_KINDS:
        if isinstance(state, kind.state) and kind.exclusive:
            return {
                member_id: joined(kind.assigned(member), kind.revoking(member))
                for member_id, member in state.members.items()
            }
    if isinstance(state, ConnectGroup):
        return {i: work_held(member.current.work) for i, member in state.members.items() if member.current is not None}
    if isinstance(state, ClassicGroup):
        return {i: classic_held(state, member) for i, member in state.members.items()}
    return {}


def _target(group: Group) -> dict[str, Held]:
    state = group.state
    for kind in EPOCH_KINDS:
        if isinstance(state, kind.state) and kind.exclusive:
            return {member_id: kind.wanted(target) for member_id, target in state.targets.items()}
    return {}


def classic_held(group: ClassicGroup, member: ClassicMember) -> Held:
    """Return what a member of a classic group has, as far as its assignment can be read."""
    return given_to(group, member).held


def joined(left: Held, right: Held) -> Held:
    """Return the units of both."""
    if not right:
        return left
    return {key: left.get(key, frozenset()) | right.get(key, frozenset()) for key in (*left, *right)}
