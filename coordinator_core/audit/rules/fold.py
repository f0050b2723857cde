"""The rules over the log of one group, record by record: the violations, wherever the log is split into runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from coordinator_core.audit.rules import epochs, members, operations, topics
from coordinator_core.audit.rules.classic import on_generation
from coordinator_core.audit.rules.commits import on_commit
from coordinator_core.audit.rules.connect import on_record as on_connect
from coordinator_core.audit.rules.kinds import KINDS, SHARE, STREAMS, EpochKind
from coordinator_core.audit.rules.scene import Scene
from coordinator_core.audit.rules.watch import Watch
from coordinator_core.groups.group import Group
from coordinator_core.groups.violations import Rule, Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, Family, RecordType

_HANDLERS: Mapping[int, tuple[EpochKind, Callable[[Scene, EpochKind, CoordinatorRecord], None]]] = {
    **{kind.metadata: (kind, epochs.on_epoch) for kind in KINDS},
    **{kind.target: (kind, epochs.on_target) for kind in KINDS},
    **{kind.target_epoch: (kind, epochs.on_target_epoch) for kind in KINDS},
    **{kind.member: (kind, members.on_member) for kind in KINDS},
    **{kind.current: (kind, members.on_current) for kind in KINDS},
    SHARE.target: (SHARE, topics.on_share_target),
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: (SHARE, topics.on_share_state),
    STREAMS.target: (STREAMS, topics.on_streams_target),
    RecordType.STREAMS_GROUP_TOPOLOGY: (STREAMS, topics.on_topology),
}


class RuleFold:
    """The rules over the records of one group: feed each once, in offset order.

    A violation is final once it is returned by ``feed``. What an operation lacks is known when the next one begins: of
    the last one ``open_rows`` tells as of now.
    """

    __slots__ = ("_coverage", "_scene")

    def __init__(self, group: Group, watch: Watch | None = None, coverage: Coverage | None = None) -> None:
        """Begin with ``Group(group_id)``, or go on with the ``group`` and ``watch`` that an earlier run left.

        ``coverage`` says which offsets are there. Without it nothing is known of what lies between two records, and
        only what a record says by itself can break a rule.
        """
        self._scene = Scene(group, watch or Watch())
        self._coverage = coverage

    @property
    def group(self) -> Group:
        """The group as of the last record."""
        return self._scene.group

    @property
    def watch(self) -> Watch:
        """What is known of the log as of the last record."""
        return self._scene.watch

    def feed(self, record: CoordinatorRecord) -> list[Violation]:
        """The rules that this record breaks, or shows to be broken by the operation before it; raises nothing."""
        scene = self._scene
        if record.type <= RecordType.OFFSET_COMMIT:
            if self._is_next(record):
                on_commit(scene, record)
        else:
            self._follow(record)
            operations.begin(scene, record)
            self._judge(record)
        return self._taken()

    def open_rows(self) -> list[Violation]:
        """What the operation under way lacks, if no more of it follows."""
        watch, coverage = self._scene.watch, self._coverage
        operation = watch.operation
        if operation is None or coverage is None or watch.last is None:
            return []
        if not coverage.continues(operation.first.partition, watch.last):
            return []
        operations.end(self._scene, operation)
        return [row._replace(is_open=True) for row in self._taken()]

    def _taken(self) -> list[Violation]:
        rows = self._scene.rows
        if rows:
            self._scene.rows = []
        return rows

    def _is_next(self, record: CoordinatorRecord) -> bool:
        """Whether no record of the group can be missing before this commit."""
        last, at, coverage = self._scene.watch.last, record.at, self._coverage
        return last is not None and coverage is not None and coverage.unbroken(at.partition, last, at.offset)

    def _follow(self, record: CoordinatorRecord) -> None:
        """Keep up how far back the log is whole."""
        scene, at, coverage = self._scene, record.at, self._coverage
        watch = scene.watch
        if watch.last is None:
            if coverage is not None and coverage.unbroken(at.partition, 0, at.offset):
                watch.whole = scene.group.from_start = True
            else:
                watch.interrupt(at)
        elif at.partition != watch.partition or at.offset <= watch.last:
            detail = f"after offset {watch.last} of partition {watch.partition}"
            scene.broken(Rule.GROUP_OF_TWO_LOGS, at, None, detail)
            watch.interrupt(at)
        elif coverage is None or not coverage.unbroken(at.partition, watch.last, at.offset):
            watch.interrupt(at)
        watch.partition, watch.last = at.partition, at.offset
        if watch.told:
            watch.told = []

    def _judge(self, record: CoordinatorRecord) -> None:
        scene = self._scene
        if scene.group.family is Family.CONNECT:
            on_connect(scene, record)
        elif record.type == RecordType.GROUP_METADATA:
            on_generation(scene, record)
        elif record.type in _HANDLERS:
            kind, handler = _HANDLERS[record.type]
            handler(scene, kind, record)
        else:
            scene.keep(record)


def judge(records: Iterable[CoordinatorRecord], group: Group, coverage: Coverage | None = None) -> Iterator[Violation]:
    """All violations in a group's records, in one pass."""
    rules = RuleFold(group, None, coverage)
    for record in records:
        yield from rules.feed(record)
    yield from rules.open_rows()
