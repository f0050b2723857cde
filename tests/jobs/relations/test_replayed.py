"""Whether history has all records: each row that says it has not, by itself; and who writes the tables."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.records import GROUP_LOG, SHARE_LOG
from jobs.relations.replay import has_replayed_all, unfinished_run
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, REPLAYED
from jobs.tables.nightly import LEASES
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.table import Table
from tests.jobs.relations.damaged_tables import NOW
from tests.jobs.relations.engines import write

KNOWN = {"cluster": "c", "run_id": "run 1", "log_topic": GROUP_LOG, "log_partition": 0, "log_offset": 5}
NEW = {**KNOWN, "run_id": "run 2"}
CASES: dict[str, tuple[Table, dict[str, Any], bool]] = {
    "nothing new": (GROUP_RECORDS, KNOWN, True),
    "a record": (GROUP_RECORDS, NEW, False),
    "a record of the share state log": (GROUP_RECORDS, {**NEW, "log_topic": SHARE_LOG}, False),
    "a record of another log": (GROUP_RECORDS, {**NEW, "log_topic": "other"}, True),
    "a record of another cluster": (GROUP_RECORDS, {**NEW, "cluster": "other"}, True),
    "a record without a partition": (GROUP_RECORDS, {**NEW, "log_partition": None}, True),
    "a record without an offset": (GROUP_RECORDS, {**NEW, "log_offset": None}, True),
    "staged rows": (REPLAYED, {"cluster": "c"}, False),
    "staged rows of another cluster": (REPLAYED, {"cluster": "other"}, True),
}


def tables_of(home: Path, states: list[dict[str, Any]], table: Table, row: dict[str, Any]) -> FolderReader:
    empty: dict[Table, list[dict[str, Any]]] = {GROUP_RECORDS: [], REPLAYED: []}
    write(home, {GROUP_STATES: states, **empty, table: [row]})
    return FolderReader(str(home))


@pytest.mark.parametrize("case", CASES)
def test_history_lacks_what_a_later_run_has_brought(tmp_path: Path, case: str) -> None:
    table, row, expected = CASES[case]
    states = [{"cluster": "c", "run_id": run} for run in ("run 0", "run 1")] + [{"cluster": "other", "run_id": "run 9"}]
    assert has_replayed_all(tables_of(tmp_path, states, table, row), "c") == expected


def test_without_states_nothing_is_replayed(tmp_path: Path) -> None:
    states = [{"cluster": "other", "run_id": "run 1"}]
    assert not has_replayed_all(tables_of(tmp_path, states, GROUP_RECORDS, KNOWN), "c")
    assert has_replayed_all(FolderReader(str(tmp_path / "nothing")), "c")


def test_a_run_holds_the_lease_until_it_ends(tmp_path: Path) -> None:
    """The lease of a run that has ended has no owner."""
    ended = {"owner": None, "acquired_at": NOW, "expires_at": NOW}
    write(tmp_path / "ended", {LEASES: [ended]})
    assert unfinished_run(FolderReader(str(tmp_path / "ended")), NOW) is None
    write(tmp_path / "held", {LEASES: [ended, {**ended, "owner": "a night"}]})
    tables = FolderReader(str(tmp_path / "held"))
    before, since = (unfinished_run(tables, NOW + timedelta(seconds=seconds)) for seconds in (-1, 0))
    assert before is not None
    assert since is not None
    assert ("a night" in before, "has not ended" in before, "was killed" in since) == (True, True, True)
