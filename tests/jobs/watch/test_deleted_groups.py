"""Deleted groups are forgotten, but for the last ones: a watch of a cluster with ever new groups stays small."""

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.records import CoordinatorRecord, Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import Damage
from coordinator_core.wire.batches import read_columns
from jobs.sources.log_reader import LogRow, log_rows
from jobs.watch import followed_groups
from jobs.watch.events import FindingEvent, RebalanceEnded, WatchEvent
from jobs.watch.followed_groups import FollowedGroups
from jobs.watch.new_rows import LogPlace, NewRows
from jobs.watch.state_file import StateFile
from tests.core.builders import GroupLog, classic_member
from tests.jobs.logs import batch
from tests.jobs.watch.samples import followed

PLACE = LogPlace("__consumer_offsets", Family.GROUP, 0)
MOST = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_groups, "MOST_OVER", MOST)


class Cluster:
    """A log of groups that a watch follows."""

    def __init__(self, groups: FollowedGroups) -> None:
        self.groups = groups
        self._offset = 0

    def write(self, log: GroupLog, *records: CoordinatorRecord, producer_id: int | None = None) -> list[WatchEvent]:
        """Return what the watch tells once these records, which the log of a group made, are there."""
        placed = []
        for record in records:
            placed.append(record._replace(at=LogPosition(0, self._offset, 1_000 * self._offset)))
            self._offset += 1
        self.groups.feed(NewRows(PLACE, rows_of(batch(*placed, producer_id=producer_id)), from_start=True))
        return list(self.groups.events())


def rows_of(data: bytes) -> list[LogRow]:
    parts = read_columns(lambda at, size: data[at : at + size], len(data))
    return [row for part in parts if not isinstance(part, Damage) for row in log_rows(part)]


def classic(cluster: Cluster, name: str) -> list[WatchEvent]:
    """A group that commits, and is deleted."""
    log = GroupLog(name)
    events = cluster.write(log, log.classic(1, [classic_member("m")]), log.commit("orders", 0, 5), log.classic(2))
    end = log.tombstone(RecordType.GROUP_METADATA)
    return events + cluster.write(log, log.no_commit("orders", 0), end)


def consumer(cluster: Cluster, name: str) -> list[WatchEvent]:
    log = GroupLog(name)
    events = cluster.write(log, *log.join("m", 1, {"AAAAAAAAAAAAAAAAAAAAAQ": [0]}))
    events += cluster.write(log, *log.gone("m"), log.epoch(2), log.target_epoch(2))
    ends = (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, RecordType.CONSUMER_GROUP_METADATA)
    return events + cluster.write(log, *map(log.tombstone, ends))


def names(groups: FollowedGroups) -> list[str]:
    return sorted(group_id for _, group_id in groups.groups)


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("life", [classic, consumer])
def test_the_last_ones_are_kept_and_all_that_has_something_left(life: object, is_live: bool) -> None:
    groups = followed()
    if is_live:
        groups.begin()
    cluster, log = Cluster(groups), GroupLog("with offsets")
    cluster.write(log, log.classic(1), log.commit("orders", 0, 5), log.tombstone(RecordType.GROUP_METADATA))
    log = GroupLog("in a transaction")
    cluster.write(log, log.commit("orders", 0, 5), producer_id=7)
    cluster.write(log, log.tombstone(RecordType.GROUP_METADATA))
    log = GroupLog("living")
    cluster.write(log, log.classic(1, [classic_member("m")]))
    for number in range(10):
        life(cluster, f"g{number}")  # type: ignore[operator]
    assert names(groups) == ["g7", "g8", "g9", "in a transaction", "living", "with offsets"]
    assert groups.lags.partitions() != set()


def test_a_group_that_comes_again_is_told_of() -> None:
    groups = followed()
    groups.begin()
    cluster = Cluster(groups)
    told = [consumer(cluster, f"g{number % 10}") for number in range(20)]
    rebalances = [[event.row.to_epoch for event in each if isinstance(event, RebalanceEnded)] for each in told]
    assert rebalances[0]
    assert rebalances == rebalances[:1] * 20


def test_what_goes_on_with_a_group_ends_when_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def lasting(history: GroupHistory, limits: Thresholds) -> Iterable[FindingRow]:
        place = LogPosition(0, 1, 1_000)
        yield history.finding(FindingKind.REBALANCE_STORM, 50, "stormy", [place], threshold=10, is_open=True)

    groups = followed()
    groups.begin()
    cluster, ended = Cluster(groups), list[str | None]()
    monkeypatch.setattr(followed_groups, "findings", lasting)
    for number in count():
        told = classic(cluster, f"g{number}")
        ended += [each.row.group_id for each in told if isinstance(each, FindingEvent) and each.change == "ended"]
        if len(ended) == 2:
            break
    assert ended == ["g0", "g1"]


def test_the_state_file_forgets_them_too(tmp_path: Path) -> None:
    groups = followed()
    groups.begin()
    cluster = Cluster(groups)
    with closing(StateFile(tmp_path / "state", "")) as file:
        for number in range(10):
            consumer(cluster, f"g{number}")
            file.save(groups)
        # This one is forgotten and comes again between two saves.
        for number in (7, 0, 1, 2, 7):
            consumer(cluster, f"g{number}")
        file.save(groups)
        again = followed()
        file.load(again)
    assert names(again) == names(groups) == ["g1", "g2", "g7"]
    kept, expected = ({key: Counter(group.kept) for key, group in each.groups.items()} for each in (again, groups))
    assert kept == expected
    again.resume()
    cluster.groups = again
    for name in "abc":
        classic(cluster, name)
    assert names(again) == ["a", "b", "c"]
