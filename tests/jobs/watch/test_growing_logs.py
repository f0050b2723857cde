"""A watch of a folder whose segments grow: what it tells is what the questions say of the whole log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.history.rows import RebalanceRow
from jobs.cli import watch
from jobs.cli.app import app
from jobs.queries.from_logs.history import group_histories
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.watch import progress_file
from jobs.watch.followed_groups import FollowedGroups, RebalanceBegan, RebalanceEnded
from jobs.watch.growing_logs import GrowingLogs, whole_batches
from jobs.watch.new_rows import NewRows
from tests.shared_data import ROOT

SAMPLES = ROOT / "data" / "samples" / "logs"
LIMITS = load(environment={}).findings
PIECES = 7


def followed() -> FollowedGroups:
    return FollowedGroups(AuditSettings(), LIMITS, None, pytest.fail)


def growing(folder: Path, pieces: int = PIECES) -> Iterator[None]:
    """Copy the samples piece by piece: a piece may end within a batch, and a segment begins when its former one is
    whole. The metadata log goes ahead.
    """
    partitions = sorted(each for each in SAMPLES.iterdir() if each.is_dir())
    for piece in range(1, pieces + 1):
        for partition in partitions:
            files = sorted(partition.glob("*.log"))
            left = sum(file.stat().st_size for file in files)
            left = left if partition.name.startswith("__cluster") else left * piece // pieces
            for file in files:
                data = file.read_bytes()[:left]
                left -= len(data)
                if data:
                    (folder / partition.name).mkdir(parents=True, exist_ok=True)
                    (folder / partition.name / file.name).write_bytes(data)
        yield


def rebalances() -> set[RebalanceRow]:
    histories = group_histories(find_logs([SAMPLES]), pytest.fail, audit=AuditSettings())
    return {row for history in histories for row in history.rebalances if row.group_type != "SHARE"}


def test_each_rebalance_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    groups, source = followed(), GrowingLogs([tmp_path], pytest.fail)
    groups.is_live = True
    began: list[RebalanceRow] = []
    ended: list[RebalanceRow] = []
    for _ in growing(tmp_path):
        for new in source.poll():
            groups.feed(new)
        for event in groups.events():
            if isinstance(event, RebalanceBegan):
                began.append(event.row)
            elif isinstance(event, RebalanceEnded):
                ended.append(event.row)
    expected = rebalances()
    of_groups = [row for row in ended if row.group_type != "SHARE"]
    assert len(of_groups) == len(set(of_groups))
    assert set(of_groups) == {row for row in expected if not row.is_open}
    assert {(row.group_id, row.at) for row in began if row.group_type != "SHARE"} == {
        (row.group_id, row.at) for row in expected
    }


def test_what_is_there_at_the_beginning_is_not_told(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES, tmp_path / "logs")
    groups, source = followed(), GrowingLogs([tmp_path / "logs"], pytest.fail)
    for new in source.poll():
        groups.feed(new)
    assert list(groups.events()) == []
    assert len(groups) > 10


def test_a_watch_that_begins_again_tells_the_rest_and_nothing_twice(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    told: list[tuple[str, str, object]] = []
    assert progress_file.read(state) is None
    for number, _ in enumerate(growing(tmp_path / "logs")):
        groups, source = followed(), GrowingLogs([tmp_path / "logs"], pytest.fail)
        groups.is_live = True
        groups.told_before = progress_file.read(state) or {}
        for new in source.poll():
            groups.feed(new)
        events = [event for event in groups.events() if isinstance(event, RebalanceBegan | RebalanceEnded)]
        told += [(type(event).__name__, event.row.group_id, event.row.at) for event in events]
        progress_file.write(state, groups.told())
        assert number == 0 or events or number == PIECES - 1
    assert len(told) == len(set(told))
    ends = {(group_id, at) for kind, group_id, at in told if kind == "RebalanceEnded"}
    assert ends >= {(row.group_id, row.at) for row in rebalances() if not row.is_open}


def test_a_batch_is_read_once_it_is_whole() -> None:
    file = max(SAMPLES.rglob("__consumer_offsets-*/*.log"), key=lambda each: each.stat().st_size)
    data = file.read_bytes()
    ends = {whole_batches(lambda at, size: data[at : at + size], 0, cut) for cut in range(0, len(data), 97)}
    ends.add(whole_batches(lambda at, size: data[at : at + size], 0, len(data)))
    assert max(ends) == len(data)
    for end in ends:
        assert end == 0 or whole_batches(lambda at, size: data[at : at + size], 0, end) == end


def test_a_round_that_is_cut_short_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, state = tmp_path / "logs", tmp_path / "state.json"
    pieces = growing(logs)
    next(pieces)

    class Interrupted(GrowingLogs):
        """Ends in its second round: rows were read, and their events were not told."""

        rounds = 0

        def poll(self) -> Iterator[NewRows]:
            if self.rounds:
                next(pieces)
            yield from super().poll()
            if self.rounds:
                raise KeyboardInterrupt
            self.rounds += 1

    monkeypatch.setattr(watch, "_source", lambda *_: Interrupted([logs], pytest.fail))
    first = GrowingLogs([logs], pytest.fail)
    ends = {new.place: new.rows[-1].offset + 1 for new in first.poll()}
    result = CliRunner().invoke(app, ["watch", "--log", str(logs), "--state", str(state)])
    assert result.exit_code == 0, result.output
    assert progress_file.read(state) == ends
