"""What is new since a night: by the nights that ended well, the nights of findings, and the runs of records."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coordinator_core.audit.finding_rows import FindingKind, make_finding
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.errors import UsageError
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.records import LogPosition
from jobs.relations.news import StoredNews, last_end, night_id
from jobs.tables.folder_reader import FolderReader
from tests.jobs.relations.tables_of_logs import CLUSTER, GROUP_LOG, append

BEGIN = datetime(2026, 11, 21, 2, 30, tzinfo=UTC)
NIGHTS = [BEGIN + timedelta(days=number) for number in range(4)]
IDS = [night.strftime("%Y%m%dT%H%M%S.%fZ") for night in NIGHTS]


def steps(folder: Path, number: int, ended: str = "done") -> None:
    for step, began in enumerate((NIGHTS[number], NIGHTS[number] + timedelta(minutes=5)), 1):
        row = {"night": IDS[number], "number": step, "started_at": began, "seconds": 60.0}
        append(folder, "nightly_steps", [row | {"ended": "done" if step == 1 else ended}])


def end_of(number: int) -> str:
    return (NIGHTS[number] + timedelta(minutes=6)).strftime("%Y%m%dT%H%M%S.%fZ")


def test_the_last_night_is_the_newest_before_that_did_not_fail(tmp_path: Path) -> None:
    reader = FolderReader(str(tmp_path))
    assert last_end(reader) == ""
    steps(tmp_path, 0)
    assert last_end(FolderReader(str(tmp_path))) == "", "before the first night, all is new"
    assert last_end(FolderReader(str(tmp_path)), IDS[1]) == end_of(0), "night 1 runs now"
    steps(tmp_path, 1, "failed")
    steps(tmp_path, 2)
    assert last_end(FolderReader(str(tmp_path))) == end_of(0), "what a failed night found is new to the next one"
    steps(tmp_path, 3)
    assert last_end(FolderReader(str(tmp_path))) == end_of(2)
    assert last_end(FolderReader(str(tmp_path)), night_id("2026-11-24T00:00:00Z")) == end_of(2)
    assert night_id(IDS[2]) == IDS[2]
    with pytest.raises(UsageError, match="invalid time"):
        night_id("yesterday")
    with pytest.raises(UsageError, match="no calendar has that time"):
        night_id("99999999999999999")


def test_findings_are_new_by_the_night_that_changed_them(tmp_path: Path) -> None:
    at = LogPosition(0, 5, 1_000)
    rows = [
        make_finding(
            FindingKind.OFFSETS_REWOUND, 3, 1, "", [at], group_id="g", since_ms=1, until_ms=number, complete=True
        )
        for number in (2, 3, 4)
    ]
    old, grown, first = (row._replace(subject=name) for row, name in zip(rows, ("old", "grown", "first"), strict=True))
    nights = {"old": (IDS[0], IDS[0]), "grown": (IDS[0], IDS[2]), "first": (IDS[2], IDS[2])}
    for row in (old, grown, first):
        found_in, changed_in = nights[row.subject or ""]
        key = {"cluster": CLUSTER, "group_id": "g", "kind": row.kind, "subject": row.subject, "since_ms": row.since_ms}
        append(tmp_path, "known_findings", [key | {"found_in": found_in, "changed_in": changed_in}])
    news = StoredNews(FolderReader(str(tmp_path)), CLUSTER, end_of(1))
    assert [news.has_finding(row) for row in (old, grown, first)] == [False, True, True]
    assert news.has_finding(old._replace(is_open=True)), "what goes on counts in each night"
    assert [news.is_first_seen(row) for row in (old, grown, first)] == [False, False, True]


def test_records_are_new_by_the_run_that_brought_them(tmp_path: Path) -> None:
    for run, first, last in ((IDS[0], 0, 9), (IDS[2], 10, 19)):
        place = {"cluster": CLUSTER, "log_topic": GROUP_LOG, "log_partition": 0}
        append(tmp_path, "log_ranges", [place | {"run_id": run, "first_offset": first, "last_offset": last}])
    append(tmp_path, "group_states", [])
    present = {"cluster": CLUSTER, "group_id": "g", "group_type": "CONSUMER", "epoch": 7, "is_open": True}
    append(tmp_path, "group_epochs", [present])
    news = StoredNews(FolderReader(str(tmp_path)), CLUSTER, end_of(1))
    broken = [Violation(Rule.ASSIGNED_TO_TWO, LogPosition(0, offset, 1), "g", None, "") for offset in (9, 10)]
    assert [news.has_violation(each) for each in broken] == [False, True]
    at = LogPosition(0, 9, 1)
    targets = [TargetAuditRow("g", "CONSUMER", epoch, at, at, "divergent", "assignor") for epoch in (6, 7)]
    assert [news.has_verdict(each) for each in targets] == [False, True], "the present target is still in force"
