"""A page beside which a watch runs shows what the watch has read, as if its logs or tables had been read to there."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from coordinator_core.audit.folds.commits import PartitionCommits
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.two_logs import combined
from coordinator_core.records import Family
from jobs.cli.answer_source import AnswerSource
from jobs.cli.serve import SaidBefore, ServedWatch, place_of
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader, build
from jobs.report.data import GroupDetail
from jobs.serve import from_logs
from jobs.serve.from_logs import LogsRead, ServedLogs
from jobs.serve.group_times import GroupTimes
from jobs.serve.newer import NOTHING_NEWER, history_with_newer, with_newer, with_newer_offsets
from jobs.serve.served_rows import ServedOffset
from jobs.serve.site import GroupsAsked, Packed, ServedPlace, Site
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.watch import followed_group
from jobs.watch.growing_logs import GrowingLogs
from tests.core.audit.histories import all_shown, at, epoch
from tests.jobs.watch import samples
from tests.jobs.watch.samples import followed, growing
from tests.shared_data import ROOT

SETTINGS = load(environment={})
INCIDENT = ROOT / "data" / "samples" / "incident"
GROUP = "B-range-5175"
FIELDS = (
    "epochs",
    "rebalances",
    "memberships",
    "assignments",
    "violations",
    "targets",
    "initializations",
    "commits",
    "commit_counts",
)


def histories(folder: Path) -> Iterator[GroupHistory]:
    return combined(group_histories(find_logs([folder]), lambda _: None, audit=SETTINGS.audit, over_time=True))


class Watch:
    """A watch of a folder, without a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.groups, self.source = followed(), GrowingLogs([folder], pytest.fail)
        self.poll()

    def poll(self) -> None:
        for new in self.source.poll():
            self.groups.feed(new)

    def read(self) -> Mapping[str, int]:
        return {group.group_id: group.fed for group in self.groups.groups.values()}

    def history(self, group_id: str) -> GroupHistory | None:
        keys = [key for family in (Family.CONNECT, Family.GROUP) if (key := (family, group_id)) in self.groups.groups]
        return next(combined([self.groups.history(key) for key in keys]), None)


@pytest.fixture(autouse=True)
def incident(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smaller sample, which grows faster."""
    monkeypatch.setattr(samples, "SAMPLES", INCIDENT)


def test_a_history_with_what_a_watch_read_beyond_it_is_that_of_the_whole_log(tmp_path: Path) -> None:
    grown, watch, before = growing(tmp_path, 3), None, []
    for _ in grown:
        watch = watch or Watch(tmp_path)
        watch.poll()
        before.append({history.group_id: history for history in histories(tmp_path)})
    assert watch is not None
    longer = 0
    for group_id, whole in before[-1].items():
        for stored in (each[group_id] for each in before if group_id in each):
            made = history_with_newer(watch, group_id, stored)
            assert [name for name in FIELDS if [*getattr(made, name)] != [*getattr(whole, name)]] == []
            longer += len(stored.rebalances) < len(whole.rebalances)
    assert longer >= 2


def test_where_a_watch_has_not_kept_all_between_no_row_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_group, "MOST_ROWS", 3)
    monkeypatch.setattr(followed_group, "MOST_REBALANCES", 0)
    watch, stored = None, {}
    for _ in growing(tmp_path):
        watch = watch or Watch(tmp_path)
        stored = stored or {history.group_id: history for history in histories(tmp_path)}
        for group in watch.groups.groups.values():
            group.kept.limit = 3
        watch.poll()
    assert watch is not None
    shorter = 0
    for whole in histories(tmp_path):
        made = history_with_newer(watch, whole.group_id, stored.get(whole.group_id))
        assert made is not None
        for name in ("epochs", "rebalances", "memberships", "assignments"):
            assert set(getattr(made, name)) <= set(getattr(whole, name)), (whole.group_id, name)
        shorter += len(made.epochs) < len(whole.epochs)
        assert [row for row in made.epochs if row.is_open] == [row for row in whole.epochs if row.is_open]
    assert shorter


def test_a_watch_that_is_behind_adds_nothing(tmp_path: Path) -> None:
    ahead = GroupHistory("g", 9, epochs=[epoch(1, at(1), ended=at(5)), epoch(2, at(5))])
    assert with_newer(ahead, GroupHistory("g", 5, epochs=[epoch(1, at(1))])) is ahead


def test_served_logs_follow_a_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that is asked for at once; the list of groups and the charts with the next pass over the logs."""
    grown = growing(tmp_path)
    next(grown)
    watch = Watch(tmp_path)

    def read() -> LogsRead:
        watched, found = watch.read(), [*histories(tmp_path)]
        report = build(found, SETTINGS.findings, ReportHeader("c", "1", 0, (), True, []), all_shown)
        answers = LogAnswers(find_logs([tmp_path]), lambda _: None, lambda: SETTINGS)
        return LogsRead(report, {history.group_id: GroupTimes.of(history) for history in found}, answers, watched)

    place = ServedLogs(read(), SETTINGS.findings, {}, watch, read)
    for _ in grown:
        pass
    watch.poll()
    (whole,) = (history for history in histories(tmp_path) if history.group_id == GROUP)
    assert place.group("none", None, None) is None
    made = place.group(GROUP, None, None)
    assert isinstance(made, GroupDetail)
    assert made.line.rebalances == len(whole.rebalances)
    assert isinstance(place.group(GROUP, None, None), Packed), "it is read once"
    asked = GroupsAsked(find=GROUP)
    before = place.groups(asked)
    assert [row.rebalances for row in before.groups] != [len(whole.rebalances)], "soon after is soon enough"
    monkeypatch.setattr(from_logs, "AGAIN_S", 0.0)
    monkeypatch.setattr(from_logs, "AGAIN_TIMES", 0.0)
    until = time.monotonic() + 20
    while place.groups(asked) == before and time.monotonic() < until:
        time.sleep(0.05)
    assert [row.rebalances for row in place.groups(asked).groups] == [len(whole.rebalances)]
    assert sum(count for _, count in place.overview().outcomes) > before.groups[0].rebalances


def test_serve_follows_a_folder_that_grows(tmp_path: Path) -> None:
    grown = growing(tmp_path, 2)
    next(grown)
    source = AnswerSource(context=cast("Any", SaidBefore()), log=[tmp_path])
    with closing(ServedWatch(str(tmp_path), source)) as following:
        place = place_of(source, None, following.newer())
        before = asked_group(place)
        for _ in grown:
            pass
        until = time.monotonic() + 20
        while asked_group(place)["line"] == before["line"] and time.monotonic() < until:
            time.sleep(0.05)
        (whole,) = (history for history in histories(tmp_path) if history.group_id == GROUP)
        assert asked_group(place)["line"]["rebalances"] == len(whole.rebalances) > before["line"]["rebalances"]


def test_a_watch_that_may_not_read_a_segment_says_so_and_the_page_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    next(growing(tmp_path, 1))
    said: list[str] = []
    refused = PermissionError(13, "Permission denied", "00000000000000000000.log")
    monkeypatch.setattr(GrowingLogs, "begin", Mock(side_effect=refused))
    monkeypatch.setattr(SaidBefore.obj, "warn", said.append)
    with closing(ServedWatch(str(tmp_path), AnswerSource(context=cast("Any", SaidBefore()), log=[tmp_path]))) as watch:
        assert watch.newer() is NOTHING_NEWER
    (text,) = said
    assert text.startswith("the watch ended: ")
    assert "Permission denied" in text


def asked_group(place: ServedPlace) -> Any:
    return json.loads(Site(place).answer("/api/group", {"group": GROUP}).body)


def test_offsets_of_a_moment_that_the_watch_alone_has_seen() -> None:
    """It keeps the newest commit of each partition: what was between that and the end of the log is not known."""
    stored = (ServedOffset("t", 0, 10, 1_000, 0, 1), ServedOffset("t", 1, 5, 2_000, 0, 2))
    commits = [
        PartitionCommits("t", 0, 4, at(1), at(9), 40, (), ()),
        PartitionCommits("t", 1, 1, at(2), at(2), 5, (), ()),
        PartitionCommits("t", 2, 2, at(7), at(8), None, (), ()),
    ]
    newer = GroupHistory("g", 9_000, commits=commits)
    now = (ServedOffset("t", 0, 40, 9_000, 0, 9), stored[1])
    assert with_newer_offsets(stored, newer, None, 2_000) == now
    assert with_newer_offsets(stored, newer, 9_000, 2_000) == now
    assert with_newer_offsets(stored, newer, 1_500, 2_000) == stored
    between = ServedOffset("t", 0, None, None, None, None)
    assert with_newer_offsets(stored, newer, 8_500, 2_000) == (between, stored[1])
    assert with_newer_offsets(stored, None, None, 2_000) == stored


def test_a_stored_commit_at_the_first_offset_of_the_log_is_no_news_of_the_watch() -> None:
    """A clock that goes back puts it behind the moment that is asked for."""
    stored = (ServedOffset("t", 0, 10, 5_000, 0, 0),)
    newer = GroupHistory("g", 9_000, commits=[PartitionCommits("t", 0, 1, at(0, 5_000), at(0, 5_000), 10, (), ())])
    assert with_newer_offsets(stored, newer, 3_000, 2_000) == stored
