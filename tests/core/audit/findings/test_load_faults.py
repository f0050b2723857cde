"""Records in the log that brokers of a release cannot load."""

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings_of_cluster
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS
from coordinator_core.broker_log.events import EventKind
from coordinator_core.broker_log.lines import events
from coordinator_core.cluster.snapshot_settings import Levels
from coordinator_core.history.lost_records import LostRecords
from jobs.settings import load
from tests.core.audit.findings.test_findings import commits
from tests.core.audit.histories import all_shown, at, epoch

LIMITS = load(environment={}).findings
KINDS = (FindingKind.WILL_NOT_LOAD, FindingKind.MAY_NOT_LOAD)


def found(level: int | None, group_type: str = "STREAMS", first: int = 3, begin: int = 5) -> list[FindingRow]:
    topics = NO_TOPICS._replace(levels=None if level is None else Levels(level, level))
    rows = [epoch(2, at(begin), group_type=group_type)]
    given = GroupHistory("g", 60_000, rows, commits=[commits(first=at(first), last=at(first))], topics=topics)
    found = findings_of_cluster([given], LIMITS, all_shown)
    return [row for row in found if row.kind in KINDS and not row.covered]


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        (None, []),
        (24, []),  # 4.0
        (27, [FindingKind.WILL_NOT_LOAD]),  # 4.1
        (29, [FindingKind.MAY_NOT_LOAD]),  # 4.2, of which 4.2.1 has the fault no more
        (30, []),  # 4.3
        (33, []),
    ],
)
def test_commits_before_the_records_of_their_streams_group(level: int | None, kinds: list[FindingKind]) -> None:
    rows = found(level)
    assert [row.kind for row in rows] == kinds
    for row in rows:
        assert (row.group_id, row.subject, row.value) == (None, "__consumer_offsets-0", 1)
        assert row.detail.startswith("1 group (g): Kafka 4.1.0 to 4.2.0 cannot load __consumer_offsets-0 (KAFKA-20254")
        assert "since 1970" in row.detail


@pytest.mark.parametrize(("group_type", "first", "begin"), [("STREAMS", 7, 5), ("CONSUMER", 3, 5), ("CLASSIC", 3, 5)])
def test_other_groups_are_loaded(group_type: str, first: int, begin: int) -> None:
    assert not found(27, group_type, first, begin)


@pytest.mark.parametrize(
    ("lines", "level", "kinds"),
    [
        (["4.2.0"], 29, [FindingKind.WILL_NOT_LOAD]),
        (["4.2.1"], 29, []),
        (["4.2.0", "4.2.1"], 29, []),  # one file: the broker was upgraded
        (["4.2.0"], None, [FindingKind.WILL_NOT_LOAD]),
        (["4.0.0"], None, []),
    ],
)
def test_a_line_that_names_the_release_decides(lines: list[str], level: int | None, kinds: list[FindingKind]) -> None:
    text = "[2026-11-23 14:25:0{},123] INFO Kafka version: {} (org.apache.kafka.common.utils.AppInfoParser)"
    said = [each for n, name in enumerate(lines) for each in events(text.format(n, name), "server.log", n + 1)]
    assert [each.kind for each in said] == [EventKind.BROKER_RELEASE] * len(lines)
    topics = NO_TOPICS._replace(levels=None if level is None else Levels(level, level))
    rows = [epoch(2, at(5), group_type="STREAMS")]
    given = GroupHistory(
        "g", 60_000, rows, commits=[commits(first=at(3), last=at(3))], topics=topics, events=tuple(said)
    )
    found = [row for row in findings_of_cluster([given], LIMITS, all_shown) if row.kind in KINDS and not row.covered]
    assert [row.kind for row in found] == kinds
    assert all("(4.2.0, server.log:1)" in row.detail for row in found)


def test_brokers_of_two_releases_leave_it_open() -> None:
    topics = NO_TOPICS._replace(levels=Levels(27, 30))
    rows = [epoch(2, at(5), group_type="STREAMS")]
    given = GroupHistory("g", 60_000, rows, commits=[commits(first=at(3), last=at(3))], topics=topics)
    assert [row.kind for row in findings_of_cluster([given], LIMITS, all_shown) if not row.covered] == [
        FindingKind.MAY_NOT_LOAD
    ]


def behind(level: int | None, *, old: str = "CONSUMER", how: str = "end not seen", lost: int = 9) -> list[FindingRow]:
    """A share group behind another group of its name; ``lost``: an offset that is."""
    rows = [
        epoch(3, at(1), group_type=old)._replace(ended=at(4), ended_by=how, is_open=False),
        epoch(1, at(5), group_type="SHARE"),
    ]
    topics = NO_TOPICS._replace(levels=None if level is None else Levels(level, level))
    missing = LostRecords({("__consumer_offsets", 0): [(lost, lost)]})
    given = GroupHistory("g", 60_000, rows, topics=topics, lost=missing)
    return [row for row in findings_of_cluster([given], LIMITS, all_shown) if row.kind in KINDS and not row.covered]


def test_a_share_group_behind_a_consumer_group_without_tombstones_is_not_loaded() -> None:
    """A classic member that is refused at an empty consumer group has the coordinator forget it without a record."""
    for level in (24, 31, 32):
        (row,) = behind(level)
        assert (row.kind, row.value, row.subject) == (FindingKind.WILL_NOT_LOAD, 1, "__consumer_offsets-0")
    assert "records of share group g stand behind those of a consumer group of that name" in row.detail
    assert [row.kind for level in (None, 33) for row in behind(level)] == [FindingKind.MAY_NOT_LOAD] * 2
    assert behind(31, how="group deleted") == behind(31, old="CLASSIC") == []
    assert behind(31, lost=3) == [], "the tombstone may be what is lost"
