"""What snapshots prove of settings and releases, and from when until when."""

import pytest

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.snapshot_settings import (
    LevelRun,
    Levels,
    ResourceKind,
    SettingRun,
    SnapshotSettings,
    level_runs,
    levels_in_snapshot,
)
from coordinator_core.cluster.topic_history import GROUP_RESOURCE, TopicHistory
from coordinator_core.records import LogPosition

TIMEOUT = "consumer.session.timeout.ms"


def group_setting(value: str, first_ms: int, last_ms: int) -> SettingRun:
    return SettingRun(ResourceKind.GROUP, "g", TIMEOUT, value, first_ms, last_ms)


def history(*runs: SettingRun, levels: tuple[LevelRun, ...] = ()) -> TopicHistory:
    topics = TopicHistory(complete=False, is_listed=True)
    topics.snapshots = SnapshotSettings.of(levels, runs)
    return topics


@pytest.mark.parametrize(
    ("time_ms", "value"), [(9, None), (10, "1"), (15, "1"), (20, "1"), (21, None), (29, None), (30, "2"), (31, None)]
)
def test_a_setting_is_known_between_snapshots_that_agree(time_ms: int, value: str | None) -> None:
    known = history(group_setting("2", 30, 30), group_setting("1", 10, 20))
    assert known.group_config("g", TIMEOUT, time_ms) == value
    assert known.group_config("other", TIMEOUT, time_ms) is None
    assert known.snapshots.of_group("g", time_ms) == ({} if value is None else {TIMEOUT: value})
    assert known.snapshots.of_group("other", time_ms) == {}


def test_what_the_metadata_log_has_of_a_config_goes_before_snapshots() -> None:
    """Snapshots of a time with the config say nothing about the default without it."""
    known = history(group_setting("1", 10, 50))
    for time_ms, value in ((20, "7"), (30, None)):
        known.open_version(LogPosition(0, time_ms, time_ms))
        known.put_config(GROUP_RESOURCE, "g", TIMEOUT, value)
    assert [known.group_config("g", TIMEOUT, time_ms) for time_ms in (15, 25, 40)] == [None, "7", None]


def test_snapshots_show_the_default_where_the_metadata_log_has_no_config_of_a_group() -> None:
    known = history(group_setting("1", 10, 50))
    known.open_version(LogPosition(0, 20, 20))
    known.put_config(GROUP_RESOURCE, "g", "share.session.timeout.ms", "9")
    assert known.group_config("g", TIMEOUT, 25) == "1"


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (("range,uniform",) * 2, "range"),
        (("org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform",) * 2, "range"),
        (("own.Assignor",) * 2, "own.Assignor"),
        (("range", "uniform"), None),
        ((), None),
    ],
)
def test_the_default_assignor_is_that_of_all_brokers(values: tuple[str, ...], name: str | None) -> None:
    runs = (
        SettingRun(ResourceKind.BROKER, str(broker), "group.consumer.assignors", value, 10, 20)
        for broker, value in enumerate(values)
    )
    known = history(*runs)
    assert [known.default_assignor(time_ms) for time_ms in (None, 15, 25)] == [name, name, None]
    assert AuditSettings().default_at(known, 15) == (name or "uniform")
    assert AuditSettings(default_assignor="mine").default_at(known, 15) == "mine"


def test_levels_of_one_snapshot() -> None:
    assert levels_in_snapshot(27, 30, 27, all_answered=True) == Levels(27, 30)
    assert levels_in_snapshot(30, 30, 27, all_answered=False) == Levels(27, None)
    assert levels_in_snapshot(30, 30, None, all_answered=False) is None
    assert levels_in_snapshot(None, None, None, all_answered=True) is None


RUNS = tuple(
    level_runs([(10, Levels(27, 27)), (15, None), (20, Levels(27, 27)), (30, Levels(27, 30)), (40, Levels(30, None))])
)


@pytest.mark.parametrize(
    ("time_ms", "levels"),
    [
        (9, Levels(None, 27)),
        (10, Levels(27, 27)),
        (17, Levels(27, 27)),
        (25, Levels(27, 30)),
        (35, Levels(27, None)),
        (40, Levels(30, None)),
        (41, Levels(30, None)),
        (None, Levels(30, None)),
    ],
)
def test_bounds_of_the_levels_of_brokers(time_ms: int | None, levels: Levels) -> None:
    assert [run[1:] for run in RUNS] == [(10, 20), (30, 30), (40, 40)]
    assert history(levels=RUNS).broker_levels(time_ms) == levels
    assert history().broker_levels(time_ms) is None


def test_registrations_prove_levels_up_to_the_end_of_the_metadata_log() -> None:
    known = history(levels=RUNS)
    known.brokers.note_registration(1, LogPosition(0, 0, 5), 26)
    known.last_seen_ms = 20
    times = (None, 7, 20, 25, 45)
    assert [known.broker_levels(time_ms) for time_ms in times] == [
        *[Levels(26, 26)] * 3,
        Levels(26, 30),
        Levels(26, None),
    ]
    assert known.oldest_broker(25) == 26
    assert known.metadata_versions() == {26, 27, 30}
