"""The audit of targets straight from log files, in this process: the same fold that the replay job runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator_core.audit.rounds import Round, rounds
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets import TargetAuditor
from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Family
from coordinator_core.wire.batch_format import Kind
from jobs.log_reader import LogReader, Warn
from jobs.sources.files import LogPart


def audit_targets(
    logs: Iterable[LogPart], warn: Warn, settings: AuditSettings, group_id: str | None = None
) -> Iterator[TargetAuditRow]:
    """The verdicts on one group or every group, in the order of the logs; what cannot be read is told to ``warn``."""
    readers, topics = _opened(logs, warn)
    for reader in readers:
        yield from _partition(reader, topics, settings, group_id)


def group_rounds(logs: Iterable[LogPart], warn: Warn, settings: AuditSettings, group_id: str) -> list[Round]:
    """The rounds of one group; what cannot be read is told to ``warn``."""
    readers, topics = _opened(logs, warn)
    found: list[Round] = []
    for reader in readers:
        records = (record for record in reader.records() if record.group_id == group_id)
        found += rounds(records, Group(group_id, from_start=reader.from_start), topics, settings)
    return found


def _opened(logs: Iterable[LogPart], warn: Warn) -> tuple[list[LogReader], TopicHistory | None]:
    """Readers of the partitions of the group log, and the topics that the metadata log tells of."""
    partitions: dict[Family, dict[int, list[LogPart]]] = {family: {} for family in Family}
    for file in logs:
        partitions[file.family].setdefault(file.partition, []).append(file)
    topics = None
    for files in partitions[Family.METADATA].values():
        topics = fold_metadata_log(LogReader(files, warn).records())
    return [LogReader(files, warn) for files in partitions[Family.GROUP].values()], topics


def _partition(
    reader: LogReader, topics: TopicHistory | None, settings: AuditSettings, wanted: str | None
) -> Iterator[TargetAuditRow]:
    coverage = Coverage({})
    auditors: dict[str, TargetAuditor] = {}
    for row in reader.rows():
        coverage.note(reader.partition, row.offset)
        record = reader.decoded(row) if row.kind == Kind.RECORD.value else None
        if record is None or (wanted is not None and record.group_id != wanted):
            continue
        auditor = auditors.get(record.group_id)
        if auditor is None:
            group = Group(record.group_id, from_start=reader.from_start)
            auditor = auditors[record.group_id] = TargetAuditor(group, None, topics, settings, coverage)
        yield from auditor.feed(record, row.leader_epoch)
