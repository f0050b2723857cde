"""Commits of printed records: a commit holds where no transaction can have ended unseen, from files and from tables."""

from pathlib import Path

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.wire.control import ABORT
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.group_rows import NO_ENDS_SHOWN, group_steps
from jobs.queries.interface import Answers
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.core.builders import GroupLog
from tests.jobs.filled_tables import kafka_rows, sample_rows, write_json
from tests.jobs.logs import batch, marker, write_segment
from tests.jobs.relations.tables_of_logs import CLUSTER, GROUP_LOG, fill


def both(place: Path, logs: Path) -> tuple[Answers, Answers]:
    fill(place / "tables", logs)
    tables = StoredAnswers(FolderReader(str(place / "tables")), CLUSTER, load().audit, lambda _: None)
    return LogAnswers(find_logs([logs]), lambda _: None, load), tables


@pytest.mark.parametrize(
    ("without", "is_aborted", "is_doubted"),
    [
        (None, True, False),
        ("", False, False),
        ("", True, True),
        ("partition", False, True),
        ("partition", True, True),
        ("offset", True, True),
    ],
)
def test_a_commit_is_in_doubt_where_a_transaction_may_have_ended(
    tmp_path: Path, without: str | None, is_aborted: bool, is_doubted: bool
) -> None:
    """Offset 2 is the end of a transaction that was aborted, or a commit. ``without``: a column of a consumer's dump;
    None: the segments themselves. A dump without positions does not show whether an offset is missing.
    """
    group = GroupLog("g")
    first = group.commit("t", 0, 10)
    inside = group.commit("t", 0, 20)
    if is_aborted:
        group.offset += 1
        middle = [batch(inside, producer_id=7), marker(ABORT, 7, 2, inside.at.timestamp_ms)]
    else:
        middle = [batch(inside), batch(group.commit("t", 0, 25))]
    logs = tmp_path / "logs"
    write_segment(logs / f"{GROUP_LOG}-0", [batch(first), *middle, batch(group.commit("t", 0, 30))])
    if without is not None:
        rows = kafka_rows(sample_rows(GROUP_LOG, logs))
        logs = tmp_path / "dump"
        logs.mkdir()
        write_json(logs / "dump.jsonl.gz", [{name: row[name] for name in row if name != without} for row in rows])
    for answers in both(tmp_path, logs):
        then = answers.at(AsOf())
        ((_, offsets, known),) = then.groups()
        (held,) = offsets.committed.values()
        assert (held.offset, known.commits_hold, known.transactions_are_known) == (30, not is_doubted, not is_doubted)
        steps = group_steps(answers, GroupHistory("g", 0)).rows
        assert sum(step.commits for step in steps) == (2 if without is None else 3 + (not is_aborted))
        for step in steps:
            assert (step.missing is not None and NO_ENDS_SHOWN in step.missing) == is_doubted
            assert not (is_doubted and step.history_complete)
        for lacks in (then.knowledge(), answers.knowledge()):
            assert [len(lacks.about_offsets()), len(lacks.about_history())] == [is_doubted] * 2


def test_a_moment_before_the_end_of_a_transaction_is_known(tmp_path: Path) -> None:
    """A consumer saw offsets 0, 1 and 3: nothing is missing below 2."""
    group = GroupLog("g")
    before = [batch(group.commit("t", 0, 10)), batch(group.commit("t", 0, 20))]
    group.offset += 1
    logs = tmp_path / "logs"
    write_segment(logs / f"{GROUP_LOG}-0", [*before, batch(group.commit("t", 0, 30))])
    rows = kafka_rows(sample_rows(GROUP_LOG, logs))
    (tmp_path / "dump").mkdir()
    write_json(tmp_path / "dump" / "dump.jsonl.gz", rows)
    for answers in both(tmp_path, tmp_path / "dump"):
        known = [each for end in (2, 3, 4) for *_, each in answers.at(AsOf(offsets={0: end})).groups()]
        assert [each.transactions_are_known for each in known] == [True, False, False]
