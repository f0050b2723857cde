"""Random logs of commits: files and tables say the same of lag, committed offsets and commits that went back."""

import shutil
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.describe import CERTAIN_GROUP, POSSIBLY_THERE, certainty_label, unknown_fields
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from jobs.queries.from_logs.answers import LogAnswers, replay
from jobs.queries.from_logs.history import group_histories
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.from_tables.stored_moment import log_ends
from jobs.queries.group_rows import NO_ENDS_SHOWN, group_steps
from jobs.queries.interface import GroupsThen
from jobs.queries.moment_times import ANY_LATER_MS, MomentTimes
from jobs.relations.commit_sums import rewinds_of_group
from jobs.relations.log_extent import extents_at
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from jobs.tables.folder_reader import FolderReader
from tests.core.recorded_logs import write_cleaned
from tests.jobs.logs import write_segment
from tests.jobs.queries.same_answers import only_topics_missing
from tests.jobs.relations.random_commits import GROUPS, RandomLog, write_logs
from tests.jobs.relations.tables_of_logs import CLUSTER, fill
from tests.shared_data import ROOT

NAMES = [f"{name}{partition}" for name in GROUPS for partition in (0, 1)]


def both(place: Path) -> tuple[LogAnswers, StoredAnswers]:
    """Answers from the logs in a folder, and from the tables of them."""
    fill(place / "tables", place / "logs")
    files = LogAnswers(find_logs([place / "logs"]), pytest.fail, load)
    return files, StoredAnswers(FolderReader(str(place / "tables")), CLUSTER, load().audit)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_lag_at_each_end_offset(tmp_path: Path, seed: int, holes: bool) -> None:
    ends = defaultdict(list)
    for topic, partition, time_ms, end in write_logs(tmp_path / "logs", seed, holes=holes):
        ends[TopicPartition(topic, partition)].append(EndOffset(time_ms, end))
    files, tables = both(tmp_path)
    of_each = []
    for name in NAMES:
        found = tables.lag(name, ends)
        assert found == files.lag(name, ends)
        of_each += found
    assert tables.lag(None, ends) == files.lag(None, ends) == of_each
    assert len(of_each) > 50


def offsets(then: GroupsThen) -> dict[str, Any]:
    """Committed offsets and those of open transactions of each group that has any."""
    found = {}
    for group, held, _ in then.groups():
        pending = {producer: each for producer, each in held.pending.items() if each}
        if held.committed or pending:
            found[group.group_id] = (held.committed, pending)
    return found


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_committed_offsets(tmp_path: Path, seed: int, holes: bool) -> None:
    write_logs(tmp_path / "logs", seed, holes=holes)
    files, tables = both(tmp_path)
    assert sorted(tables.at(AsOf()).named()) == sorted(files.at(AsOf()).named())
    found = offsets(tables.at(AsOf()))
    assert found == offsets(files.at(AsOf()))
    assert any(pending for _, pending in found.values())


def test_after_the_end_of_the_log_nothing_is_certain(tmp_path: Path) -> None:
    """What was written between the last record and the moment is in no file; at the last record all is known."""
    write_logs(tmp_path / "logs", 1)
    for answers in both(tmp_path):
        end_ms = answers.at(AsOf()).span()[1]
        assert end_ms is not None
        last, later = answers.at(AsOf(time_ms=end_ms)), answers.at(AsOf(time_ms=end_ms + 1))
        for now in (answers.at(AsOf()), last):
            assert {certainty_label(group, known) for group, _, known in now.groups()} == {CERTAIN_GROUP}
            assert now.knowledge().reasons("any") == []
        groups = list(later.groups())
        assert [then.group.group_id for then in groups] == [then.group.group_id for then in last.groups()]
        assert {certainty_label(then.group, then.certainty) for then in groups} == {POSSIBLY_THERE}
        assert offsets(later) == {}
        held = {then.group.group_id: then.offsets for then in last.groups()}
        for then in groups:
            known = held[then.group.group_id]
            there = {*known.committed, *(each for commits in known.pending.values() for each in commits)}
            assert there <= then.certainty.unknown_offsets
            assert not then.certainty.transactions_are_known
        assert not later.knowledge().lists_all
        (reason,) = later.knowledge().reasons("any")
        assert reason.startswith("the log ends at ")


def test_after_the_end_of_the_log_its_end_offsets_say_that_nothing_was_written_since(tmp_path: Path) -> None:
    """Whoever names the ends of all partitions at a time has asked a broker for them then."""
    write_logs(tmp_path / "logs", 1)
    logs = find_logs([tmp_path / "logs"])
    ends = {log.partition: 1 + max(row.offset for row in LogReader([log], pytest.fail).rows()) for log in logs}
    for answers in both(tmp_path):
        end_ms = answers.at(AsOf()).span()[1]
        assert end_ms is not None
        last, later = answers.at(AsOf()), answers.at(AsOf(end_ms + 60_000, ends))
        assert later.knowledge().reasons("any") == []
        assert {certainty_label(group, known) for group, _, known in later.groups()} == {CERTAIN_GROUP}
        assert offsets(later) == offsets(last)
        some = dict(list(ends.items())[:-1])
        assert len(answers.at(AsOf(end_ms + 60_000, some)).knowledge().reasons("any")) == 1
        more = {number: end + 1 for number, end in ends.items()}
        assert answers.at(AsOf(end_ms + 60_000, more)).knowledge().reasons("any") != []


@pytest.mark.parametrize("has_holes", [True, False])
def test_a_dump_that_shows_no_transactions_says_so(tmp_path: Path, has_holes: bool) -> None:
    """Where a transaction may have ended, an aborted commit counts as committed: the answers name the partition."""
    if has_holes:
        write_logs(tmp_path / "logs", 1)
    else:
        plain = RandomLog(Random(1), 0)
        plain.add(20)
        write_segment(tmp_path / "logs" / "__consumer_offsets-0", plain.batches)
    fill(tmp_path / "tables", tmp_path / "logs", by_consumer=True)
    tables = StoredAnswers(FolderReader(str(tmp_path / "tables")), CLUSTER, load().audit)
    then = tables.at(AsOf())
    assert {known.transactions_are_known for _, _, known in then.groups()} == {not has_holes}
    for group, held, known in then.groups():
        assert known.commits_hold == (not has_holes or not held.committed)
        assert ("offsets" in unknown_fields(group, known)) == (not known.commits_hold)
    doubts = [
        row.missing is not None and NO_ENDS_SHOWN in row.missing and not row.history_complete
        for name in NAMES
        for row in group_steps(tables, GroupHistory(name, 0)).rows
    ]
    assert {*doubts} == {has_holes}
    for known in (then.knowledge(), tables.knowledge()):
        if not has_holes:
            assert known.about_offsets() == known.about_history() == []
            continue
        (reason,) = known.about_offsets()
        assert reason.startswith(
            "the dump of __consumer_offsets-0, __consumer_offsets-1 does not show how transactions ended: "
        )
    of_history = [reason for reason in tables.missing() if "(transaction markers, or lost records)" in reason]
    assert (of_history, len(of_history)) == (tables.knowledge().about_history(), has_holes)
    true = offsets(LogAnswers(find_logs([tmp_path / "logs"]), pytest.fail, load).at(AsOf()))
    assert (offsets(then) == true) == (not has_holes), "the log has commits that were aborted or are open"


@pytest.mark.parametrize("seed", range(2))
def test_commits_that_went_back(tmp_path: Path, seed: int) -> None:
    write_logs(tmp_path / "logs", seed)
    _, tables = both(tmp_path)
    expected = {
        (history.group_id, each.topic, each.partition, rewind.before, rewind.after, rewind.at.offset)
        for history in group_histories(find_logs([tmp_path / "logs"]), only_topics_missing)
        for each in history.commits
        for rewind in each.rewinds
    }
    found = {
        (name, *rewind[:4], rewind.at.offset)
        for name in NAMES
        for rewind in rewinds_of_group(tables.tables, CLUSTER, name)
    }
    assert found == expected
    assert len(expected) > 5


def test_how_late_a_moment_in_a_compacted_log_may_be(tmp_path: Path) -> None:
    """Compaction may have removed the last record below an offset: the next one that is left bounds its time."""
    write_cleaned(ROOT / "data" / "samples" / "logs", tmp_path / "logs", 1.0, 1.0, Random(3))
    for other in range(3):
        shutil.rmtree(tmp_path / "logs" / f"__consumer_offsets-{other}")
    fill(tmp_path / "tables", tmp_path / "logs")
    reader, logs = FolderReader(str(tmp_path / "tables")), find_logs([tmp_path / "logs"])

    def stored_times(moment: AsOf) -> MomentTimes:
        return MomentTimes.looked_up(moment, lambda topics, at: [*log_ends(extents_at(reader, CLUSTER, at, [*topics]))])

    is_later = []
    for offset in range(1, 200, 9):
        moment = AsOf(offsets={3: offset})
        files = replay(logs, moment, pytest.fail).times
        stored = stored_times(moment)
        assert stored == files
        is_later.append(files.topics_ms != files.upto_ms)
    assert {*is_later} == {False, True}
    moment = AsOf(offsets={3: 100, 9: 5})
    assert replay(logs, moment, pytest.fail).times.upto_ms == stored_times(moment).upto_ms == ANY_LATER_MS, (
        "no such partition"
    )
