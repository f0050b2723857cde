"""A simulated cluster in memory, and what the rest of the software says of its log."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.audit.folds.commits import CommitFold
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.groups.offsets import GroupOffsets, OffsetLog
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state_log import ShareStateLog
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import CoordinatorRecord, Family, LogPosition, RecordType
from coordinator_core.simulator.group_course import share_states, simulation
from coordinator_core.simulator.log import Piece, metadata_log
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.shard import Shard
from coordinator_core.simulator.topic_plan import plan_topics
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.record_codec import decode_record, encode_key

IN_ANY_TOPIC = frozenset(("share_state_initialized", "connectors_changed"))
"""Causes of which history names what it saw of them: topics first initialised, connectors that moved."""
UNKNOWN = ("unknown", None, ())
DEPARTURES = {"member_left_or_expired", "static_member_left"}
CAME_AND_WENT = ("member_left_or_expired", None, ())
"""What the log shows of members that no generation has: one without members follows another."""


@dataclass
class World:
    """The logs of a scenario, decoded, the truth about them, and the coordinators' memories at the end."""

    scenario: Scenario
    seed: int
    topics: TopicHistory
    family: Family = Family.GROUP
    rows: dict[int, list[LogRecord]] = field(default_factory=dict)
    logs: dict[int, list[CoordinatorRecord]] = field(default_factory=dict)
    truth: list[dict[str, Any]] = field(default_factory=list)
    shards: list[Shard] = field(default_factory=list)

    @classmethod
    def of(cls, seed: int = 1, family: Family = Family.GROUP, **scenario: Any) -> "World":
        model = Scenario.model_validate(scenario)
        plan = plan_topics(model, seed)
        world = cls(model, seed, fold_metadata_log(decoded(rows_of(metadata_log(plan)), 0, Family.METADATA)), family)
        for partition in range(model.cluster.partitions):
            shard = simulation(model, plan, seed, partition, family)
            world.rows[partition] = list(rows_of(shard.run()))
            world.logs[partition] = list(decoded(world.rows[partition], partition, family))
            world.truth += [*shard.take_truth(), *shard.last_truth()]
            world.shards.append(shard)
        return world

    def group(self, group_id: str) -> Group:
        """A group of the log, of which nothing has been read."""
        return Group(group_id, from_start=True, family=self.family)

    def share_state(self) -> tuple[ShareStateLog, list[dict[str, Any]]]:
        """What the share state log says, and what is true of it."""
        log, truth = ShareStateLog(), []
        plan = plan_topics(self.scenario, self.seed)
        for partition in range(self.scenario.cluster.share_partitions):
            states = share_states(self.scenario, plan, self.seed, partition)
            epochs = []
            for row in rows_of(states.run()):
                (record,) = decoded([row], partition, Family.SHARE)
                which = f"{record.key['groupId']}:{record.key['topicId']}:{record.key['partition']}"
                assert log_partition_of(which, self.scenario.cluster.share_partitions) == partition
                epochs.append(row.batch.leader_epoch)
                log.apply(record)
            assert epochs == sorted(epochs)
            truth += states.last_truth()
        return log, truth

    def coverage(self, partition: int) -> Coverage:
        """What there is of a log partition: all of it."""
        return Coverage({partition: [(0, len(self.rows[partition]) - 1)]})

    def rebalances(self) -> dict[LogPosition, RebalanceRow]:
        """What history finds."""
        found: list[RebalanceRow] = []
        for partition, records in self.logs.items():
            coverage = self.coverage(partition)
            folds: dict[str, GroupFold] = {}
            for record in records:
                fold = folds.get(record.group_id)
                if fold is None:
                    group = self.group(record.group_id)
                    fold = folds[record.group_id] = GroupFold(group, topics=self.topics, coverage=coverage)
                found += (row for row in fold.feed(record) if isinstance(row, RebalanceRow))
            for fold in folds.values():
                found += (row for row in fold.open_rows() if isinstance(row, RebalanceRow))
        return {row.at: row for row in found}

    def true_rebalances(self) -> dict[LogPosition, dict[str, Any]]:
        """What happened."""
        return {LogPosition(**row["at"]): row for row in self.truth if row["kind"] == "rebalance"}

    def commits(self, group_id: str) -> tuple[GroupOffsets, CommitFold]:
        """The offsets of a group, and what findings make of them."""
        log, found = OffsetLog(), CommitFold()
        for partition, rows in self.rows.items():
            for row in rows:
                if row.control is not None:
                    committed = row.control.name == "COMMIT"
                    log.end_transaction(row.batch.producer_id, committed=committed)
                    found.end_transaction(row.batch.producer_id, committed=committed)
                    continue
                (record,) = decoded([row], partition)
                if record.type == RecordType.OFFSET_COMMIT and record.group_id == group_id:
                    producer_id = row.batch.producer_id if row.batch.is_transactional else None
                    log.apply(record, producer_id)
                    found.feed(record, producer_id)
        return log.groups.get(group_id) or GroupOffsets(), found

    def verdicts(self, settings: AuditSettings | None = None) -> list[TargetAuditRow]:
        """What the audit says of the targets."""
        settings, found = settings or AuditSettings(profile=self.scenario.cluster.profile), []
        for partition, records in self.logs.items():
            coverage = self.coverage(partition)
            auditors: dict[str, TargetAuditor] = {}
            epochs = (row.batch.leader_epoch for row in self.rows[partition] if row.control is None)
            for record, leader_epoch in zip(records, epochs, strict=True):
                auditor = auditors.get(record.group_id)
                if auditor is None:
                    group = self.group(record.group_id)
                    auditor = auditors[record.group_id] = TargetAuditor(group, None, self.topics, settings, coverage)
                found += auditor.feed(record, leader_epoch)
        return found

    def violations(self) -> list[Violation]:
        """The broken rules."""
        found: list[Violation] = []
        for partition, records in self.logs.items():
            coverage = self.coverage(partition)
            folds: dict[str, RuleFold] = {}
            epochs = (row.batch.leader_epoch for row in self.rows[partition] if row.control is None)
            for record, leader_epoch in zip(records, epochs, strict=True):
                fold = folds.setdefault(record.group_id, RuleFold(self.group(record.group_id), coverage=coverage))
                found += fold.feed(record, leader_epoch)
            for fold in folds.values():
                found += fold.open_rows()
        return found


def rows_of(pieces: Iterator[Piece]) -> Iterator[LogRecord]:
    """The records of a simulated log as they lie there, with those of its control batches."""
    for piece in pieces:
        for row in read_rows(lambda at, size, data=piece.data: data[at : at + size], len(piece.data)):
            assert isinstance(row, LogRecord)
            yield row


def decoded(rows: Iterable[LogRecord], partition: int, family: Family = Family.GROUP) -> Iterator[CoordinatorRecord]:
    """The records of a simulated log, without those of control batches."""
    for row in rows:
        if row.control is None:
            found = decode_record(row.key, row.value, family)
            at = LogPosition(partition, row.offset, row.timestamp)
            yield CoordinatorRecord(at, found.type, found.key, found.value, found.value_version, row.batch.base_offset)


def replayed(records: list[CoordinatorRecord], family: Family = Family.GROUP) -> CoordinatorShard:
    """The state that the records of one partition lead to."""
    shard = CoordinatorShard(family=family)
    for record in records:
        shard.apply(record)
    return shard


def compacted(records: list[CoordinatorRecord], family: Family = Family.GROUP) -> list[CoordinatorRecord]:
    """What compaction leaves in the end: of every key the last record, unless that is a tombstone."""
    last = {encode_key(record.type, record.key, family): record for record in records}
    return sorted((record for record in last.values() if record.value is not None), key=lambda each: each.at.offset)


def told(row: RebalanceRow) -> tuple[Any, ...]:
    """What history says of a rebalance, in the form of ``happened``."""
    causes = {(cause.kind, cause.member_id, () if cause.kind in IN_ANY_TOPIC else cause.topics) for cause in row.causes}
    finished = row.finished and row.finished.timestamp_ms
    return row.group_id, row.group_type, row.from_epoch, row.to_epoch, causes, row.outcome, finished


def happened(row: dict[str, Any]) -> tuple[Any, ...]:
    """What is true of a rebalance."""
    causes = {
        (cause["kind"], cause.get("member_id"), () if cause["kind"] in IN_ANY_TOPIC else tuple(cause.get("topics", ())))
        for cause in row["causes"]
        if not cause.get("unseen")
    }
    if not causes:
        unseen = {cause["kind"] for cause in row["causes"]}
        causes = {CAME_AND_WENT if row["outcome"] == "emptied" and unseen & DEPARTURES else UNKNOWN}
    names = ("group_id", "group_type", "from_epoch", "to_epoch")
    return *(row[name] for name in names), causes, row["outcome"], row["finished_ms"]
