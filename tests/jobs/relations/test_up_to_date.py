"""Whether tables that were made from the log know all of it: each row that a later run may bring, by itself."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.records import LOG_TOPICS, Family, RecordType
from jobs.relations.up_to_date import has_all_commits, has_all_records
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RANGES, LOG_RECORDS
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.table import Table
from tests.jobs.relations.engines import write

COMMIT, METADATA = RecordType.OFFSET_COMMIT.value, RecordType.GROUP_METADATA.value
PLACED = {"log_topic": LOG_TOPICS[Family.GROUP], "log_partition": 0, "log_offset": 5, "kind": "record"}
OLD, NEW = {"cluster": "c", "run_id": "run 1"}, {"cluster": "c", "run_id": "run 2"}
REVISED = {**OLD, **PLACED, "revised_by": "run 2"}
CASES: dict[str, tuple[Table, dict[str, Any], bool, bool]] = {
    "nothing new": (LOG_RECORDS, {**OLD, **PLACED}, True, True),
    "a commit": (OFFSET_COMMITS, NEW, False, True),
    "a commit of the run before": (OFFSET_COMMITS, OLD, True, True),
    "a commit of another cluster": (OFFSET_COMMITS, {**NEW, "cluster": "other"}, True, True),
    "a record": (LOG_RECORDS, {**NEW, **PLACED}, True, False),
    "a control record": (LOG_RECORDS, {**NEW, **PLACED, "kind": "control"}, True, False),
    "a record of another cluster": (LOG_RECORDS, {**NEW, **PLACED, "cluster": "other"}, True, True),
    "an empty batch": (LOG_RECORDS, {**NEW, **PLACED, "kind": "empty"}, True, True),
    "a record without an offset": (LOG_RECORDS, {**NEW, **PLACED, "log_offset": None}, True, True),
    "a record without a partition": (LOG_RECORDS, {**NEW, **PLACED, "log_partition": None}, True, True),
    "news of a commit": (LOG_RECORDS, {**REVISED, "record_type": COMMIT}, False, False),
    "news of a commit, by the run before": (
        LOG_RECORDS,
        {**REVISED, "record_type": COMMIT, "revised_by": "run 1"},
        True,
        True,
    ),
    "news of a commit of another cluster": (
        LOG_RECORDS,
        {**REVISED, "record_type": COMMIT, "cluster": "other"},
        True,
        True,
    ),
    "news of a group": (LOG_RECORDS, {**REVISED, "record_type": METADATA}, True, False),
    "news of another log": (LOG_RECORDS, {**REVISED, "record_type": COMMIT, "log_topic": "other"}, True, False),
}
"""The table and the row, and whether all commits and all records are known in spite of it."""


@pytest.mark.parametrize("case", CASES)
def test_a_table_is_behind_what_a_later_run_has_brought(tmp_path: Path, case: str) -> None:
    table, row, commits, records = CASES[case]
    made = [{**OLD, "run_id": run} for run in ("run 0", "run 1")]
    of_other = {"cluster": "other", "run_id": "run 9"}
    rows: dict[Table, list[dict[str, Any]]] = {OFFSET_COMMITS: [], LOG_RECORDS: []}
    write(tmp_path, {COMMIT_SUMMARIES: [*made, of_other], LOG_RANGES: [*made, of_other], **rows, table: [row]})
    tables = FolderReader(str(tmp_path))
    assert (has_all_commits(tables, "c"), has_all_records(tables, "c")) == (commits, records)


def test_a_table_that_was_never_made_knows_nothing(tmp_path: Path) -> None:
    write(tmp_path, {COMMIT_SUMMARIES: [{"cluster": "other", "run_id": "run 1"}]})
    tables = FolderReader(str(tmp_path))
    assert (has_all_commits(tables, "c"), has_all_records(tables, "c")) == (False, False)
