"""All rules over the log of one group, record by record. The result is the same however the log is split into runs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from coordinator_core.audit.rules import assignment_inputs as topics
from coordinator_core.audit.rules import classic, connect, epoch_order, members, operations
from coordinator_core.audit.rules.committers import on_commit
from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import KnownFacts
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation, Violations
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.held_units import CONSUMER_KIND, SHARE_KIND, STREAMS_KIND, EpochKind
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord
from coordinator_core.records import AnyRecord, ConnectRecordType, CoordinatorRecord, Family, RecordType


class RuleHandler(NamedTuple):
    """The rules of one type of record: ``before`` takes what they need from the group, ``after`` judges the record.

    ``after`` is called once the record has changed the group. ``before`` is None if the rules need nothing from the
    group.
    """

    after: Callable[[JudgedGroup, AnyRecord, Any], None]
    before: Callable[[JudgedGroup, AnyRecord], Any] | None = None


def _handlers(kind: EpochKind) -> dict[int, RuleHandler]:
    """The rules of the records that all groups with epochs have."""
    epochs_before = partial(epoch_order.epochs_before, kind)
    return {
        kind.types.epoch: RuleHandler(partial(epoch_order.on_epoch, kind), epochs_before),
        kind.types.target: RuleHandler(partial(epoch_order.on_target, kind)),
        kind.types.target_epoch: RuleHandler(partial(epoch_order.on_target_epoch, kind), epochs_before),
        kind.types.member: RuleHandler(partial(members.on_member, kind), members.member_before),
        kind.types.current: RuleHandler(partial(members.on_current, kind), partial(members.current_before, kind)),
    }


_HANDLERS: Mapping[Family, Mapping[int, RuleHandler]] = {
    Family.GROUP: {
        RecordType.GROUP_METADATA: RuleHandler(classic.on_generation, classic.generation_before),
        **_handlers(CONSUMER_KIND),
        **_handlers(SHARE_KIND),
        **_handlers(STREAMS_KIND),
        # The handlers below replace those of ``_handlers`` for the same types: they call them, and judge more.
        RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: RuleHandler(
            topics.on_share_target, topics.share_target_before
        ),
        RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: RuleHandler(topics.on_share_state, topics.share_state_before),
        RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: RuleHandler(topics.on_regex, topics.regex_before),
        RecordType.STREAMS_GROUP_METADATA: RuleHandler(
            topics.on_streams_epoch, partial(epoch_order.epochs_before, STREAMS_KIND)
        ),
        RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: RuleHandler(topics.on_streams_target),
        RecordType.CONSUMER_GROUP_PARTITION_METADATA: RuleHandler(topics.on_partition_metadata),
        RecordType.STREAMS_GROUP_PARTITION_METADATA: RuleHandler(topics.on_partition_metadata),
        RecordType.STREAMS_GROUP_TOPOLOGY: RuleHandler(topics.on_topology, topics.topology_before),
    },
    Family.CONNECT: dict.fromkeys(ConnectRecordType, RuleHandler(connect.on_record, connect.before_record)),
}
"""By log, the rules of each type of record; for other types only the rules of replay itself apply."""


class RuleFold:
    """The rules over the records of one group.

    The caller changes the ``group`` and calls ``before`` and ``after`` around each change, once for each record, in
    offset order; ``feed`` does all three. Offset commits change nothing. A returned violation is final. The records
    that an operation lacks are known when the next operation begins; for the last one ``open_rows`` returns what it
    lacks so far.
    """

    __slots__ = ("_coverage", "_handlers", "_judged")

    def __init__(
        self,
        group: Group,
        facts: KnownFacts | None = None,
        coverage: Coverage | None = None,
        topics: TopicHistory | None = None,
        settings: AuditSettings = AuditSettings(),  # noqa: B008 (it is frozen)
    ) -> None:
        """Begin with a new ``group``, or go on with the ``group`` and ``facts`` that an earlier run left.

        ``coverage`` says which offsets are there. Without it nothing is known of what lies between two records, and
        only what a record says by itself can break a rule. Without ``topics`` the rules that need them do not apply.
        ``settings`` have the largest counts that are believed, and may name the release of the brokers.
        """
        self._handlers = _HANDLERS[group.family]
        self._judged = JudgedGroup(group, facts or KnownFacts(), topics, settings)
        self._coverage = coverage

    @property
    def group(self) -> Group:
        """The group as of the last record."""
        return self._judged.group

    @property
    def facts(self) -> KnownFacts:
        """Return which facts the log has shown up to the last record."""
        return self._judged.facts

    def feed(self, record: AnyRecord, leader_epoch: int | None = None) -> list[Violation]:
        """Change the group by a record; return the rules that it breaks, as ``after`` does. Raises nothing."""
        if record.type <= RecordType.OFFSET_COMMIT:
            return self.on_commit(record)
        before = self.before(record)
        return self.after(record, before, self._judged.group.apply(record), leader_epoch)

    def before(self, record: AnyRecord) -> object:
        """Return what ``after`` needs to know about the group before the record."""
        # First: a gap before the record takes the operation away that it would end here, as not all of that may be
        # known.
        self._follow(record)
        operations.begin(self._judged, record)
        handler = self._handlers.get(record.type)
        return None if handler is None or handler.before is None else handler.before(self._judged, record)

    def after(
        self, record: AnyRecord, before: object, seen: Violations, leader_epoch: int | None = None
    ) -> list[Violation]:
        """Return the violations by a record, and by the operation before it; raises nothing.

        ``seen`` has the violations that replay saw when it changed the group. ``leader_epoch`` is that of the record's
        batch, None if it is not known.
        """
        operations.judge_batch(self._judged, record, leader_epoch)
        if self.group.family is Family.CONNECT:
            connect.follow(self._judged, record, leader_epoch)
        if seen:
            self._judged.keep(seen)
        handler = self._handlers.get(record.type)
        if handler is not None:
            handler.after(self._judged, record, before)
        return self._taken()

    def on_commit(self, record: OffsetCommitRecord) -> list[Violation]:
        """Return the rules that an offset commit breaks; raises nothing."""
        if self._is_next(record):
            on_commit(self._judged, record)
        return self._taken()

    def open_rows(self) -> list[Violation]:
        """Return the violations by the operation under way, if no more of its records follow."""
        facts, coverage = self._judged.facts, self._coverage
        operation = facts.operation
        if operation is None or coverage is None or facts.last is None:
            return []
        partition = operation.first.partition
        if not coverage.continues(partition, facts.last):
            return []
        if operation.batch < 0 and not coverage.unbroken(partition, facts.last, facts.last + 1):
            return []  # a dump without batches may end in the middle of one
        operations.end(self._judged, operation)
        return [row._replace(is_open=True) for row in self._taken()]

    def _taken(self) -> list[Violation]:
        rows = self._judged.rows
        if rows:
            self._judged.rows = []
        return rows

    def _is_next(self, record: CoordinatorRecord) -> bool:
        """Whether no record of the group can be missing before this commit."""
        last, at, coverage = self._judged.facts.last, record.at, self._coverage
        return last is not None and coverage is not None and coverage.unbroken(at.partition, last, at.offset)

    def _follow(self, record: CoordinatorRecord) -> None:
        """Keep up how far back the log is whole."""
        judged, at, coverage = self._judged, record.at, self._coverage
        facts = judged.facts
        if facts.last is None or at.partition != facts.partition:
            operations.begin_partition(judged, at)
        if facts.last is None:
            if coverage is not None and coverage.unbroken(at.partition, 0, at.offset):
                facts.whole = True
            else:
                facts.interrupt(at)
        elif at.partition != facts.partition or at.offset <= facts.last:
            detail = f"after offset {facts.last} of partition {facts.partition}"
            judged.broken(Rule.GROUP_OF_TWO_LOGS, at, None, detail)
            facts.interrupt(at)
        elif coverage is None or not coverage.unbroken(at.partition, facts.last, at.offset):
            facts.interrupt(at)
        facts.partition, facts.last = at.partition, at.offset
        if facts.told:
            facts.told = []
