"""The one fold of a group's records, in log order, to the rows of its history; used by nights and single questions.

A run continues with what the run before left open: feeding a log piece by piece gives the rows of one pass.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from coordinator_core.cluster.client_view import METADATA_AGE_MS
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history import epochs, topic_inputs, workers
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.generations import group_before, on_generation
from coordinator_core.history.history_writer import HistoryWriter, RecordHandler
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.rows import HistoryRow, RebalanceRow
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord
from coordinator_core.records import AnyRecord, CoordinatorRecord, Family, LogPosition, RecordType

_NO_ROWS: list[HistoryRow] = []
_HANDLERS: Mapping[Family, Mapping[int, RecordHandler]] = {
    Family.GROUP: {
        RecordType.GROUP_METADATA: RecordHandler(GroupType.CLASSIC.value, on_generation, group_before),
        **epochs.HANDLERS,
        **topic_inputs.HANDLERS,
    },
    Family.CONNECT: workers.HANDLERS,
}
"""By log, record type to what it does to the history."""


class GroupFold:
    """The history of one group's records of ``__consumer_offsets``, or ``__worker_offsets`` (Connect on KIP-848).

    It reads the ``group``, which the caller changes: ``before`` and ``after`` are called for each record, in offset
    order, before and after the group is changed by it. ``feed`` does all three. Offset commits may be among the
    records: they make no rows, but show what the commits of a member that left suggest. ``open_rows`` gives the rows of
    what is not over, as of the last record: upsert them by their keys.
    """

    __slots__ = ("_handlers", "_recorder", "group")

    def __init__(
        self,
        group: Group,
        open_history: OpenHistory | None = None,
        topics: TopicHistory | None = None,
        coverage: Coverage | None = None,
        metadata_age_ms: int = METADATA_AGE_MS,
    ) -> None:
        """Begin with ``Group(group_id)``, or go on with the ``group`` and ``open_history`` that an earlier run left.

        ``metadata_age_ms``: clients refresh their metadata at the latest after so long.
        """
        self.group = group
        self._handlers = _HANDLERS[group.family]
        self._recorder = HistoryWriter(
            group, open_history or OpenHistory(group.group_id), topics, coverage, metadata_age_ms
        )

    @property
    def open_history(self) -> OpenHistory:
        """The open history as of the last record."""
        return self._recorder.open_history

    def feed(self, record: AnyRecord, leader_epoch: int | None = None) -> list[HistoryRow]:
        """Change the group by a record; return the rows that become final by it. Raise nothing."""
        if record.type <= RecordType.OFFSET_COMMIT:
            self.note_commit(record)
            return _NO_ROWS
        before = self.before(record)
        self.group.apply(record)
        return self.after(record, before, leader_epoch)

    def before(self, record: AnyRecord) -> object:
        """Return what ``after`` needs of the group as it is before the record."""
        handler = self._handlers.get(record.type)
        return None if handler is None or handler.before is None else handler.before(self.group.state, record)

    def after(self, record: AnyRecord, before: object, leader_epoch: int | None) -> list[HistoryRow]:
        """Return the rows that become final by the record, once the group has been changed by it; raise nothing.

        ``leader_epoch`` is that of the log partition when it was written, where that is known.
        """
        handler = self._handlers.get(record.type)
        if handler is None:
            return _NO_ROWS
        group_type, change, _ = handler
        at, value = record.at, record.value
        writer = self._recorder
        open_history = writer.open_history
        # First what may be missing before this record: all that is concluded from it asks for that.
        writer.follow(record)
        open_history.note_leader(leader_epoch)
        self._note_operation(record, group_type)
        if value is not None and (open_history.type != group_type or open_history.ended is not None):
            writer.live_as(group_type, at)
        elif open_history.shows_another_life(group_type):
            writer.end_unseen_life(at)
        if open_history.type == group_type:
            change(writer, record, before)
        return writer.take_rows()

    def _note_operation(self, record: CoordinatorRecord, group_type: str) -> None:
        """Note of which operation a record is, which is one of groups of that type.

        Without batch and time each record counts as an operation: as one, all of them would never end. The records of
        an operation follow at once upon one another, and what follows a change of members surely belongs to it until
        it is done. Behind the end of a group only members that it had show that it was converted.
        """
        writer, open_history = self._recorder, self._recorder.open_history
        at, batch = record.at, record.batch
        key: Any = record.key
        if batch >= 0 or at.timestamp_ms >= 0:
            if (at.timestamp_ms, batch) != open_history.operation:
                writer.begin_operation((at.timestamp_ms, batch))
            return
        operation, last, ended = (at.offset, batch), open_history.operation, open_history.ended
        follows = last is not None and last[0] + 1 == at.offset
        goes_over = group_type != open_history.type and key.get("memberId") in open_history.memberships
        # The tombstone of a topology lies behind that of the epoch.
        is_of_end = ended is not None and (record.value is None or goes_over)
        if follows and (open_history.awaits_epoch or is_of_end):
            open_history.operation = operation
            return
        if follows and ended is not None:
            open_history.past.doubt_life()
            writer.end_unseen_life(ended)
        writer.begin_operation(operation, may_go_on=follows)

    def lose(self, at: LogPosition, missing: str) -> list[HistoryRow]:
        """Note a record that may have said anything of the group; ``missing`` names it. Return the rows it ends."""
        self._recorder.lose(at, missing)
        return self._recorder.take_rows()

    def lose_commit(self) -> None:
        """Note that from here on nothing follows from what was committed, and when."""
        self._recorder.open_history.commits_lost = True

    def note_commit(self, record: OffsetCommitRecord) -> None:
        """Note an offset commit."""
        key, value, open_history = record.key, record.value, self._recorder.open_history
        if value is not None:
            open_history.commits.setdefault(key["topic"], {})[key["partition"]] = record.at.timestamp_ms
            topic_id = value.get("topicId")
            if topic_id is not None:
                open_history.topic_names[topic_id] = key["topic"]

    def open_rows(self) -> Iterator[HistoryRow]:
        """Yield the rows of what is open as of the last record."""
        return self._recorder.open_rows()

    def open_memberships(self) -> Collection[OpenMembership]:
        """Return the members as of the last record, and those that left within the last operation."""
        open_history = self._recorder.open_history
        return [*open_history.memberships.values(), *open_history.departed.values(), *open_history.crossing.values()]

    def open_rebalances(self) -> Iterator[RebalanceRow]:
        """Yield those of the open rows that are rebalances, without making the others: at most one is not over."""
        ended, settled = self._recorder.settled()
        yield from (row for row in ended if isinstance(row, RebalanceRow))
        yield from settled.rebalance()
