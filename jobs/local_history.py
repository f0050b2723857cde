"""The history of groups straight from log files, in this process: the same fold that the replay job runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.fold import GroupFold
from coordinator_core.history.rows import HistoryRow
from coordinator_core.records import Family
from coordinator_core.wire.batch_format import Kind
from jobs.log_reader import LogReader, Warn
from jobs.sources.files import LogPart


def history(logs: Iterable[LogPart], warn: Warn, group_id: str | None = None) -> Iterator[HistoryRow]:
    """The rows of one group, or of every group; what cannot be read or decoded is told to ``warn`` and left out.

    Rows that are final come as the log is read, those that are open at its end last.
    """
    partitions: dict[Family, dict[int, list[LogPart]]] = {family: {} for family in Family}
    for file in logs:
        partitions[file.family].setdefault(file.partition, []).append(file)
    topics = None
    for files in partitions[Family.METADATA].values():
        topics = fold_metadata_log(LogReader(files, warn).records())
    for family in (Family.GROUP, Family.CONNECT):
        for files in partitions[family].values():
            yield from _partition(LogReader(files, warn), family, topics, group_id)


def _partition(
    reader: LogReader, family: Family, topics: TopicHistory | None, wanted: str | None
) -> Iterator[HistoryRow]:
    coverage = Coverage({})
    folds: dict[str, GroupFold] = {}
    for row in reader.rows():
        coverage.note(reader.partition, row.offset)
        record = reader.decoded(row) if row.kind == Kind.RECORD.value else None
        if record is None or (wanted is not None and record.group_id != wanted):
            continue
        fold = folds.get(record.group_id)
        if fold is None:
            group = Group(record.group_id, from_start=reader.from_start, family=family)
            fold = folds[record.group_id] = GroupFold(group, topics=topics, coverage=coverage)
        yield from fold.feed(record)
    for fold in folds.values():
        yield from fold.open_rows()
