"""A watch that begins again: it reads on where it was saved, tells nothing twice, and loses nothing."""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, make_finding
from coordinator_core.errors import InputError
from coordinator_core.records import Family, LogPosition
from jobs.cli.console import Console
from jobs.cli.watch import Watch
from jobs.cli.watch_lines import lines
from jobs.watch import state_file
from jobs.watch.events import RebalanceEnded, Reported, WatchEvent
from jobs.watch.growing_logs import GrowingLogs
from jobs.watch.state_file import StateFile
from tests.core.audit.histories import at, rebalance
from tests.jobs.watch.samples import SAMPLES, followed, growing, rows_of
from tests.matrix.removals import removals


class Killed(BaseException):
    """The process ends here: nothing is done any more."""


class Process:
    """A watch in this process that does one round a call, and what it printed before it was killed."""

    def __init__(self, folder: Path, state: Path, printed: list[dict[str, Any]]) -> None:
        self.file = StateFile(state, "")
        self.watch = Watch(GrowingLogs([folder], pytest.fail), followed(), self.file, Console(quiet=True))
        self.printed = printed

    def begin(self) -> None:
        self.watch.begin()

    def round(self, dies: Callable[[], None] = lambda: None) -> None:
        def tell(event: WatchEvent, *, is_repeated: bool) -> None:
            dies()
            line, *_ = lines(event, self.watch.groups, as_json=True, explained=False, is_repeated=is_repeated)
            self.printed.append(json.loads(line))
            dies()

        self.watch.tell_round(tell)

    def die(self) -> None:
        self.file.close()


def identity(line: dict[str, Any]) -> tuple[Any, ...]:
    if line["event"] == "finding":
        return tuple(line[name] for name in ("event", "group_id", "kind", "subject", "change", "since_ms", "value"))
    return line["event"], line["group_id"], line["at"]["partition"], line["at"]["offset"]


def told_at_once(folder: Path) -> set[tuple[Any, ...]]:
    """What one watch tells that is never stopped, of rebalances."""
    printed: list[dict[str, Any]] = []
    for number, _ in enumerate(growing(folder)):
        if number == 0:
            process = Process(folder, folder.parent / "other", printed)
            process.begin()
        process.round()
    return {identity(line) for line in printed if line["event"] != "finding"}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[Any, ...]]:
    return told_at_once(tmp_path_factory.mktemp("at-once") / "logs")


def test_a_watch_goes_on_from_what_was_saved(tmp_path: Path, expected: set[tuple[Any, ...]]) -> None:
    printed: list[dict[str, Any]] = []
    read = 0
    for number, _ in enumerate(growing(tmp_path / "logs")):
        process = Process(tmp_path / "logs", tmp_path / "state", printed)
        process.begin()
        before = {place: log.end for place, log in process.watch.groups.logs.items()}
        process.round()
        read += sum(log.end - before.get(place, 0) for place, log in process.watch.groups.logs.items() if number)
        process.watch.save()
        process.die()
    counts = Counter(identity(line) for line in printed if line["event"] != "finding")
    assert set(counts) == expected
    assert set(counts.values()) == {1}
    assert not any("repeated" in line for line in printed)


@pytest.mark.parametrize("change", [None, "marker lost in 0", "unreadable keys in 1"])
def test_a_watch_that_goes_on_has_the_rows_of_one_that_never_stopped(tmp_path: Path, change: str | None) -> None:
    logs, rows = tmp_path / "logs", list[Counter[object]]()
    shutil.copytree(SAMPLES, logs)
    if change is not None:
        removals([0, 1])[change].change(logs)
    for is_saved in (False, True):
        grown, watch = tmp_path / f"grown-{is_saved}", None
        for _ in growing(grown, logs=logs):
            if watch is None or is_saved:
                file = StateFile(tmp_path / "state", "") if is_saved else None
                groups = followed(lambda message: None)
                watch = Watch(GrowingLogs([grown], lambda message: None), groups, file, Console(quiet=True))
                watch.begin()
            watch.tell_round(lambda *_, **__: None)
            watch.save()
            if file is not None:
                file.close()
        rows.append(rows_of(map(watch.groups.history, watch.groups.groups)))
    assert rows[0] == rows[1]


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_watch_that_is_killed_anywhere_loses_nothing_and_says_what_may_come_twice(
    tmp_path: Path, expected: set[tuple[Any, ...]], seed: int
) -> None:
    chance, printed, kills = random.Random(seed), [], 0

    def dies() -> None:
        if chance.random() < 0.02:
            raise Killed

    for _ in growing(tmp_path / "logs"):
        for _ in range(40):
            process = Process(tmp_path / "logs", tmp_path / "state", printed)
            process.begin()
            try:
                process.round(dies)
            except Killed:
                kills += 1
                continue
            else:
                if chance.random() < 0.5:
                    process.watch.save()
                break
            finally:
                process.die()
    counts = Counter(identity(line) for line in printed if line["event"] != "finding")
    sure = Counter(identity(line) for line in printed if "repeated" not in line)
    assert kills > 1
    assert set(counts) == expected
    assert max(sure.values()) == 1


@pytest.mark.long
def test_a_process_that_is_killed_loses_nothing(tmp_path: Path, expected: set[tuple[Any, ...]]) -> None:
    chance, out, errors = random.Random(1), tmp_path / "out", tmp_path / "errors"
    options = ["--log", str(tmp_path / "logs"), "--state", str(tmp_path / "state"), "--json"]
    command = [sys.executable, "-m", "coordinator_audit", "watch", *options]

    def watch_for(seconds: float, number: signal.Signals) -> None:
        errors.write_text("")
        with out.open("a") as printed, errors.open("a") as said:
            process = subprocess.Popen(command, stdout=printed, stderr=said)
        end = time.monotonic() + 60
        while "watching" not in errors.read_text() and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(seconds)
        process.send_signal(number)
        process.wait()

    for _ in growing(tmp_path / "logs"):
        for _ in range(2):
            watch_for(chance.random() / 2, signal.SIGKILL)
    watch_for(2, signal.SIGTERM)
    printed = [json.loads(line) for line in out.read_text().splitlines()]
    counts = Counter(identity(line) for line in printed if line["event"] != "finding")
    sure = Counter(identity(line) for line in printed if line["event"] != "finding" and "repeated" not in line)
    assert set(counts) == expected
    assert max(sure.values()) == 1


def saved(folder: Path, state: Path) -> None:
    process = Process(folder, state, [])
    process.begin()
    process.die()


def test_only_what_is_new_is_read_again(tmp_path: Path) -> None:
    saved(SAMPLES, tmp_path / "state")
    source, file, groups = GrowingLogs([SAMPLES], pytest.fail), StateFile(tmp_path / "state", ""), followed()
    source.begin(file.reached())
    assert {new.place.family for new in source.poll()} == {Family.METADATA}
    file.load(groups)
    groups.resume()
    first = followed()
    whole = GrowingLogs([SAMPLES], pytest.fail)
    for new in whole.poll():
        first.feed(new)
    first.begin()
    assert [*groups.events()] == []
    for key, group in first.groups.items():
        again = groups.groups[key]
        assert again.folds.audit.state() == group.folds.audit.state()
        assert [*again.folds.commits.partitions()] == [*group.folds.commits.partitions()]
        assert again.tallies == group.tallies
        assert groups.lags.window(key[1]) == first.lags.window(key[1])
        assert {row.kind for row in again.findings} == {row.kind for row in group.findings}
    assert any(group.findings for group in first.groups.values())


def test_a_state_of_another_log_is_refused(tmp_path: Path) -> None:
    saved(SAMPLES, tmp_path / "state")
    next(growing(tmp_path / "logs"))
    process = Process(tmp_path / "logs", tmp_path / "state", [])
    process.begin()
    with pytest.raises(InputError, match=r"the log ends before, and the watch had read it up to offset \d+"):
        process.round()
    process.die()


def test_another_record_at_the_last_offset_is_refused(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES, logs)
    process = Process(logs, tmp_path / "state", [])
    process.begin()
    process.die()
    ends = {place: log.end for place, log in process.watch.groups.logs.items() if place.topic == "__consumer_offsets"}
    shortest, longest = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
    shutil.rmtree(logs / str(shortest))
    shutil.copytree(logs / str(longest), logs / str(shortest))
    process = Process(logs, tmp_path / "state", [])
    process.begin()
    with pytest.raises(InputError, match=r"another record is there, and the watch had read it up to offset \d+"):
        process.round()
    process.die()


def test_a_file_that_is_no_state_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text('{"version": 1, "told": []}' * 100)
    with pytest.raises(InputError, match="not the state of a watch"):
        StateFile(state, "")
    state.unlink()
    StateFile(state, "a-cluster").close()
    with pytest.raises(InputError, match="the state of a watch of cluster a-cluster, not of b-cluster"):
        StateFile(state, "b-cluster")
    with closing(sqlite3.connect(state, isolation_level=None)) as database:
        database.execute("UPDATE about SET value = '0.1' WHERE name = 'form'")
    with pytest.raises(InputError, match=r"in form 0.1, this release has .* remove the file"):
        StateFile(state, "a-cluster")


def test_reports_of_a_share_state_are_stored_until_its_group_has_a_row(tmp_path: Path) -> None:
    state, groups = tmp_path / "state", followed()
    file = StateFile(state, "")
    groups.reported[Family.GROUP, "g"] = groups.reported[Family.GROUP, "h"] = Reported()
    file.save(groups)
    del groups.reported[Family.GROUP, "g"]
    file.save(groups)
    file.close()
    with closing(sqlite3.connect(state)) as database:
        told = database.execute("SELECT name FROM about WHERE name LIKE 'told %'").fetchall()
    assert [json.loads(name.removeprefix("told ")) for (name,) in told] == [[Family.GROUP.value, "h"]]


def test_a_place_without_room_is_not_taken_for_a_file_of_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="state: cannot be read or written: unable to open database file"):
        StateFile(tmp_path / "absent" / "state", "")
    file = StateFile(tmp_path / "state", "")
    file._database.execute("PRAGMA max_page_count = 10")
    monkeypatch.setattr(state_file, "_line", lambda event: "x" * 100_000)
    with pytest.raises(InputError, match="state: cannot be read or written: database or disk is full"):
        file.begin_line(RebalanceEnded((Family.GROUP, "g"), rebalance(1, at(1)), None))
    file.close()


def test_two_watches_cannot_share_a_file(tmp_path: Path) -> None:
    first = StateFile(tmp_path / "state", "")
    with pytest.raises(InputError, match="another watch uses it"):
        StateFile(tmp_path / "state", "")
    first.close()


def test_a_finding_is_told_again_when_it_comes_back(tmp_path: Path) -> None:
    groups = followed()
    for new in GrowingLogs([SAMPLES], pytest.fail).poll():
        groups.feed(new)
    groups.begin()
    group = next(each for each in groups.groups.values() if each.findings)
    reported, finding = group.reported, group.findings[0]
    assert changes(reported, finding) == []
    later = finding._replace(since_ms=finding.until_ms + 1, until_ms=finding.until_ms + 2, is_open=True)
    assert changes(reported, later)[-1] == "began"
    assert changes(reported, later) == []


def changes(reported: Reported, *rows: FindingRow) -> list[str]:
    """What is told of a group that has these findings now."""
    of_kinds = {(row.kind, row.subject) for row in rows}
    told = reported.changes((Family.GROUP, "g"), rows, 99_999)
    return [event.change for event in told if (event.row.kind, event.row.subject) in of_kinds or not rows]


def test_a_finding_is_told_as_it_begins_grows_much_and_ends() -> None:
    at = LogPosition(0, 5, 1_000)
    storm = make_finding(
        FindingKind.REBALANCE_STORM,
        10,
        10,
        "",
        [at],
        group_id="g",
        since_ms=1_000,
        until_ms=2_000,
        is_open=True,
        complete=True,
    )
    reported = Reported()
    assert changes(reported, storm) == ["began"]
    assert changes(reported, storm._replace(value=19, until_ms=3_000)) == []
    assert changes(reported, storm._replace(value=20, until_ms=4_000)) == ["grew"]
    assert changes(reported, storm._replace(value=39, until_ms=5_000)) == []
    assert changes(reported, storm._replace(value=39, until_ms=5_000, level="alarm")) == ["grew"]
    assert changes(reported, storm._replace(value=39, until_ms=6_000, is_open=False, level="alarm")) == ["ended"]
    assert changes(reported, storm._replace(value=40, until_ms=7_000, level="alarm")) == ["grew"], "it goes on again"
    assert changes(reported) == ["ended"], "it is no longer a finding"
    assert changes(reported) == []
    assert reported.findings["rebalance_storm", None].until_ms == 99_999
