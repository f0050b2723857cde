"""What new runs have brought, as the steps behind ingest ask it: of a few rows, each is left out for one reason.

Each row lies in a log partition of its own, so that an answer names the rows that count.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_core.records import CONNECT_LOG, GROUP_LOG
from jobs.pipeline import commit_summaries as summaries
from jobs.pipeline import log_ranges
from jobs.pipeline.commits import here
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.table import Table
from tests.jobs.relations.test_step_questions import OTHER, Row, reader, run

GIVEN: Final = {"cluster": "c", "topic": GROUP_LOG, "done": "1", "upto": "3", "again": []}
NEW: Final[Row] = {"run_id": "2", "log_offset": 5}
OTHER_LOG: Final[Row] = {"log_topic": CONNECT_LOG}
NOT_NEW: Final = (OTHER, OTHER_LOG, {"run_id": "1"}, {"run_id": "4"}, {"log_offset": None})


def in_partitions(row: Row, *changes: Row) -> list[Row]:
    """Return the row with each of the changes, the first in partition 0."""
    return [{**row, "log_partition": number, **change} for number, change in enumerate(changes)]


def partitions(tables: FolderReader, text: str) -> set[Any]:
    """Return the log partitions of the rows that count, None being one."""
    return {row["log_partition"] for row in tables.rows(text, **GIVEN)}


@pytest.mark.parametrize("text", [summaries.FIRSTS, here.NEW_ROWS])
@pytest.mark.parametrize(
    ("table", "row", "others"),
    [
        (OFFSET_COMMITS, NEW, ()),
        (GROUP_RECORDS, NEW, ()),
        (
            LOG_RECORDS,
            {**NEW, "is_transactional": True, "control_type": "COMMIT"},
            ({"is_transactional": False}, {"control_type": "LEADER_CHANGE"}, {"control_type": None}),
        ),
    ],
)
def test_new_rows_are_those_of_new_runs_that_have_a_place(
    tmp_path: Path, text: str, table: Table, row: Row, others: Sequence[Row]
) -> None:
    empty: dict[Table, list[Row]] = {each: [] for each in (OFFSET_COMMITS, GROUP_RECORDS, LOG_RECORDS)}
    rows = in_partitions(row, {}, {"run_id": "3"}, *NOT_NEW, {"log_partition": None}, *others)
    assert partitions(reader(tmp_path, {**empty, table: rows}), text) == {0, 1}


def test_the_first_new_offset_and_the_last_known_one(tmp_path: Path) -> None:
    commits = [{**NEW, "log_offset": offset} for offset in (7, 5, 6)]
    ranges: list[Row] = [{"run_id": "1", "last_offset": 4}, {"run_id": "0", "last_offset": 3}]
    ranges += [{"run_id": "1", "last_offset": 9, **other} for other in (OTHER, OTHER_LOG, {"run_id": "2"})]
    tables = reader(tmp_path, {OFFSET_COMMITS: commits, GROUP_RECORDS: [], LOG_RECORDS: [], LOG_RANGES: [*ranges]})
    assert [row["first"] for row in tables.rows(summaries.FIRSTS, **GIVEN)] == [5]
    assert [row["end"] for row in tables.rows(summaries.ENDS, **GIVEN)] == [4]


def test_known_rows_of_which_a_new_run_has_told_more(tmp_path: Path) -> None:
    """Of commits for their summaries up to a run; of all records for the ranges, from any new run."""
    row = {"run_id": "1", "log_offset": 5, "record_type": 1, "revised_by": "2"}
    told = ({}, {"revised_by": "3"}, {"record_type": 0})
    others = ({"revised_by": "4"}, {"record_type": 2}, OTHER_LOG)
    never = (OTHER, {"run_id": "2"}, {"revised_by": "1"}, {"revised_by": None}, {"log_offset": None})
    rows = in_partitions(row, *told, *others, *never, {"log_partition": None})
    tables = reader(tmp_path, {LOG_RECORDS: rows})
    assert partitions(tables, summaries.REVISED) == {0, 1, 2}
    assert partitions(tables, log_ranges.REVISED) == {0, 1, 2, 3, 4, 5}


def test_log_partitions_with_ranges_without_a_leader_epoch(tmp_path: Path) -> None:
    rows = in_partitions({"leader_epoch": None}, {}, {"leader_epoch": 0}, OTHER, {"leader_epoch": 0, **OTHER})
    tables = reader(tmp_path, {LOG_RANGES: [*rows, rows[0]]})
    assert [row["log_partition"] for row in tables.rows(log_ranges.BARE, **GIVEN)] == [0]


def test_new_commits_are_counted_by_partition_and_touch_what_was_summarized(tmp_path: Path) -> None:
    """One row in each log partition, and a second new one in the first."""
    commit = {**NEW, "group_id": "g", "topic": "t", "partition": 0}
    commits = [*in_partitions(commit, {}, {"run_id": "3"}, *NOT_NEW), {**commit, "log_partition": 0}]
    sums: list[Row] = [{**commit, "log_partition": row["log_partition"]} for row in commits[:-1]]
    others: list[Row] = [{"hour_ms": 0}, OTHER, OTHER_LOG, {"group_id": "h"}, {"topic": "u"}, {"partition": 1}]
    sums += [{**commit, "log_partition": 0, **other} for other in others]
    others_new: dict[Table, list[Row]] = {GROUP_RECORDS: [], LOG_RECORDS: []}
    tables = reader(tmp_path, {OFFSET_COMMITS: commits, COMMIT_SUMMARIES: sums, **others_new})
    assert {row["log_partition"]: row["commits"] for row in tables.rows(summaries.NEW_COMMITS, **GIVEN)} == {0: 2, 1: 1}
    assert sorted(row["log_partition"] for row in tables.rows(here.TOUCHED.format(rows=here.NEW_ROWS), **GIVEN)) == [
        0,
        1,
    ]


def test_records_that_new_runs_have_decoded_are_summed_up(tmp_path: Path) -> None:
    counted = [run("2", "decode", records=5), run("3", "decode", records=7)]
    others = [run("2", "decode", **OTHER), run("1", "decode"), run("4", "decode"), run("2", "ingest")]
    tables = reader(tmp_path, {RUNS: [*counted, *others]})
    assert [row["records"] for row in tables.rows(summaries.NEW_RECORDS, **GIVEN)] == [12]
