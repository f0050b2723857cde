"""Groups of which a log has only tombstones: that they were there is said, from files and from tables."""

from pathlib import Path

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.group_rows import group_steps
from jobs.queries.interface import Answers
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.commands import run_command
from tests.core.builders import GroupLog, at_once, classic_member
from tests.jobs.logs import batch, write_segment
from tests.jobs.relations.tables_of_logs import CLUSTER, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Offsets 0 to 4 are gone, as compaction takes them."""
    groups = [GroupLog(name) for name in ("classic", "commits", "kip", "left", "there")]
    classic, commits, kip, left, there = groups
    records = []
    for group, made in (
        (classic, lambda: [classic.tombstone(2)]),
        (commits, lambda: [commits.no_commit("t", 0)]),
        (kip, lambda: at_once([*kip.gone("m"), kip.tombstone(6), kip.tombstone(3)])),
        (left, lambda: at_once(left.gone("m"))),
        (there, lambda: [there.classic(4, [classic_member("a")])]),
        (there, lambda: [there.no_commit("t", 0)]),
        (there, lambda: [there.no_commit("t", 0)]),
    ):
        group.offset = records[-1][-1].at.offset + 1 if records else 5
        records.append(made())
    write_segment(tmp_path / "logs" / "__consumer_offsets-0", [batch(*each) for each in records])
    fill(tmp_path / "tables", tmp_path / "logs")
    return tmp_path


def test_they_are_named_and_their_ends_are_told(place: Path) -> None:
    files: Answers = LogAnswers(find_logs([place / "logs"]), lambda _: None, load)
    tables: Answers = StoredAnswers(FolderReader(str(place / "tables")), CLUSTER, load().audit, lambda _: None)
    for answers in (files, tables):
        then = answers.at(AsOf())
        assert sorted(then.named()) == ["classic", "commits", "kip", "left", "there"]
        assert [each.group.group_id for each in then.groups()] == ["there"]
        assert sorted(answers.at(AsOf(offsets={0: 7})).named()) == ["classic", "commits"]
        for name, removed, ends in (("classic", 0, [5]), ("commits", 1, []), ("kip", 0, [11]), ("there", 1, [])):
            steps = group_steps(answers, files.history(name) or GroupHistory(name, 0))
            assert [at.offset for at in steps.unseen_ends] == ends
            assert [row.kind for row in steps.rows] == ["removed"] * removed
            assert all("the commit that it removed" in (row.missing or "") for row in steps.rows)


def test_commands_say_it(place: Path) -> None:
    def said(*question: str) -> str:
        return run_command(*question, "--log", place / "logs", env={"COLUMNS": "300"}).output

    assert "4 groups do not exist at the end of these logs: classic, commits, kip, left" in said("groups")
    assert "group ended" in said("history", "classic")
    assert "nothing of group 'left' but tombstones" in said("history", "left")
