"""The groups of a log that is still written: the folds of a night, fed as records come, and what happens in them.

The rows are those that a night makes of the same log. A rebalance is told when its first row appears and when its row
is final; a finding when it was not there at the last look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.group_audit import AuditedRow, GroupAudit
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.metadata_log import MetadataLog
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import AnyRecord, Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.sources.bounded_warnings import Warn
from jobs.sources.log_reader import LogRow
from jobs.watch.new_rows import LogPlace, NewRows

MOST_ROWS: Final = 1_000
"""Final rows that are kept of a group, the newest: memory is bounded by the number of groups. Findings rest on them."""


class RebalanceBegan(NamedTuple):
    """A rebalance began; ``row`` has its causes. A classic group is logged when a generation is complete."""

    row: RebalanceRow
    history: GroupHistory


class RebalanceEnded(NamedTuple):
    """A rebalance is over, with the verdict on its target if it was judged."""

    row: RebalanceRow
    verdict: TargetAuditRow | None
    history: GroupHistory


class FindingArose(NamedTuple):
    """A finding that was not there before."""

    row: FindingRow


WatchEvent = RebalanceBegan | RebalanceEnded | FindingArose


@dataclass(slots=True)
class _Followed:
    """One group: its folds, its newest final rows, and what was told of it.

    ``began`` and ``ended`` are the offsets of the last rebalances that were told: those of a group follow each other.
    """

    audit: GroupAudit
    place: LogPlace
    rows: deque[AuditedRow] = field(default_factory=lambda: deque(maxlen=MOST_ROWS))
    began: int = -1
    ended: int = -1
    found: set[tuple[str, str | None]] = field(default_factory=set)


class FollowedGroups:
    """All groups of the followed logs. Feed new rows with ``feed``; ``events`` says what happened since it was asked.

    ``topics`` are those of snapshots of the cluster; rows of the metadata log take their place. ``told_before`` has, by
    log partition, the first offset that events are told of: what earlier records prove was told, or is history. No
    event is told before ``is_live``, while what is there is read. ``ends`` has the offset behind the last row.
    """

    def __init__(self, settings: AuditSettings, limits: Thresholds, topics: TopicHistory | None, warn: Warn) -> None:
        self.is_live = False
        self.told_before: dict[LogPlace, int] = {}
        self.ends: dict[LogPlace, int] = {}
        self._settings, self._limits, self._warn = settings, limits, warn
        self._topics = topics
        self._metadata: MetadataLog | None = None
        self._coverage: dict[Family, Coverage] = {family: Coverage({}) for family in Family}
        self._decoders = {family: RecordDecoder(family) for family in Family}
        self._last_ms: dict[LogPlace, int] = {}
        self._groups: dict[tuple[Family, str], _Followed] = {}
        self._touched: dict[tuple[Family, str], None] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def told(self) -> dict[LogPlace, int]:
        """Return by log partition the offset from which on nothing was told: also where nothing new was read yet."""
        return {
            place: max(self.ends.get(place, 0), self.told_before.get(place, 0))
            for place in {*self.ends, *self.told_before}
        }

    def feed(self, new: NewRows) -> None:
        """Take in rows of a log partition, in the order of their offsets."""
        place = new.place
        if place.family is Family.METADATA:
            self._feed_metadata(new)
        elif place.family in (Family.GROUP, Family.CONNECT):
            coverage = self._coverage[place.family]
            for row in new.rows:
                coverage.note(place.partition, row.offset)
                if row.kind == Kind.RECORD.value:
                    self._feed_record(new, row, coverage)
        if new.rows:
            self.ends[place] = new.rows[-1].offset + 1
            self._last_ms[place] = max(self._last_ms.get(place, 0), *(row.timestamp for row in new.rows))

    def events(self) -> Iterator[WatchEvent]:
        """Yield what happened in the groups that had new records since the last call, group by group."""
        touched, self._touched = self._touched, {}
        for key in touched:
            yield from self._events_of(key[1], self._groups[key])

    def _feed_metadata(self, new: NewRows) -> None:
        if self._metadata is None:
            self._metadata = MetadataLog()
            self._topics = self._metadata.history
        for row in new.rows:
            record = self._decoded(new.place, row) if row.kind == Kind.RECORD.value else None
            if record is not None:
                self._metadata.apply(record)
        self._metadata.finish()

    def _feed_record(self, new: NewRows, row: LogRow, coverage: Coverage) -> None:
        record = self._decoded(new.place, row)
        if record is None:
            return
        key = new.place.family, record.group_id
        followed = self._groups.get(key)
        if followed is None:
            audit = GroupAudit.begin(
                record.group_id, key[0], self._topics, coverage, self._settings, from_start=new.from_start
            )
            followed = self._groups[key] = _Followed(audit, new.place)
        followed.rows.extend(followed.audit.feed(record, row.leader_epoch))
        if record.type > RecordType.OFFSET_COMMIT:  # commits begin and end no rebalance
            self._touched[key] = None

    def _decoded(self, place: LogPlace, row: LogRow) -> AnyRecord | None:
        at = LogPosition(place.partition, row.offset, row.timestamp)
        try:
            return self._decoders[place.family].record(at, row.key, row.value, row.batch_base_offset)
        except DecodeError as error:
            if place.family is not Family.METADATA or not isinstance(error, UnknownTypeError):
                self._warn(f"{place} offset {row.offset}: {error}")
            return None

    def _events_of(self, group_id: str, followed: _Followed) -> Iterator[WatchEvent]:
        rows = [*followed.rows, *followed.audit.open_rows()]
        rebalances = sorted((row for row in rows if isinstance(row, RebalanceRow)), key=lambda row: row.at.offset)
        history = self._history(group_id, followed.place, rows)
        for row in rebalances:
            if row.at.offset > followed.began:
                followed.began = row.at.offset
                if self._is_new(followed.place, row.at):
                    yield RebalanceBegan(row, history)
            if not row.is_open and row.at.offset > followed.ended:
                followed.ended = row.at.offset
                if self._is_new(followed.place, row.finished):
                    yield RebalanceEnded(row, _verdict(row, rows), history)
        yield from self._findings_of(followed, history)

    def _findings_of(self, followed: _Followed, history: GroupHistory) -> Iterator[FindingArose]:
        found = {(row.kind, row.subject): row for row in findings(history, self._limits)}
        for key, row in found.items():
            newest = max(row.evidence, default=None, key=lambda at: at.offset)
            if key not in followed.found and self._is_new(followed.place, newest):
                yield FindingArose(row)
        followed.found = set(found)

    def _history(self, group_id: str, place: LogPlace, rows: Iterable[AuditedRow]) -> GroupHistory:
        counts: dict[str, int] = {}
        if self._topics is not None and len(self._topics):
            image = self._topics.version(len(self._topics) - 1).image
            counts = {name: topic.partitions for name, topic in image.by_name.items()}
        return GroupHistory.gather(group_id, self._last_ms.get(place, 0), chain(rows), counts, NO_SHARE_LOGS)

    def _is_new(self, place: LogPlace, at: LogPosition | None) -> bool:
        """Whether events at a position are to be told; what has no position of its own ended with the newest record."""
        return self.is_live and (at is None or at.offset >= self.told_before.get(place, 0))


def _verdict(rebalance: RebalanceRow, rows: Iterable[AuditedRow]) -> TargetAuditRow | None:
    return next((row for row in rows if isinstance(row, TargetAuditRow) and row.at == rebalance.target), None)
