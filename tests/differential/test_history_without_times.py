"""A dump without times and batches shows the same members and owners, or says that it does not know."""

from collections.abc import Iterator
from typing import Any

import pytest

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.rows import AssignmentRow, MembershipRow
from coordinator_core.records import AnyRecord, LogPosition
from tests.core.builders import without_times
from tests.core.whole_log import fold
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

OF_TIMES = {"hint", "is_open", "missing"}
"""What times and batches tell: why a member left, and whether the operation that it left in is over."""
Row = MembershipRow | AssignmentRow
Key = tuple[Any, ...]


def rows_of(records: list[AnyRecord], log: Any, topics: TopicHistory) -> dict[Key, Row]:
    def keyed() -> Iterator[tuple[Key, Row]]:
        for row in fold(records, Group("g", from_start=True), topics, log.coverage):
            if isinstance(row, MembershipRow):
                yield (row.member_id, row.joined.offset), row
            elif isinstance(row, AssignmentRow):
                yield (row.member_id, row.kind, row.role, row.resource, row.partition, row.since.offset), row

    return dict(keyed())


def told(row: Row) -> dict[str, Any]:
    values = row._asdict().items()
    return {
        name: value._replace(timestamp_ms=-1) if isinstance(value, LogPosition) else value
        for name, value in values
        if name not in OF_TIMES
    }


@pytest.mark.parametrize("corpus", ["scenarios", "misc", "upgrade", "churn/full", "churn/after_compaction", "wild"])
def test_members_and_owners_are_those_of_the_log_with_times(corpus: str) -> None:
    log, topics = corpus_log(corpus), topic_history(CORPUS / corpus / "logs")
    compared = unknown = 0
    for records in log.groups.values():
        truth = rows_of(records, log, topics)
        said = rows_of(without_times(records), log, topics)
        complete = {key: told(row) for key, row in said.items() if row.history_complete}
        assert {key: complete[key] for key in complete} == {key: told(truth[key]) for key in complete}
        proven = {key for key, row in truth.items() if row.history_complete}
        compared, unknown = compared + len(proven), unknown + len(proven - complete.keys())
    assert unknown * 10 < compared
