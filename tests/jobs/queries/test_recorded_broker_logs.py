"""What real brokers of five releases wrote to their own logs, and what is said of members that went and of offsets.

``python -m tests.broker.witness`` recorded them; ``truth.json`` has what was done.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator_core.broker_log.events import EventKind
from jobs.queries.from_logs.brokers import BrokerLogs
from jobs.queries.from_logs.history import group_histories
from jobs.sources.broker_logs import read_broker_logs
from jobs.sources.files import find_logs
from tests.broker.witness.kept import unpack
from tests.broker.witness.tally import Judged, judged, tally
from tests.broker.witness.templates import RELEASES

RECORDED = RELEASES
FAILOVERS = ("failover/4.3.1",)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each recording, by its release; ``failover/`` stands before those with two brokers."""
    folder = tmp_path_factory.mktemp("witness")
    return {each.relative_to(folder).as_posix(): each for each in unpack(folder)}


def test_each_release_is_recorded(recordings: dict[str, Path]) -> None:
    assert set(recordings) == {*RECORDED, *FAILOVERS}


@pytest.mark.parametrize("name", [*RECORDED, *FAILOVERS])
def test_each_departure_is_told_right(recordings: dict[str, Path], name: str) -> None:
    rows = judged(recordings[name])
    assert rows
    assert tally(rows) == {"right": len(rows), "wrong": 0, "unknown": 0}, [each for each in rows if not _right(each)]


def test_when_the_coordinator_was_away_around_failovers(recordings: dict[str, Path]) -> None:
    """The second broker comes, stops, comes back, and is killed: it says nothing of its end then."""
    recording = recordings[FAILOVERS[0]]
    lines = BrokerLogs(sorted(recording.glob("server*.log"))).read(find_logs([recording]), pytest.fail)
    histories = group_histories(find_logs([recording], snapshots=True), pytest.fail, "users", brokers=lines)
    away = next(iter(histories)).lines.away
    assert [(each.since and each.since.kind, each.since and each.since.broker_id) for each in away] == [
        (EventKind.COORDINATOR_UNLOADED, 1),
        (EventKind.COORDINATOR_STOPPED, 2),
        (EventKind.COORDINATOR_UNLOADED, 1),
        (None, None),
    ]
    assert [each.until.broker_id for each in away] == [2, 1, 2, 1]


def test_no_departure_is_told_without_the_lines(recordings: dict[str, Path]) -> None:
    rows = judged(recordings[FAILOVERS[0]], with_broker_log=False)
    assert tally(rows) == {"right": 0, "wrong": 0, "unknown": len(rows)}


def _right(row: Judged) -> bool:
    return row.verdict == "right"


@pytest.mark.parametrize("release", RECORDED)
def test_every_release_says_what_happened(recordings: dict[str, Path], release: str) -> None:
    kinds = {each.kind for each in read_broker_logs([recordings[release] / "server.log"], pytest.fail)}
    assert kinds >= {
        EventKind.MEMBER_LEFT,
        EventKind.MEMBER_AWAY,
        EventKind.MEMBER_EXPIRED,
        EventKind.MEMBER_TIMED_OUT,
        EventKind.STATIC_MEMBER_FENCED,
        EventKind.REBALANCE_BEGAN,
        EventKind.GENERATION_JOINED,
        EventKind.GENERATION_ASSIGNED,
        EventKind.EPOCH_BUMPED,
        EventKind.TARGET_COMPUTED,
        EventKind.COORDINATOR_LOADED,
        EventKind.COORDINATOR_STOPPED,
        EventKind.CONVERSION_REFUSED,
        EventKind.CLEANED_UP,
    }
