"""The one fold: a group's records, in log order, to the rows of its history; nightly and ad hoc alike.

What one run leaves open the next goes on with: feeding a log piece by piece gives the rows of one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group, GroupType
from coordinator_core.groups.violations import Violations
from coordinator_core.history import epochs, workers
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.generations import on_generation
from coordinator_core.history.ledger import Ledger
from coordinator_core.history.recorder import Recorder
from coordinator_core.history.rows import HistoryRow
from coordinator_core.records import CoordinatorRecord, Family, RecordType

_NO_ROWS: list[HistoryRow] = []

_Handlers = dict[int, tuple[str, Callable[[Recorder, CoordinatorRecord], Violations]]]
_HANDLERS: dict[Family, _Handlers] = {
    Family.GROUP: {
        RecordType.GROUP_METADATA: (GroupType.CLASSIC.value, on_generation),
        **{each: (kind.type, partial(handler, kind)) for each, (kind, handler) in epochs.HANDLERS.items()},
    },
    Family.CONNECT: {each: (GroupType.CONNECT.value, handler) for each, handler in workers.HANDLERS.items()},
}
"""By log, record type to the group type that it belongs to and what it does to the history."""


class GroupFold:
    """The fold of one group's records of ``__consumer_offsets``, or ``__worker_offsets`` (Connect on KIP-848).

    ``feed`` takes each record once, in offset order, and returns the rows that it makes final. Offset commits may be
    among the records: they make no rows, and let the causes say what the commits of a departed member suggest.
    ``open_rows`` gives the rows of what is not over, as of the last record: upsert them by their keys.
    """

    __slots__ = ("_handlers", "_recorder")

    def __init__(
        self,
        group: Group,
        ledger: Ledger | None = None,
        topics: TopicHistory | None = None,
        coverage: Coverage | None = None,
    ) -> None:
        """Begin with ``Group(group_id)``, or go on with the ``group`` and ``ledger`` that an earlier run left."""
        self._handlers = _HANDLERS[group.family]
        self._recorder = Recorder(group, ledger or Ledger(group.group_id), topics, coverage)

    @property
    def group(self) -> Group:
        """The group as of the last record."""
        return self._recorder.group

    @property
    def ledger(self) -> Ledger:
        """What is open as of the last record."""
        return self._recorder.ledger

    def feed(self, record: CoordinatorRecord) -> list[HistoryRow]:
        """The rows that this record makes final, violations among them; raises nothing."""
        at, record_type, _, value, _, batch = record
        recorder = self._recorder
        ledger = recorder.ledger
        entry = self._handlers.get(record_type)
        if entry is None:
            if record_type <= RecordType.OFFSET_COMMIT:
                _note_commit(ledger, record)
                return _NO_ROWS
            return [*recorder.group.apply(record)]
        operation = (at.timestamp_ms, batch)
        if operation != ledger.operation:
            recorder.begin_operation(operation)
        group_type, handler = entry
        if value is None and ledger.type != group_type:
            violations = recorder.group.apply(record)
        else:
            if value is not None and (ledger.type != group_type or ledger.ended is not None):
                recorder.live_as(group_type, at)
            violations = handler(recorder, record)
        rows = recorder.rows
        if violations:
            rows.extend(violations)
        if not rows:
            return _NO_ROWS
        recorder.rows = []
        return rows

    def open_rows(self) -> Iterator[HistoryRow]:
        """Rows of what is open as of the last record."""
        return self._recorder.open_rows()


def fold(
    records: Iterable[CoordinatorRecord],
    group: Group,
    topics: TopicHistory | None = None,
    coverage: Coverage | None = None,
) -> Iterator[HistoryRow]:
    """All rows of one group in one pass: those that are final as they come, at the end those that are open."""
    state = GroupFold(group, None, topics, coverage)
    for record in records:
        yield from state.feed(record)
    yield from state.open_rows()


def _note_commit(ledger: Ledger, record: CoordinatorRecord) -> None:
    key, value = record.key, record.value
    if value is not None:
        ledger.commits.setdefault(key["topic"], {})[key["partition"]] = record.at.timestamp_ms
        topic_id = value.get("topicId")
        if topic_id is not None:
            ledger.topic_names[topic_id] = key["topic"]
