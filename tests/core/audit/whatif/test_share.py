"""What if, for share groups: another delivery limit, on a log made by hand and on the recorded one."""

from coordinator_core.audit.group_audit import ShareAudit
from coordinator_core.audit.whatif.share import GivenUpRecords, with_delivery_limit
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import SharePartitionRow
from coordinator_core.records import AnyRecord
from tests.core.share_log import ShareLog

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def rows(records: list[AnyRecord], limit: int | None = 4) -> list[SharePartitionRow]:
    audit = ShareAudit.begin("g", None, Coverage({0: [(records[0].at.offset, 1_000)]}))
    found = [*(row for record in records for row in audit.feed(record)), *audit.open_rows()]
    return [row._replace(delivery_limit=limit) for row in found if isinstance(row, SharePartitionRow)]


def records() -> list[AnyRecord]:
    """Offsets 0 to 9 are released once, 2 to 9 twice, 6 to 9 three times, which then reach the limit of 4."""
    log = ShareLog()
    return [
        log.snapshot(),
        log.update(0, [(0, 9, AVAILABLE, 1)], 0),
        log.update(0, [(0, 1, ACKNOWLEDGED, 2), (2, 9, AVAILABLE, 2)], 2),
        log.update(2, [(2, 5, ACKNOWLEDGED, 3), (6, 9, AVAILABLE, 3)], 4),
        log.update(6, [(6, 9, ARCHIVED, 4)], 4),
    ]


def test_a_lower_limit_gives_up_what_later_deliveries_settled() -> None:
    found = with_delivery_limit(rows(records()), 2)
    assert found.actual == GivenUpRecords(4, 0, 0)
    assert found.hypothetical == GivenUpRecords(given_up=8, accepted=4, undecided=0)
    assert with_delivery_limit(rows(records()), 3).hypothetical == GivenUpRecords(4, 0, 0)


def test_the_limit_in_force_changes_nothing() -> None:
    found = with_delivery_limit(rows(records()), 4)
    assert found.actual == found.hypothetical


def test_what_a_higher_limit_leads_to_is_not_known() -> None:
    assert with_delivery_limit(rows(records()), 5).hypothetical == GivenUpRecords(0, 0, 4)
    assert with_delivery_limit(rows(records(), limit=None), 5).hypothetical == GivenUpRecords(0, 0, 4)


def test_what_was_rejected_stays_so_under_a_higher_limit() -> None:
    assert with_delivery_limit(rows(records(), limit=6), 8).hypothetical == GivenUpRecords(4, 0, 0)


def test_missing_records_are_said() -> None:
    assert with_delivery_limit(rows(records()), 2).is_whole
    assert not with_delivery_limit(rows(records()[1:]), 2).is_whole
