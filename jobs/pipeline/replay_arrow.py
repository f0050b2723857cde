"""The replay of groups as a function from Arrow batches to Arrow batches, which Spark maps over sorted partitions.

Input rows have the columns ``INPUT``. All rows of a group are adjacent: first its stored state, if there is one, then
its records in log order. Only one batch of rows and the state of one group are in memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.group_audit import GroupAudit, ShareAudit
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.lost_records import NO_HOLES, Holes, Place
from coordinator_core.records import AnyRecord, CoordinatorRecord, Family, Fields, LogPosition, RecordType
from coordinator_core.wire.record_decoder import NO_BATCH, RecordDecoder
from jobs.relations.replay import COMMIT
from jobs.sources.files import FAMILIES
from jobs.tables.history import FOLDED, GROUP_STATES, REPLAYED

OUTPUT_ROWS: Final = 4_096
"""Number of rows that are collected into output batches."""


class Input(NamedTuple):
    """One row of the input: a stored ``state``, a record (``key`` and ``value`` as bytes), or an offset commit.

    An empty ``state``: what is stored of the group is deleted, and all its records follow.
    A commit has ``committed_topic``, ``committed_partition`` and ``committed_topic_id`` instead of key and value.
    ``leader_epoch`` is that of the record's batch. ``unbroken_since`` is the first offset of the gap-free range that
    ends with the record. ``gap_follows``: the log continues, but the next offset is missing. ``from_start``: the log
    was read from its start. ``unreadable``: what a record of the group that cannot be decoded is about; it has
    no key here.
    """

    log_topic: str
    group_id: str
    log_partition: int
    log_offset: int
    timestamp_ms: int
    batch_base: int | None
    key: bytes | None
    value: bytes | None
    state: str | None
    committed_topic: str | None
    committed_partition: int | None
    committed_topic_id: str | None
    leader_epoch: int | None
    unbroken_since: int | None
    gap_follows: bool
    from_start: bool
    unreadable: str | None


INPUT: Final = Input._fields
Batches = Iterable[pa.RecordBatch]


def folder(
    cluster: str,
    topics: TopicHistory | None,
    settings: AuditSettings,
    holes: Holes = NO_HOLES,
    numbered: frozenset[Place] = frozenset(),
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the replay as a function for ``mapInArrow``; it yields rows of ``REPLAYED``."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return fold(_rows(batches), cluster, topics, settings, holes, numbered)

    return run


def _rows(batches: Batches) -> Iterator[Input]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in INPUT]
        yield from map(Input._make, zip(*columns, strict=True))


def fold(
    rows: Iterable[Input],
    cluster: str,
    topics: TopicHistory | None,
    settings: AuditSettings,
    holes: Holes = NO_HOLES,
    numbered: frozenset[Place] = frozenset(),
) -> Iterator[pa.RecordBatch]:
    """Replay the groups of these rows, and yield rows of ``REPLAYED``; ``holes`` may be about any of them, ``numbered``
    are logs that were printed without positions.

    A group that begins again has a row of its own that only names it.
    """
    output = _Output(cluster)
    group: _GroupReplay | None = None
    for row in rows:
        if row.state == "":
            output.mark(row.log_topic, row.group_id)
            continue
        # Rows of a group are neighbours: the next id is the end of the one before, and one state is in memory.
        if group is None or (group.group_id, group.log_topic) != (row.group_id, row.log_topic):
            if group is not None:
                group.finish(output)
            group = _GroupReplay(row, topics, settings, holes, numbered)
        if row.state is None:
            output.add(group.log_topic, group.group_id, group.feed(row))
        if output.is_full:
            yield from output.take()
    if group is not None:
        group.finish(output)
    yield from output.take()


class _GroupReplay:
    """The replay of one group."""

    def __init__(
        self,
        first: Input,
        topics: TopicHistory | None,
        settings: AuditSettings,
        holes: Holes,
        numbered: frozenset[Place],
    ) -> None:
        self.log_topic, self.group_id = first.log_topic, first.group_id
        self._holes, self._numbered = holes, numbered
        self._lost = first.log_offset if first.state is not None else -1
        family = FAMILIES[first.log_topic]
        self._decoder = RecordDecoder(family)
        self._coverage = Coverage({})
        self._last = LogPosition(first.log_partition, first.log_offset, first.timestamp_ms)
        self._fold: GroupAudit | ShareAudit
        if family is Family.SHARE and first.state is None:
            self._fold = ShareAudit.begin(first.group_id, topics, self._coverage)
        elif family is Family.SHARE:
            self._fold = ShareAudit.resume(str(first.state), topics, self._coverage)
        elif first.state is None:
            self._fold = GroupAudit.begin(
                first.group_id, family, topics, self._coverage, settings, from_start=first.from_start
            )
        else:
            self._fold = GroupAudit.resume(first.state, topics, self._coverage, settings)

    def feed(self, row: Input) -> Sequence[AuditedRow]:
        # A share group has records in several log partitions, and a run may bring records of any of them.
        place = max(self._last[:2], (row.log_partition, row.log_offset))
        self._last = LogPosition(*place, max(self._last.timestamp_ms, row.timestamp_ms))
        log = self.log_topic, row.log_partition
        hole = self._holes.last_before(log, row.log_offset, row.timestamp_ms)
        # Where offsets number the lines of a text, they do not tell what is missing between two of them.
        if row.unbroken_since is not None and log not in self._numbered:
            since = row.unbroken_since
            # The fold of share state knows a hole by where the unbroken records begin; that of a group is told, below.
            if hole is not None and isinstance(self._fold, ShareAudit):
                since = max(since, hole.at.offset + 1)
            self._coverage.set_unbroken(row.log_partition, since, row.log_offset, gap_follows=row.gap_follows)
        final: list[AuditedRow] = []
        if isinstance(self._fold, GroupAudit):
            # Each hole once: it lies before all records that follow, too.
            if hole is not None and hole.at.offset > self._lost:
                self._lost = hole.at.offset
                final += self._fold.lose(hole)
            if row.unreadable is not None:
                at = LogPosition(row.log_partition, row.log_offset, row.timestamp_ms)
                return [*final, *self._fold.lose_record(at, is_commit=row.unreadable == COMMIT)]
        return [*final, *self._fold.feed(self._record(row), row.leader_epoch)]

    def _record(self, row: Input) -> AnyRecord:
        at = LogPosition(row.log_partition, row.log_offset, row.timestamp_ms)
        if row.key is not None:
            return self._decoder.record(at, row.key, row.value, row.batch_base)
        # Commits come as columns: of most no bytes are kept, as their columns give them back (``decode_arrow``).
        key = {"group": row.group_id, "topic": row.committed_topic, "partition": row.committed_partition}
        topic_id = row.committed_topic_id
        value: Fields = {} if topic_id is None else {"topicId": topic_id}
        return CoordinatorRecord(at, RecordType.OFFSET_COMMIT, key, value, None, NO_BATCH)

    def finish(self, output: "_Output") -> None:
        # Open rows are written with the state: readers see them now, and the next run replaces them by their key.
        output.add(self.log_topic, self.group_id, self._fold.changed_rows())
        output.add_state(self.log_topic, self.group_id, self._last, self._fold.state())


class _Output:
    """Collects rows of ``REPLAYED`` into batches, each of rows of one table.

    So all other columns of a batch are null, and those nulls are the same memory in all batches: hundreds of nested
    columns take more than a kilobyte for each row otherwise.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._schema = REPLAYED.schema
        self._nulls = {field.name: pa.nulls(OUTPUT_ROWS, field.type) for field in self._schema}
        self._rows: dict[str | None, list[dict[str, object]]] = {}
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= OUTPUT_ROWS

    def add(self, log_topic: str, group_id: str, rows: Iterable[AuditedRow]) -> None:
        for row in rows:
            table = FOLDED[type(row)]
            self._add(table, {"log_topic": log_topic, "group_id": group_id, table: row})

    def mark(self, log_topic: str, group_id: str) -> None:
        self._add(None, {"log_topic": log_topic, "group_id": group_id})

    def add_state(self, log_topic: str, group_id: str, last: LogPosition, state: str) -> None:
        place = {"log_partition": last.partition, "log_offset": last.offset, "timestamp_ms": last.timestamp_ms}
        self._add(GROUP_STATES.name, {"log_topic": log_topic, "group_id": group_id, **place, "state": state})

    def _add(self, table: str | None, row: dict[str, object]) -> None:
        self._rows.setdefault(table, []).append(row)
        self._count += 1

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield what was collected, at least a batch without rows."""
        of_tables, self._rows, self._count = [*self._rows.values()], {}, 0
        for rows in of_tables or [[]]:
            for begin in range(0, max(1, len(rows)), OUTPUT_ROWS):
                yield self._batch(rows[begin : begin + OUTPUT_ROWS])

    def _batch(self, rows: list[dict[str, object]]) -> pa.RecordBatch:
        named = {"cluster", *(rows[0] if rows else ())}
        columns = {name: nulls.slice(0, len(rows)) for name, nulls in self._nulls.items() if name not in named}
        for name in named - {"cluster"}:
            columns[name] = pa.array([row[name] for row in rows], self._schema.field(name).type)
        columns["cluster"] = pa.array([self._cluster] * len(rows), pa.string())
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
