"""The audit of every target in a group's log: feed it the records in log order, and it returns verdicts as rows."""

from collections.abc import Mapping
from typing import Any

from coordinator_core.assignors.coordinator_view import StreamsView, SubscriptionView
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.audit_state import TargetAuditState
from coordinator_core.audit.targets.classic_connect import ConnectAudit, ConnectTargetState
from coordinator_core.audit.targets.classic_groups import ClassicAudit, generation_row
from coordinator_core.audit.targets.connect_groups import WorkerTargetAudit, begins_conversion, conversion_row
from coordinator_core.audit.targets.conversions import (
    downgrade_row,
    streams_downgrade_row,
    streams_upgrade_row,
    upgrade_row,
)
from coordinator_core.audit.targets.epoch_groups import EpochTargetAudit
from coordinator_core.audit.targets.operation import KIND_OF_TARGET_EPOCH, TargetOperation, cut
from coordinator_core.audit.targets.verdict import GroupGap, undecided
from coordinator_core.clients.evidence import leader_client
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE, CONSUMER_PROTOCOL_TYPE
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epoch_records import GroupEpochValue, TargetEpochRecord
from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.group import Group
from coordinator_core.groups.record_types import CONSUMER_RECORDS, EPOCH_GROUP_RECORDS, STREAMS_RECORDS, RecordTypes
from coordinator_core.history.coverage import Coverage
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.records import AnyRecord, ConnectRecordType, CoordinatorRecord, Family, RecordType

FIRST_EPOCHS = (1, 2)
"""The first epoch of a group: 1 if the record has no metadata hash (before Kafka 4.1), else 2."""
_NO_ROWS: list[TargetAuditRow] = []
_KIND_OF: Mapping[int, RecordTypes] = {
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: CONSUMER_RECORDS,
    **{record_type: kind for kind in EPOCH_GROUP_RECORDS for record_type in kind.all},
}


class TargetAuditor:
    """The audit of one group's targets.

    The caller changes the ``group`` and calls ``after`` once for each record, in offset order; ``feed`` does both, and
    skips offset commits. A later run continues with the ``group`` and ``memory`` of an earlier one: together they
    return the rows of a single pass.
    """

    def __init__(
        self,
        group: Group,
        memory: TargetAuditState | None = None,
        topics: TopicHistory | None = None,
        settings: AuditSettings | None = None,
        coverage: Coverage | None = None,
    ) -> None:
        """Begin with ``Group(group_id)``, or go on. Without ``coverage`` it is unknown what the log lacks."""
        self.group = group
        self.memory = memory or TargetAuditState()
        self.topics = topics
        self.settings = settings or AuditSettings()
        self.coverage = coverage

    def feed(self, record: AnyRecord, leader_epoch: int | None = None) -> list[TargetAuditRow]:
        """Change the group by a record; return the verdicts that it completes, as ``after`` does."""
        if record.type <= RecordType.OFFSET_COMMIT:
            return _NO_ROWS
        self.group.apply(record)
        return self.after(record, leader_epoch)

    def after(self, record: AnyRecord, leader_epoch: int | None) -> list[TargetAuditRow]:
        """Return the verdicts that a record completes after it has changed the group; raises nothing.

        ``leader_epoch`` is that of its batch, None if unknown.
        """
        if self.group.family is Family.CONNECT:
            return self._after_worker_record(record, leader_epoch)
        memory = self.memory
        operation = (record.at.timestamp_ms, record.batch)
        # Records wait until their operation is over: which part each has shows only at its end, the target's epoch.
        if operation != memory.operation:
            self._settle(len(memory.pending))
            memory.operation = operation
            memory.note_leader(leader_epoch, record.at.offset)
        rows = _NO_ROWS
        if record.type == RecordType.GROUP_METADATA:
            rows = self._audit_generation(record)
        else:
            kind = KIND_OF_TARGET_EPOCH.get(record.type)
            if kind is not None and record.value is not None:
                rows = self._audit(kind, record)
            self._note_birth(record)
        memory.pending.append(record)
        return rows

    def _audit(self, kind: RecordTypes, end: TargetEpochRecord) -> list[TargetAuditRow]:
        memory = self.memory
        operation = cut(kind, end, memory.pending)
        first = memory.pending[operation.start] if operation.start < len(memory.pending) else end
        # Asked before the operation is settled: what a conversion copies lies before the end of the classic group.
        gap = self._gap(end) if operation.copied else None
        # What precedes the operation in its batch had changed the group before its assignor ran.
        self._settle(operation.start)
        state = self.group.state
        assert isinstance(state, EpochGroup)
        if operation.copied and isinstance(state, ConsumerGroup):
            static = {member_id: each.instance_id for member_id, each in state.members.items() if each.instance_id}
            before, slack_ms = memory.classic.before, self.settings.clock_slack_ms
            return [upgrade_row(first, operation, before, static, self.topics, slack_ms, gap)]
        if operation.copied:
            return [streams_upgrade_row(first, operation, memory.classic.before, gap)]
        # What seemed the first epoch was the second one of a converted group, whose members were there before.
        if memory.born is not None and memory.born >= first.at.offset and _names_strangers(operation, state):
            memory.born = None
        gap = self._gap(end)
        view = memory.view_of(kind, self.settings.jdk)
        is_followed = gap is None or not gap.is_after(memory.fitted)
        audit = EpochTargetAudit(
            view, state, operation, first.at, self.topics, self.settings, gap, is_followed=is_followed
        )
        row = audit.row()
        if row.verdict is Verdict.IDENTICAL:
            memory.fitted = end.at.offset
            if audit.attempt is not None and audit.attempt.view is not view.view:
                # It had the members in another order than the group's view, and this order is now proven.
                view.adopt(audit.attempt.view, audit.attempt.fitted)
        return [row]

    def _audit_generation(self, record: GroupMetadataRecord) -> list[TargetAuditRow]:
        memory = self.memory
        value = record.value
        if value is None:
            memory.classic.end(record.at.offset)
            memory.connect = ConnectTargetState()
            return _NO_ROWS
        members, protocol_type = value["members"], value["protocolType"]
        rows = _NO_ROWS
        gap = self._gap(record)
        ends = (CONSUMER_RECORDS.epoch, STREAMS_RECORDS.epoch)
        # A conversion is one operation with one generation: behind another, one of the same time has begun (in dumps).
        kinds = [old.type for old in memory.pending if old.value is None or old.type == RecordType.GROUP_METADATA]
        ended = any(kind in ends for kind in kinds) and RecordType.GROUP_METADATA not in kinds
        if not members:
            pass
        elif ended and memory.view is not None and isinstance(memory.view.view, SubscriptionView):
            view, slack_ms = memory.view.view, self.settings.clock_slack_ms
            rows = [downgrade_row(record, view, memory.pending, self.topics, slack_ms, gap)]
        elif ended and memory.view is not None and isinstance(memory.view.view, StreamsView):
            rows = [streams_downgrade_row(record, memory.view.view, memory.pending, gap)]
        elif protocol_type == CONNECT_PROTOCOL_TYPE:
            is_followed = gap is None or not gap.is_after(memory.classic.seen)
            rows = [ConnectAudit(memory.connect, record, self.settings, is_followed=is_followed).row()]
        elif protocol_type == CONSUMER_PROTOCOL_TYPE:
            rows = [ClassicAudit(memory.classic, record, self.topics, self.settings, gap).row()]
        else:
            missing = f"the assignor of protocol type {protocol_type!r}: consumer and connect are recomputed"
            rows = [generation_row(record, undecided(missing), basis=Basis.LEADER)]
        # After the verdict, which compares this generation with the one before.
        memory.classic.keep(record.at.offset, value)
        if not rows:
            return rows
        led = leader_client(value)
        return [row._replace(client=led.name, client_certainty=led.certainty.value) for row in rows]

    def _after_worker_record(self, record: AnyRecord, leader_epoch: int | None) -> list[TargetAuditRow]:
        """A record of ``__worker_offsets``: the target of all workers is one record."""
        memory, group = self.memory, self.group.state
        assert group is None or isinstance(group, ConnectGroup)
        workers, rows = memory.workers, _NO_ROWS
        if group is not None and record.type == ConnectRecordType.TARGET_ASSIGNMENT and record.value is not None:
            conversion = begins_conversion(group, record)
            if conversion is None:
                rows = [WorkerTargetAudit(workers, group, record, self.settings, self._gap(record)).row()]
            else:
                workers.conversion = conversion
                workers.forget_inputs(conversion.epoch)
        # After the verdict: the target is judged by what was known when it was computed.
        workers.follow(group, record, leader_epoch, self.settings)
        if workers.conversion is not None and group is not None:
            row = conversion_row(workers.conversion, group, record.group_id, self._gap(record))
            if row is not None:
                workers.conversion = None
                rows = [*rows, row]
        if group is None:
            memory.born = record.at.offset
        return rows

    def _gap(self, record: CoordinatorRecord) -> GroupGap | None:
        """Return the part of the group's past before this record that was not seen; None: all was seen."""
        born, at = self.memory.born or 0, record.at
        if self.coverage is None:
            return GroupGap("which offsets the log holds", None)
        if self.coverage.unbroken(at.partition, born, at.offset):
            return None
        cause = self.coverage.cause_of_hole(at.partition, born, at.offset)
        cause = cause or f"records of the group between offsets {born} and {at.offset}: the log was compacted or cut"
        return GroupGap(cause, self.coverage.unbroken_from(at.partition, at.offset))

    def _note_birth(self, record: AnyRecord) -> None:
        """The offset from which everything of the group is seen, if nothing is missing after it.

        The second epoch of a converted group has the same number as the first one of others: a member went before, or
        the classic group was seen.
        """
        kind = _KIND_OF.get(record.type)
        if kind is None or record.type != kind.epoch or record.value is None:
            return
        memory = self.memory
        value: GroupEpochValue = record.value
        # A bool is the index: records with a metadata hash begin at the second of these epochs.
        begins = value["epoch"] == FIRST_EPOCHS["metadataHash" in value]
        members = [earlier for earlier in memory.pending if earlier.type == kind.member]
        first = members[0] if all(earlier.value is not None for earlier in members) and members else None
        is_converted = any(earlier.type == RecordType.GROUP_METADATA for earlier in memory.pending)
        begins = begins and memory.classic.generation is None and not is_converted
        if begins and first is not None and memory.born is None and memory.view is None:
            memory.born = first.at.offset

    def _settle(self, count: int) -> None:
        """Take in the first pending records: no target that comes can be of an operation with them.

        Only then does a group that ended count as seen from there: what a conversion copies was written before. A
        classic group has no targets, even if the end of the group with epochs before it is lost.
        """
        memory = self.memory
        for record in memory.pending[:count]:
            if record.type == RecordType.GROUP_METADATA:
                memory.view = None
                if record.value is None:
                    memory.born = record.at.offset
            kind = _KIND_OF.get(record.type)
            if kind is None:
                continue
            if record.type == kind.epoch and record.value is None:
                memory.born, memory.view = record.at.offset, None
                continue
            memory.view_of(kind, self.settings.jdk).apply(record)
        del memory.pending[:count]


def _names_strangers(operation: TargetOperation, state: EpochGroup[Any, Any]) -> bool:
    """Whether members have targets that no record has shown: they were there before what seems the first epoch."""
    ids = (target.key["memberId"] for target in operation.targets)
    return not all(member_id in state.members and state.members[member_id].has_metadata for member_id in ids)
