"""Commits over time in random logs with transactions and tombstones: tables have the points of the log files."""

from collections import defaultdict
from pathlib import Path

import pytest

from coordinator_core.audit.folds.commit_times import CommitPoint, begin_of_trail, thinned
from jobs.queries.from_logs.history import group_histories
from jobs.relations import commit_trails
from jobs.relations.commit_trails import trails_by_text
from jobs.relations.groups import given, rows_of
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.jobs.relations.random_commits import write_logs
from tests.jobs.relations.tables_of_logs import CLUSTER, add_another_cluster, fill

Key = tuple[str, str, int]


def stored_points(tables: FolderReader) -> dict[Key, list[CommitPoint]]:
    found: dict[Key, list[CommitPoint]] = defaultdict(list)
    for group_id, trail in rows_of(tables, trails_by_text(tables, CLUSTER)["trails"], **given(CLUSTER)):
        found[group_id, trail.topic, trail.partition] += trail.points
    return {key: sorted(points, key=lambda point: point.number) for key, points in found.items()}


def relative(points: list[CommitPoint]) -> list[CommitPoint]:
    return [point._replace(number=point.number - points[0].number) for point in points]


@pytest.mark.parametrize("seed", range(3))
def test_tables_have_the_points_of_the_log_files(tmp_path: Path, seed: int) -> None:
    write_logs(tmp_path / "logs", seed, batches=120)
    fill(tmp_path / "tables", tmp_path / "logs")
    add_another_cluster(tmp_path / "tables")
    tables = FolderReader(str(tmp_path / "tables"))
    read = load(environment={})
    of_logs = group_histories(find_logs([tmp_path / "logs"]), str, audit=read.audit, over_time=True)
    logs = {each.group_id: each for each in of_logs}
    files = {
        (name, trail.topic, trail.partition): (trail.points, row.first.offset)
        for name, history in logs.items()
        for trail, row in zip(history.trails, history.commits, strict=True)
    }
    last_ms = max(point.time_ms for points, _ in files.values() for point in points)
    for length_ms in (15_000, 60_000):
        since_ms = begin_of_trail(last_ms, length_ms)
        stored = {
            key: thinned((point for point in points if point.at >= files[key][1]), length_ms, since_ms)
            for key, points in stored_points(tables).items()
            if key in files
        }
        expected = {key: thinned(points, length_ms, since_ms) for key, (points, _) in files.items()}
        assert {key: relative(points) for key, points in stored.items()} == {
            key: relative(points) for key, points in expected.items()
        }
    assert any(point.offset is None for points, _ in files.values() for point in points)


def test_of_very_many_commits_the_last_hours_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_logs(tmp_path / "logs", 1)
    fill(tmp_path / "tables", tmp_path / "logs")
    tables = FolderReader(str(tmp_path / "tables"))
    assert stored_points(tables)
    monkeypatch.setattr(commit_trails, "MOST_COMMITS", 1)
    assert not stored_points(tables)
