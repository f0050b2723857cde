"""Settings of groups outside of their bounds: which bound it is, where it is from, and when it is a warning."""

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.cluster.snapshot_settings import ResourceKind, SettingRun, SnapshotSettings
from coordinator_core.cluster.topic_history import GROUP_RESOURCE, TopicHistory
from coordinator_core.records import LogPosition
from jobs.settings import load
from tests.core.audit.histories import at, epoch, member

LIMITS = load(environment={}).findings
SESSION, HEARTBEAT = "streams.session.timeout.ms", "streams.heartbeat.interval.ms"


def found(settings: dict[str, str], brokers: dict[str, str] | None = None, *, is_open: bool = True) -> list[FindingRow]:
    topics = TopicHistory()
    for offset, (name, value) in enumerate(settings.items()):
        topics.open_version(LogPosition(0, 7 + offset, 1_000))
        topics.put_config(GROUP_RESOURCE, "g", name, value)
    runs = [SettingRun(ResourceKind.BROKER, "1", name, value, 5, 5) for name, value in (brokers or {}).items()]
    topics.snapshots = SnapshotSettings.of([], runs)
    row = epoch(4, at(10), group_type="STREAMS", ended=None if is_open else at(20))
    history = GroupHistory.gather("g", 60_000, [row], TopicsAtEnd.of(topics), NO_SHARE_LOGS)
    return [row for row in findings(history, LIMITS) if row.kind == FindingKind.SETTINGS_OUT_OF_BOUNDS]


@pytest.mark.parametrize(
    ("settings", "brokers", "level", "detail"),
    [
        ({SESSION: "1000"}, {"group.streams.min.session.timeout.ms": "3000"}, "notice", "=3000, which holds instead"),
        ({SESSION: "50000", HEARTBEAT: "60000"}, {}, "notice", "unless bounds move them, sessions end between"),
        ({"streams.acceptable.recovery.lag": "-1"}, {}, "notice", "is below the lowest value, 0, which holds instead"),
        (
            {SESSION: "50000", HEARTBEAT: "60000"},
            {"group.streams.max.heartbeat.interval.ms": "90000"},
            "warning",
            f"{SESSION}=50000 is not above {HEARTBEAT}=60000: sessions end between two heartbeats (__cluster_metadata",
        ),
    ],
)
def test_a_setting_that_does_not_hold_is_found(
    settings: dict[str, str], brokers: dict[str, str], level: str, detail: str
) -> None:
    (row,) = found(settings, brokers)
    assert row.level == level
    assert detail in row.detail
    assert f"(__cluster_metadata 0:{6 + len(settings)})" in row.detail
    assert ("a snapshot would show" in row.detail) == (level == "notice" and SESSION in settings and not brokers)


@pytest.mark.parametrize(
    ("settings", "brokers"),
    [
        ({SESSION: "50000", HEARTBEAT: "5000"}, {}),
        ({SESSION: "6000"}, {"group.streams.min.session.timeout.ms": "6000", f"group.{HEARTBEAT}": "3000"}),
        ({"share.session.timeout.ms": "1"}, {}),
        ({SESSION: "1000", "streams.num.standby.replicas": "9"}, {}),
        ({"streams.num.standby.replicas": "two"}, {}),
        ({}, {}),
    ],
)
def test_a_setting_that_holds_is_not(settings: dict[str, str], brokers: dict[str, str]) -> None:
    """Nor one that has no effect on the group's type, or is outside of a default, which its description says."""
    assert not found(settings, brokers)


def test_a_group_that_was_deleted_has_none() -> None:
    assert not found({SESSION: "1000"}, is_open=False)


@pytest.mark.parametrize(
    ("group_type", "setting", "size", "is_full"),
    [
        ("CONSUMER", "group.consumer.max.size", "2", True),
        ("CONSUMER", "group.consumer.max.size", "3", False),
        ("CONSUMER", "group.max.size", "2", False),
        ("CLASSIC", "group.max.size", "1", True),
        ("CONSUMER", "group.consumer.max.size", "2147483647", False),
    ],
)
def test_a_group_at_the_size_that_a_snapshot_shows_is_full(
    group_type: str, setting: str, size: str, is_full: bool
) -> None:
    topics = TopicHistory()
    topics.snapshots = SnapshotSettings.of([], [SettingRun(ResourceKind.BROKER, "1", setting, size, 5, 5)])
    gone = member("c", at(10), at(11))
    rows = [epoch(4, at(10), group_type=group_type), member("a", at(10)), member("b", at(10)), gone]
    history = GroupHistory.gather("g", 60_000, rows, TopicsAtEnd.of(topics), NO_SHARE_LOGS)
    found = [row for row in findings(history, LIMITS) if row.kind == FindingKind.GROUP_FULL]
    assert [(row.level, row.value) for row in found] == [("warning", 2)] * is_full
