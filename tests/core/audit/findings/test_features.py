"""Groups whose feature the cluster has turned off."""

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.cluster.broker_history import BrokerHistory
from coordinator_core.records import LogPosition
from jobs.settings import load
from tests.core.audit.histories import at, epoch, member

LIMITS = load(environment={}).findings


def brokers(*levels: int) -> BrokerHistory:
    history = BrokerHistory()
    for offset, level in enumerate(levels):
        history.note_level("group.version", level, LogPosition(0, 7 + offset, 1_000 * offset))
    return history


@pytest.mark.parametrize(
    ("group_type", "levels", "is_found"),
    [
        ("CONSUMER", (1, 0), True),
        ("CONSUMER", (1,), False),
        ("CONSUMER", (0,), False),
        ("CONSUMER", (1, 0, 1), False),
        ("SHARE", (1, 0), False),
        ("CLASSIC", (1, 0), False),
    ],
)
def test_a_group_with_members_needs_the_feature_of_its_type(
    group_type: str, levels: tuple[int, ...], is_found: bool
) -> None:
    topics = TopicsAtEnd(features=brokers(*levels).features(from_start=False))
    rows = [epoch(4, at(10), group_type=group_type), member("m", at(10))]
    history = GroupHistory.gather("g", 60_000, rows, topics, NO_SHARE_LOGS)
    found = found_of(history)
    assert len(found) == is_found
    if found:
        assert found[0].level == "alarm"
        assert "group.version is 0 since 1970-01-01T00:00:01" in found[0].detail
        assert "(__cluster_metadata 0:8): brokers refuse the heartbeats of 1 member" in found[0].detail


def found_of(history: GroupHistory) -> list[FindingRow]:
    return [row for row in findings(history, LIMITS) if row.kind == FindingKind.FEATURE_OFF]


@pytest.mark.parametrize(
    ("feature", "group_type", "from_start", "is_found"),
    [
        ("group.version", "CONSUMER", True, True),
        ("group.version", "CONSUMER", False, False),  # the level may have been set before the log begins
        ("share.version", "SHARE", True, False),  # a setting of the broker does, too
    ],
)
def test_a_feature_that_an_upgrade_did_not_turn_on(
    feature: str, group_type: str, from_start: bool, is_found: bool
) -> None:
    upgraded = BrokerHistory()
    upgraded.note_support([feature], LogPosition(0, 7, 20_000))
    topics = TopicsAtEnd(features=upgraded.features(from_start=from_start))
    gone = member("gone", at(10), left=at(15))
    refused = member("refused", at(11), left=at(30))
    rows = [epoch(4, at(10), group_type=group_type), gone, refused]
    found = found_of(GroupHistory.gather("g", 60_000, rows, topics, NO_SHARE_LOGS))
    assert len(found) == is_found
    if found:
        assert "group.version was never turned on, and brokers support it since" in found[0].detail
        assert "the heartbeats of 1 member" in found[0].detail


def test_levels_are_those_at_the_end() -> None:
    upgraded = brokers(1, 0, 2)
    upgraded.note_support(["streams.version", "group.version"], LogPosition(0, 1, 10))
    shown = {name: (feature.level, feature.is_set) for name, feature in upgraded.features(from_start=True).items()}
    assert shown == {"group.version": (2, True), "streams.version": (0, False)}
