"""What real brokers of five releases wrote to their own logs, and what is said of members that went and of offsets.

``python -m tests.broker.witness`` recorded them; ``truth.json`` has what was done.
"""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from coordinator_core.audit.folds.witness import NO_FILE
from coordinator_core.broker_log.events import EventKind
from coordinator_core.history.memberships import LEFT_OR_EXPIRED
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.brokers import BrokerLogs
from jobs.queries.from_logs.history import group_histories
from jobs.queries.group_rows import group_steps
from jobs.settings import load
from jobs.sources.broker_logs import read_broker_logs
from jobs.sources.files import find_logs
from tests.broker.witness.kept import unpack
from tests.broker.witness.tally import Judged, judged, tally
from tests.broker.witness.templates import RELEASES

RECORDED = (*RELEASES, "3.9.1-old")
FAILOVERS = ("failover/4.3.1", "failover/3.9.1")


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


def test_half_a_file_decides_half_and_says_that_it_does_not_cover_the_rest(
    recordings: dict[str, Path], tmp_path: Path
) -> None:
    recording = tmp_path / "half"
    shutil.copytree(recordings["4.3.1"], recording)
    lines = (recording / "server.log").read_text().splitlines(keepends=True)
    (recording / "server.log").write_text("".join(lines[: len(lines) // 2]))
    counts = tally(judged(recording))
    assert counts["wrong"] == 0
    assert counts["right"] > 10
    assert counts["unknown"] > 5
    brokers = BrokerLogs([recording / "server.log"]).read(find_logs([recording]), pytest.fail)
    histories = group_histories(find_logs([recording], snapshots=True), pytest.fail, brokers=brokers)
    rows = [row for history in histories for row in history.memberships if row.went_by == LEFT_OR_EXPIRED]
    assert rows
    assert all((row.hint or "").endswith(NO_FILE) for row in rows)


def test_offsets_that_expired_are_told_from_those_that_were_deleted(recordings: dict[str, Path]) -> None:
    """The broker waited until the offsets of groups without members had expired; no request deleted one."""
    recording = recordings["4.3.1"]

    def causes(paths: list[Path]) -> Counter[str]:
        logs = LogAnswers(find_logs([recording], snapshots=True), pytest.fail, load, brokers=BrokerLogs(paths))
        history = logs.history("payments")
        assert history is not None
        return Counter(row.cause or "" for row in group_steps(logs, history).rows if row.kind == "removed")

    assert causes([]).keys() == {"unknown", "group deleted or expired"}
    assert causes([recording / "server.log"]).keys() == {"expired", "group expired"}


def test_when_the_coordinator_was_away_around_failovers(recordings: dict[str, Path]) -> None:
    """The second broker comes, stops, comes back, and is killed: it says nothing of its end then. Before the first
    load, a broker that never coordinated the groups is told to unload them: nobody was away then.
    """
    recording = recordings[FAILOVERS[0]]
    lines = BrokerLogs(sorted(recording.glob("server*.log"))).read(find_logs([recording]), pytest.fail)
    histories = group_histories(find_logs([recording], snapshots=True), pytest.fail, "users", brokers=lines)
    away = next(iter(histories)).lines.away
    assert [(each.since and each.since.kind, each.since and each.since.broker_id) for each in away] == [
        (None, None),
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


@pytest.mark.parametrize("release", RELEASES)
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
